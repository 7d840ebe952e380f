// Authenticator: the seam where a server learns who calls and how the messages of the Call are
// protected. One per flavor; AUTH_NONE and AUTH_SYS are here and are answered at once, RPCSEC_GSS
// joins through the same door.
//
// An Authenticator may wait (for a key, a name service, another machine): only the Call that it
// looks at waits with it. It may also answer a Call itself: the messages that set up a context.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/inline_vector.h"
#include "base/result.h"
#include "base/task.h"
#include "oncrpc/message.h"
#include "rpc/message.h"
#include "xdr/stream.h"

namespace stag::rpc {

// The caller as authenticated: `flavor` tells how far it can be trusted. AUTH_SYS is what the
// client claims (RFC 5531 section 13). AUTH_NONE leaves the ids at nobody's.
struct Caller {
  static constexpr std::uint32_t kNobody = 65534;

  oncrpc::AuthFlavor flavor = oncrpc::AuthFlavor::AUTH_NONE;
  std::uint32_t uid = kNobody;
  std::uint32_t gid = kNobody;
  InlineVector<std::uint32_t, 16> gids{};
  // The name that was proven, where the flavor has one. It alone is then who calls: the ids are
  // what a name service made of it.
  std::shared_ptr<const std::string> name{};
};

// How the messages of one Call are protected, from its arguments to its Reply. Thread: the loop of
// the Call; one function at a time.
class Protection {
 public:
  virtual ~Protection() = default;

  // Whether arguments and results travel in another form than their plain one. Nothing of such
  // messages may be reduced (RFC 8166 8.2.2.3), so a Call with data in chunks is malformed.
  virtual bool transforms() const { return false; }
  // Asked when it transforms: the plain arguments, or with which status the Call is refused.
  // `arguments` owns its bytes, or they outlive the Task.
  virtual Task<Result<Buffer, oncrpc::ReplyStatus>> unwrap(Buffer arguments);
  // Asked when it transforms: the results as they travel; nullopt: it failed, and the Call is
  // answered with SYSTEM_ERR.
  virtual Task<std::optional<xdr::Stream>> wrap(xdr::Stream results);
  // Of an accepted Reply; the body lives as long as this.
  virtual oncrpc::OpaqueAuth reply_verifier() = 0;
  // Bytes by which a Reply may be longer than the same one of AUTH_NONE.
  virtual std::uint32_t reply_overhead() const = 0;
};

// What an Authenticator says of a Call.
struct Authentication {
  enum class Verdict : std::uint8_t {
    Accepted,  // of `caller`, protected by `protection` (null: not at all, as with AUTH_NONE)
    Refused,   // with AUTH_ERROR and `refusal`
    Answered,  // with `results`, which no program gave; `protection` has the verifier
    Dropped,   // without an answer, and its connection ends, for `reason`
  };

  void refuse(oncrpc::AuthStat why) {
    verdict = Verdict::Refused;
    refusal = why;
  }

  Verdict verdict = Verdict::Accepted;
  oncrpc::AuthStat refusal = oncrpc::AuthStat::AUTH_OK;
  Reason reason = Reason::RpcCallUnauthorized;
  Caller caller;
  std::unique_ptr<Protection> protection;
  std::optional<xdr::Stream> results;
};

// All functions are safe to call from several loops at once. `header` was decoded from `call`;
// the bytes of `call.payload` before header_size() are what its verifier may be made of.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  virtual oncrpc::AuthFlavor flavor() const = 0;
  // Without a coroutine, where no waiting is needed: false, and nothing changed, where it is, and
  // authenticate() is asked.
  virtual bool authenticate_at_once(const oncrpc::CallHeader& /*header*/,
                                    const IncomingCall& /*call*/, Authentication& /*to*/) {
    return false;
  }
  // `header` and `call` outlive the Task, which runs to its end whatever becomes of the connection.
  virtual Task<Authentication> authenticate(const oncrpc::CallHeader& header,
                                            const IncomingCall& call);
  // Whether a Call with this header is worth fetching its arguments by RDMA Read. Asked besides
  // and before the others, so it changes nothing; cheap, and without memory.
  virtual bool may_accept(const oncrpc::CallHeader& /*header*/) const { return true; }
};

std::unique_ptr<Authenticator> auth_none();
std::unique_ptr<Authenticator> auth_sys();

}  // namespace stag::rpc
