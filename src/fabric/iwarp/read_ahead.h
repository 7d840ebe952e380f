// How much a turn of a connection reads ahead of what it knows, in bytes.
#pragma once

#include <algorithm>
#include <cstddef>

namespace stag::fabric {

// Room for small messages that come many at a time. What a large FPDU begins with is copied out of
// it, so not more until a turn has filled it with small ones.
inline constexpr std::size_t kReadAhead = 16 * 1024;
inline constexpr std::size_t kLargestReadAhead = 64 * 1024;
// Room behind a direct target: the end of its FPDU, and the next one's header or a whole small
// message.
inline constexpr std::size_t kBehindDirect = 1024;
// Room for the end of an FPDU too short to be a direct target, and as much again.
inline constexpr std::size_t kAfterDirect = 2 * 1024;

// Where other connections of the loop wait for their turn. Small FPDUs cost by number, so a turn
// takes about as many of any size: of small ones what fits here at first, else eight, if the next
// are as large as the last.
inline constexpr std::size_t kReadAheadInCrowd = 2 * 1024;
inline constexpr std::size_t kFpdusInCrowd = 8;

// After a turn in which `bytes` were read that ended `fpdus`.
inline std::size_t read_ahead_in_crowd(std::size_t bytes, std::size_t fpdus) {
  const std::size_t wanted = bytes * kFpdusInCrowd / std::max<std::size_t>(fpdus, 1);
  return std::clamp(wanted, kReadAheadInCrowd, kReadAhead);
}

}  // namespace stag::fabric
