// Who a Client says it is. A value, shared by the calls that use it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/buffer.h"
#include "oncrpc/message.h"

namespace stag::rpc {

class ClientSecurity;

class Credentials {
 public:
  // AUTH_NONE.
  Credentials() : Credentials(oncrpc::OpaqueAuth{}) {}
  // AUTH_SYS (RFC 5531 appendix A): at most 255 bytes of machine name and 16 group ids; what is
  // beyond is cut off.
  static Credentials sys(std::string_view machine, std::uint32_t uid, std::uint32_t gid,
                         std::span<const std::uint32_t> gids = {});

  // A mechanism that makes credential and verifier for each transmission.
  static Credentials secured(std::shared_ptr<ClientSecurity> security);

  // Null: AUTH_NONE or AUTH_SYS, and the following are what every Call has.
  ClientSecurity* security() const { return security_.get(); }
  oncrpc::OpaqueAuth credential() const;
  // Credential and verifier.
  Bytes encoded() const { return encoded_.bytes(); }

 private:
  explicit Credentials(const oncrpc::OpaqueAuth& credential);
  Buffer encoded_;
  std::shared_ptr<ClientSecurity> security_;
};

}  // namespace stag::rpc
