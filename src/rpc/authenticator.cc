#include "rpc/authenticator.h"

#include "oncrpc/auth_sys.h"

namespace stag::rpc {
namespace {

using oncrpc::AuthFlavor;
using oncrpc::AuthStat;

class AuthNone final : public Authenticator {
 public:
  AuthFlavor flavor() const override { return AuthFlavor::AUTH_NONE; }
  bool authenticate_at_once(const oncrpc::CallHeader&, const IncomingCall&,
                            Authentication&) override {
    return true;
  }
};

class AuthSys final : public Authenticator {
 public:
  AuthFlavor flavor() const override { return AuthFlavor::AUTH_SYS; }
  bool authenticate_at_once(const oncrpc::CallHeader& header, const IncomingCall&,
                            Authentication& to) override {
    std::optional<oncrpc::AuthSys> claimed = oncrpc::decode_auth_sys(header.credential.body);
    if (!claimed) {
      to.refuse(AuthStat::AUTH_BADCRED);
      return true;
    }
    to.caller.flavor = AuthFlavor::AUTH_SYS;
    to.caller.uid = claimed->uid;
    to.caller.gid = claimed->gid;
    to.caller.gids = std::move(claimed->gids);
    return true;
  }
  bool may_accept(const oncrpc::CallHeader& header) const override {
    return oncrpc::decode_auth_sys(header.credential.body).has_value();
  }
};

}  // namespace

Task<Result<Buffer, oncrpc::ReplyStatus>> Protection::unwrap(Buffer arguments) {
  co_return std::move(arguments);
}

Task<std::optional<xdr::Stream>> Protection::wrap(xdr::Stream results) {
  co_return std::move(results);
}

Task<Authentication> Authenticator::authenticate(const oncrpc::CallHeader& header,
                                                 const IncomingCall& call) {
  Authentication made;
  if (!authenticate_at_once(header, call, made)) made.refuse(AuthStat::AUTH_FAILED);
  co_return made;
}

std::unique_ptr<Authenticator> auth_none() {
  return std::make_unique<AuthNone>();
}
std::unique_ptr<Authenticator> auth_sys() {
  return std::make_unique<AuthSys>();
}

}  // namespace stag::rpc
