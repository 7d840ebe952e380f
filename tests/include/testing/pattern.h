// Bytes by which a test knows what it got: other ones at each place and for each seed. The shorter
// of two patterns of one seed is the beginning of the longer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace stag::testing {

inline void fill_pattern(MutableBytes to, std::uint32_t seed) {
  std::byte* place = to.data();
  std::uint64_t state = seed + 1;
  // A word at a time: traffic under a thousand seeds is a gigabyte of it, compiled for debugging.
  for (std::size_t left = to.size(); left > 0;) {
    // The step and the mixing of SplitMix64.
    std::uint64_t word = state += 0x9E37'79B9'7F4A'7C15;
    word = (word ^ (word >> 30)) * 0xBF58'476D'1CE4'E5B9;
    word = (word ^ (word >> 27)) * 0x94D0'49BB'1331'11EB;
    word ^= word >> 31;
    const std::size_t part = std::min(left, sizeof word);
    std::memcpy(place, &word, part);
    place += part;
    left -= part;
  }
}

}  // namespace stag::testing
