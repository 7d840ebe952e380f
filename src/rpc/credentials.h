// Who a Client says it is. A value, shared by the calls that use it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/buffer.h"
#include "oncrpc/message.h"

namespace stag::rpc {

class Credentials {
 public:
  // AUTH_NONE.
  Credentials() : Credentials(oncrpc::OpaqueAuth{}) {}
  // AUTH_SYS (RFC 5531 appendix A): at most 255 bytes of machine name and 16 group ids; what is
  // beyond is cut off.
  static Credentials sys(std::string_view machine, std::uint32_t uid, std::uint32_t gid,
                         std::span<const std::uint32_t> gids = {});

  oncrpc::OpaqueAuth credential() const;
  // Credential and verifier as they stand in every Call.
  Bytes encoded() const { return encoded_.bytes(); }
  // Bytes of the verifier body a server's Reply may carry.
  std::uint32_t reply_verifier_max() const { return 0; }

 private:
  explicit Credentials(const oncrpc::OpaqueAuth& credential);
  Buffer encoded_;
};

}  // namespace stag::rpc
