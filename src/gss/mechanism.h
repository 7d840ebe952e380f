// gss: RPCSEC_GSS version 1 (RFC 2203) without sockets, threads or clocks. This header has what it
// needs of a GSS-API mechanism (RFC 2743); gss/krb5 implements that with Kerberos.
//
// Thread: an Acceptor or Initiator may be used by several threads at once, a Context by one at a
// time. step() and the functions that make credentials may block, for a KDC or a name service; the
// others only compute.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/buffer.h"
#include "base/reason.h"
#include "base/result.h"
#include "xdr/types.h"

namespace stag::gss {

// The major status of a GSS-API function, in the numbers of RFC 2203 appendix A.
enum class Major : std::uint32_t {
  COMPLETE = 0,
  CONTINUE_NEEDED = 1,
  BAD_MECH = 0x00010000,
  BAD_MIC = 0x00060000,
  NO_CRED = 0x00070000,
  NO_CONTEXT = 0x00080000,
  DEFECTIVE_TOKEN = 0x00090000,
  CONTEXT_EXPIRED = 0x000c0000,
  FAILURE = 0x000d0000,
  UNAUTHORIZED = 0x000f0000,
};

// Why there is no credential or context: `detail` is the mechanism's own sentence, for the log.
struct Error {
  Reason reason = Reason::None;
  std::string detail{};
  // The acceptor has had the token before, or knows nothing of the set-up that it continues: a new
  // context can be set up instead.
  bool repeated = false;
};

// A message integrity code: it travels in a verifier, or behind the data of the service integrity.
inline constexpr std::uint32_t kMaxMic = 128;
using Mic = xdr::BoundedOpaque<kMaxMic>;

// A message as a gather list: its parts, in order.
using Pieces = std::span<const Bytes>;

// The result of one exchange of tokens.
struct Step {
  Major major = Major::FAILURE;
  std::uint32_t minor = 0;
  Buffer token{};  // for the peer; may be empty. Owned.
  Error error{};   // where `major` is neither COMPLETE nor CONTINUE_NEEDED
};

// One end of a security context.
class Context {
 public:
  virtual ~Context() = default;

  // Takes the peer's next token (empty: the initiator's first step) and returns the token for the
  // peer. CONTINUE_NEEDED: another step follows, with the peer's answer. COMPLETE: the context is
  // established; `token` still goes to the peer unless it is empty. Any other status: there is no
  // context. May block.
  virtual Step step(Bytes token) = 0;

  // The functions below are for established contexts.

  // The authenticated name of the peer; of an acceptor's context the initiator's
  // ("alice@EXAMPLE.ORG").
  virtual std::string peer() const = 0;
  // Seconds until the context ends, from the step() that established it. 0xffffffff: no end.
  virtual std::uint32_t lifetime() const = 0;

  // Makes the MIC of `message`. On failure returns the mechanism's status, and `to` is undefined.
  virtual Major get_mic(Pieces message, Mic& to) = 0;
  // COMPLETE when `mic` is the peer's MIC of `message`, else the mechanism's status (BAD_MIC, ...).
  virtual Major verify_mic(Pieces message, Bytes mic) = 0;
  // The sealed form of `message`, in a Buffer that owns its bytes.
  virtual Result<Buffer, Major> wrap(Pieces message) = 0;
  // The message of a sealed one; accepts only what is confidential. May overwrite the bytes of
  // `sealed` where nobody else holds them. The result owns its bytes.
  virtual Result<Buffer, Major> unwrap(Buffer sealed) = 0;
};

// The overhead of a mechanism, at most.
struct Sizes {
  std::uint32_t mic_max = kMaxMic;    // bytes of a MIC
  std::uint32_t wrap_overhead = 128;  // bytes of a sealed message beyond those of the plain one
};

// Makes the server's contexts, by the server's own credential.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  virtual std::unique_ptr<Context> begin() = 0;
  virtual Sizes sizes() const = 0;
};

// Makes the client's contexts with one server.
class Initiator {
 public:
  virtual ~Initiator() = default;
  // Looks for the credential each time, so that a new ticket is found. May block.
  virtual Result<std::unique_ptr<Context>, Error> begin() = 0;
  // The sentence for a status by which the server's Acceptor has refused a token.
  virtual Error explain(Major major, std::uint32_t minor) const = 0;
  virtual Sizes sizes() const = 0;
};

}  // namespace stag::gss
