// Credentials: who a Client says it is. An immutable value; copies share its bytes. Thread: that of
// the Client.
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
  // AUTH_SYS (RFC 5531 appendix A). Cuts `machine` to 255 bytes and `gids` to 16 ids.
  static Credentials sys(std::string_view machine, std::uint32_t uid, std::uint32_t gid,
                         std::span<const std::uint32_t> gids = {});

  // A mechanism that makes credential and verifier for each transmission. `security` is used on the
  // Client's loop.
  static Credentials secured(std::shared_ptr<ClientSecurity> security);

  // Null for AUTH_NONE and AUTH_SYS, where credential() and encoded() are the same for every Call.
  ClientSecurity* security() const { return security_.get(); }
  // A view, valid as long as this object.
  oncrpc::OpaqueAuth credential() const;
  // Credential and verifier in XDR, as every Call sends them; a view.
  Bytes encoded() const { return encoded_.bytes(); }

 private:
  explicit Credentials(const oncrpc::OpaqueAuth& credential);
  Buffer encoded_;
  std::shared_ptr<ClientSecurity> security_;
};

}  // namespace stag::rpc
