// The data structures of RPCSEC_GSS (RFC 2203 section 5) and their XDR. Pure functions; decoded
// values are views into their argument. The bytes come from a peer.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "gss/mechanism.h"
#include "oncrpc/message.h"
#include "xdr/stream.h"

namespace stag::gss {

inline constexpr std::uint32_t kVersion = 1;          // RPCSEC_GSS_VERS_1
inline constexpr std::uint32_t kMaxSeq = 0x80000000;  // MAXSEQ
inline constexpr std::uint32_t kMaxToken = 64 << 10;  // bytes; RFC 2203 sets no bound
inline constexpr std::uint32_t kMaxHandle = 128;      // bytes; what fits a credential besides

// rpc_gss_proc_t
enum class Procedure : std::uint32_t { DATA = 0, INIT = 1, CONTINUE_INIT = 2, DESTROY = 3 };
// rpc_gss_service_t
enum class Service : std::uint32_t { none = 1, integrity = 2, privacy = 3 };

// What Kerberos with `service` is called (RFC 2623 section 2.2.4).
oncrpc::AuthFlavor pseudo_flavor(Service service);

// rpc_gss_cred_t. Of INIT and CONTINUE_INIT, seq_num and service mean nothing.
struct Credential {
  std::uint32_t version = kVersion;
  Procedure procedure = Procedure::DATA;
  std::uint32_t seq_num = 0;
  Service service = Service::none;
  Bytes handle;

  bool control() const { return procedure != Procedure::DATA; }
  bool creation() const {
    return procedure == Procedure::INIT || procedure == Procedure::CONTINUE_INIT;
  }
};

// Bytes of an encoded Credential with a handle of `handle` bytes.
constexpr std::uint32_t credential_size(std::uint32_t handle) {
  return 20 + handle + static_cast<std::uint32_t>(xdr_pad(handle));
}

// The body of a credential. nullopt: it is cut short or too long, or has an unknown procedure, or
// an unknown service where that matters. The version is not checked: versions 2 and 3 (RFC 5403,
// RFC 7861) begin with the same fields.
std::optional<Credential> decode_credential(Bytes body);
// Writes credential_size(handle.size()) bytes to `to`, which has room for them.
void encode_credential(const Credential& credential, MutableBytes to);

// rpc_gss_init_arg: nullopt when it is cut short, or the token is longer than kMaxToken.
std::optional<Bytes> decode_init_arg(Bytes arguments);
xdr::Stream encode_init_arg(Bytes token);

// rpc_gss_init_res
struct InitRes {
  Bytes handle{};
  Major major = Major::FAILURE;
  std::uint32_t minor = 0;
  std::uint32_t window = 0;
  Bytes token{};
};
std::optional<InitRes> decode_init_res(Bytes results);
xdr::Stream encode_init_res(const InitRes& results);

}  // namespace stag::gss
