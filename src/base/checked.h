// Arithmetic on numbers that a peer sent: every sum reports an overflow.
#pragma once

#include <concepts>
#include <optional>

namespace stag {

template <std::unsigned_integral Integer>
constexpr std::optional<Integer> checked_add(Integer a, Integer b) {
  Integer sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// Whether [offset, offset + length) lies in [0, size), without ever overflowing.
template <std::unsigned_integral Integer>
constexpr bool range_within(Integer offset, Integer length, Integer size) {
  return offset <= size && length <= size - offset;
}

}  // namespace stag
