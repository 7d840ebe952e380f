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
  Credentials() = default;
  // AUTH_SYS (RFC 5531 appendix A): at most 255 bytes of machine name and 16 group ids; what is
  // beyond is cut off.
  static Credentials sys(std::string_view machine, std::uint32_t uid, std::uint32_t gid,
                         std::span<const std::uint32_t> gids = {});

  oncrpc::OpaqueAuth credential() const { return {flavor_, body_.bytes()}; }
  oncrpc::OpaqueAuth verifier() const { return {}; }
  // Bytes of the verifier body a server's Reply may carry.
  std::uint32_t reply_verifier_max() const { return 0; }

 private:
  oncrpc::AuthFlavor flavor_ = oncrpc::AuthFlavor::AUTH_NONE;
  Buffer body_;
};

}  // namespace stag::rpc
