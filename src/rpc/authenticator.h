// Authenticator: the seam where a server learns who calls. One per flavor; AUTH_NONE and AUTH_SYS
// are here, RPCSEC_GSS joins through the same door.
#pragma once

#include <cstdint>
#include <memory>

#include "base/inline_vector.h"
#include "base/result.h"
#include "oncrpc/message.h"
#include "rpc/message.h"

namespace stag::rpc {

// The caller as authenticated: `flavor` tells how far it can be trusted. AUTH_SYS is what the
// client claims (RFC 5531 section 13). AUTH_NONE leaves the ids at nobody's.
struct Caller {
  static constexpr std::uint32_t kNobody = 65534;

  oncrpc::AuthFlavor flavor = oncrpc::AuthFlavor::AUTH_NONE;
  std::uint32_t uid = kNobody;
  std::uint32_t gid = kNobody;
  InlineVector<std::uint32_t, 16> gids;
};

class Authenticator {
 public:
  virtual ~Authenticator() = default;
  virtual oncrpc::AuthFlavor flavor() const = 0;
  // Who made this Call, or why it is refused (AUTH_ERROR). Safe to call from several loops.
  virtual Result<Caller, oncrpc::AuthStat> authenticate(const oncrpc::CallHeader& call,
                                                        const Origin& origin) = 0;
};

std::unique_ptr<Authenticator> auth_none();
std::unique_ptr<Authenticator> auth_sys();

}  // namespace stag::rpc
