// Sizes as people write them: "64K", "1.5G", "10MiB", "1MB".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stag {

// Bytes. K, M, G, T, P and KiB, MiB, ... are powers of 1024; KB, MB, ... of 1000, as coreutils
// have it; without a letter, or with B, it is bytes. Letters may be small. nullopt: it is no size,
// or above 2^64 - 1.
std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace stag
