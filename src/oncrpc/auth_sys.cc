#include "oncrpc/auth_sys.h"

namespace stag::oncrpc {

// Every Call brings one, so it is not read word by word: the lengths say where everything stands.
std::optional<AuthSys> decode_auth_sys(Bytes body) {
  constexpr std::size_t kBeforeName = 8;   // stamp, length of the name
  constexpr std::size_t kBehindName = 12;  // uid, gid, count of the gids
  const auto word = [body](std::size_t at) { return load_be<std::uint32_t>(body.data() + at); };
  if (body.size() < kBeforeName || word(4) > kMaxMachineName) return std::nullopt;
  const std::size_t name = word(4);
  const std::size_t ids = kBeforeName + name + xdr_pad(name);
  if (body.size() < ids + kBehindName || word(ids + 8) > kMaxGids) return std::nullopt;
  const std::size_t count = word(ids + 8);
  if (body.size() != ids + kBehindName + 4 * count) return std::nullopt;
  AuthSys auth;
  auth.stamp = word(0);
  auth.machine = text_of(body.subspan(kBeforeName, name));
  auth.uid = word(ids);
  auth.gid = word(ids + 4);
  for (std::size_t i = 0; i < count; ++i) auth.gids.push_back(word(ids + kBehindName + 4 * i));
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
