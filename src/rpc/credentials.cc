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
  const Buffer body = std::move(encoder).finish().rope().flatten();
  return Credentials({oncrpc::AuthFlavor::AUTH_SYS, body.bytes()});
}

Credentials Credentials::secured(std::shared_ptr<ClientSecurity> security) {
  Credentials made;
  made.security_ = std::move(security);
  return made;
}

oncrpc::OpaqueAuth Credentials::credential() const {
  const std::byte* const at = encoded_.data();
  return {static_cast<oncrpc::AuthFlavor>(load_be<std::uint32_t>(at)),
          encoded_.bytes().subspan(8, load_be<std::uint32_t>(at + 4))};
}

Credentials::Credentials(const oncrpc::OpaqueAuth& credential) {
  xdr::Encoder encoder;
  oncrpc::encode(encoder, credential);
  oncrpc::encode(encoder, oncrpc::OpaqueAuth{});  // the verifier of both flavors is empty
  encoded_ = std::move(encoder).finish().rope().flatten();
}

}  // namespace stag::rpc
