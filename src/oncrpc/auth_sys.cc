#include "oncrpc/auth_sys.h"

#include "xdr/decoder.h"

namespace stag::oncrpc {

std::optional<AuthSys> decode_auth_sys(Bytes body) {
  xdr::Decoder from(Buffer::borrow(body));
  AuthSys auth;
  Bytes machine;
  std::uint32_t count = 0;
  if (!from.u32(auth.stamp) || !from.inline_opaque(machine, kMaxMachineName) ||
      !from.u32(auth.uid) || !from.u32(auth.gid) || !from.count(count, kMaxGids, 4))
    return std::nullopt;
  auth.machine = text_of(machine);
  for (std::uint32_t i = 0; i < count; ++i)
    if (!from.u32(auth.gids.emplace_back(0u))) return std::nullopt;
  if (!from.finish().ok()) return std::nullopt;
  return auth;
}

void encode(xdr::Encoder& to, const AuthSys& auth) {
  to.u32(auth.stamp);
  to.string(xdr::kNoItem, auth.machine, kMaxMachineName);
  to.u32(auth.uid);
  to.u32(auth.gid);
  if (!to.count(auth.gids.size(), kMaxGids)) return;
  for (std::uint32_t gid : auth.gids) to.u32(gid);
}

}  // namespace stag::oncrpc
