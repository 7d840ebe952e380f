// SipHash-2-4 (Aumasson, Bernstein 2012): a keyed pseudo-random function of 64 bits, meant for
// authenticating short messages.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"

namespace stag::nfs {

using MacKey = std::array<std::byte, 16>;

std::uint64_t siphash24(const MacKey& key, Bytes message);

}  // namespace stag::nfs
