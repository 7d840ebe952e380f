// Authenticator: tells a server who the caller of a Call is and how the messages of that Call are
// protected. One for each flavor (RFC 5531 section 8.2). AUTH_NONE and AUTH_SYS are implemented
// here and decide at once; other mechanisms (RPCSEC_GSS) implement the same interface.
//
// An Authenticator may wait (for a key, a name service, another machine): only the Call that it
// authenticates waits with it. It may also answer a Call itself, as mechanisms do for the messages
// that set up a context.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/inline_vector.h"
#include "base/result.h"
#include "base/task.h"
#include "oncrpc/message.h"
#include "rpc/message.h"
#include "xdr/stream.h"

namespace stag::rpc {

// The authenticated caller. `flavor` tells how far the ids can be trusted: with AUTH_SYS they are
// only the client's claim (RFC 5531 section 13), with AUTH_NONE they are kNobody.
struct Caller {
  static constexpr std::uint32_t kNobody = 65534;  // the id of the user and group "nobody"

  oncrpc::AuthFlavor flavor = oncrpc::AuthFlavor::AUTH_NONE;
  // The name service that knows the groups has not answered yet: an operation that depends on
  // groups is refused for now, and the client repeats it.
  bool groups_undecided = false;
  std::uint32_t uid = kNobody;
  std::uint32_t gid = kNobody;
  InlineVector<std::uint32_t, 16> gids{};  // supplementary groups
  // The groups that the server's own name service has for the user. They count in place of `gids`,
  // which still tell one caller from another; null: no name service was asked.
  std::shared_ptr<const std::vector<std::uint32_t>> groups{};
  // The name that the mechanism has proven; null where the flavor has no names. With a name, the
  // name alone identifies the caller: the ids are what a name service made of it.
  std::shared_ptr<const std::string> name{};
};

// How the messages of one Call are protected, from its arguments to its Reply. Thread: the loop of
// the Call; one function at a time.
class Protection {
 public:
  virtual ~Protection() = default;

  // Whether arguments and results travel transformed (with an integrity checksum, or encrypted). No
  // item of such messages may be reduced (RFC 8166 section 8.2.2.3), so that a Call with data in
  // chunks is malformed.
  virtual bool transforms() const { return false; }
  // Called when transforms(): the plain arguments, or the status with which to refuse the Call.
  // `arguments` owns its bytes, or they outlive the Task.
  virtual Task<Result<Buffer, oncrpc::ReplyStatus>> unwrap(Buffer arguments);
  // Called when transforms(): the results as they travel. nullopt when that fails; the Call is then
  // answered with SYSTEM_ERR.
  virtual Task<std::optional<xdr::Stream>> wrap(xdr::Stream results);
  // The verifier of an accepted Reply; its body lives as long as this object.
  virtual oncrpc::OpaqueAuth reply_verifier() = 0;
  // Bytes by which a Reply may be longer than the same Reply with AUTH_NONE.
  virtual std::uint32_t reply_overhead() const = 0;
};

// What an Authenticator decides about a Call.
struct Authentication {
  enum class Verdict : std::uint8_t {
    Accepted,  // the Call is from `caller`; `protection` protects it (null: nothing does)
    Refused,   // the Reply is AUTH_ERROR with `refusal`
    Answered,  // the Reply has `results` of the mechanism; `protection` has its verifier
    Dropped,   // there is no Reply, and the connection ends for `reason`
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

// Thread: several loops call it at the same time. `header` was decoded from `call`; the client may
// have made its verifier of the bytes of `call.payload` before header_size().
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  virtual oncrpc::AuthFlavor flavor() const = 0;
  // Decides without a coroutine, where that needs no waiting. False: `to` is unchanged, and the
  // Server calls authenticate().
  virtual bool authenticate_at_once(const oncrpc::CallHeader& /*header*/,
                                    const IncomingCall& /*call*/, Authentication& /*to*/) {
    return false;
  }
  // `header` and `call` outlive the Task, which runs to its end even if the connection is lost.
  virtual Task<Authentication> authenticate(const oncrpc::CallHeader& header,
                                            const IncomingCall& call);
  // Whether a Call with this header may be accepted, so that its arguments are worth an RDMA Read.
  // Called before the functions above; changes nothing and allocates nothing.
  virtual bool may_accept(const oncrpc::CallHeader& /*header*/) const { return true; }
  // Whether the order matters in which Calls are authenticated. Then it is that of their arrival,
  // as far as the header arrives first and authenticate_at_once() decides.
  virtual bool minds_order() const { return false; }
};

// The authenticators of AUTH_NONE and AUTH_SYS (RFC 5531 section 8.2 and appendix A).
std::unique_ptr<Authenticator> auth_none();
std::unique_ptr<Authenticator> auth_sys();

}  // namespace stag::rpc
