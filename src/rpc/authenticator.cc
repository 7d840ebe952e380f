#include "rpc/authenticator.h"

#include "oncrpc/auth_sys.h"

namespace stag::rpc {
namespace {

using oncrpc::AuthFlavor;
using oncrpc::AuthStat;

class AuthNone final : public Authenticator {
 public:
  AuthFlavor flavor() const override { return AuthFlavor::AUTH_NONE; }
  Result<Caller, AuthStat> authenticate(const oncrpc::CallHeader&, const Origin&) override {
    return Caller{};
  }
};

class AuthSys final : public Authenticator {
 public:
  AuthFlavor flavor() const override { return AuthFlavor::AUTH_SYS; }
  Result<Caller, AuthStat> authenticate(const oncrpc::CallHeader& call, const Origin&) override {
    std::optional<oncrpc::AuthSys> claimed = oncrpc::decode_auth_sys(call.credential.body);
    if (!claimed) return Failure{AuthStat::AUTH_BADCRED};
    Caller caller;
    caller.flavor = AuthFlavor::AUTH_SYS;
    caller.uid = claimed->uid;
    caller.gid = claimed->gid;
    caller.gids = std::move(claimed->gids);
    return caller;
  }
};

}  // namespace

std::unique_ptr<Authenticator> auth_none() {
  return std::make_unique<AuthNone>();
}
std::unique_ptr<Authenticator> auth_sys() {
  return std::make_unique<AuthSys>();
}

}  // namespace stag::rpc
