#include "rpc/credentials.h"

#include <algorithm>

#include "oncrpc/auth_sys.h"

namespace stag::rpc {

Credentials Credentials::sys(std::string_view machine, std::uint32_t uid, std::uint32_t gid,
                             std::span<const std::uint32_t> gids) {
  oncrpc::AuthSys auth;
  auth.machine = machine.substr(0, oncrpc::kMaxMachineName);
  auth.uid = uid;
  auth.gid = gid;
  for (std::uint32_t more : gids.first(std::min<std::size_t>(gids.size(), oncrpc::kMaxGids)))
    auth.gids.push_back(more);
  xdr::Encoder encoder;
  oncrpc::encode(encoder, auth);
  Credentials credentials;
  credentials.flavor_ = oncrpc::AuthFlavor::AUTH_SYS;
  credentials.body_ = std::move(encoder).finish().rope().flatten();
  return credentials;
}

}  // namespace stag::rpc
