// AUTH_SYS (RFC 5531 appendix A): what a client claims about its user, unproven.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/inline_vector.h"
#include "xdr/encoder.h"

namespace stag::oncrpc {

inline constexpr std::uint32_t kMaxMachineName = 255;
inline constexpr std::uint32_t kMaxGids = 16;

struct AuthSys {
  std::uint32_t stamp = 0;
  std::string_view machine;  // a view, at most kMaxMachineName bytes
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  InlineVector<std::uint32_t, kMaxGids> gids{};  // at most kMaxGids
};

// The body of an opaque_auth; nullopt when it is not exactly one authsys_parms within its bounds.
// The machine name points into `body`.
std::optional<AuthSys> decode_auth_sys(Bytes body);
void encode(xdr::Encoder& to, const AuthSys& auth);

}  // namespace stag::oncrpc
