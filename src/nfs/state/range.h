// Bytes of a file as locks name them.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>

namespace stag::nfs::state {

// Bytes `first` to `last`, both included.
struct Range {
  static constexpr std::uint64_t kEnd = ~std::uint64_t{0};
  std::uint64_t first = 0;
  std::uint64_t last = kEnd;  // kEnd: to the end of the file, however far it grows

  bool overlaps(const Range& other) const { return first <= other.last && other.first <= last; }
  // They overlap or are neighbours: together they are one range.
  bool joins(const Range& other) const {
    return overlaps(other) || (last != kEnd && last + 1 == other.first) ||
           (other.last != kEnd && other.last + 1 == first);
  }
  friend auto operator<=>(const Range&, const Range&) = default;
};
// From the first byte of both to the last.
inline Range hull(const Range& a, const Range& b) {
  return {std::min(a.first, b.first), std::max(a.last, b.last)};
}
// Of what there is.
inline std::optional<Range> hull(const std::optional<Range>& a, const std::optional<Range>& b) {
  return a && b ? hull(*a, *b) : a ? a : b;
}
// RFC 1813 6.1.4: length 0 reaches to the end of the file; so does, with some clients, all ones.
// Nothing when the range goes beyond what 64 bits count.
inline std::optional<Range> range_of(std::uint64_t offset, std::uint64_t length) {
  if (length == 0 || length == Range::kEnd) return Range{offset, Range::kEnd};
  if (length - 1 > Range::kEnd - offset) return std::nullopt;
  return Range{offset, offset + (length - 1)};
}

// RFC 8881 18.10.3: all ones reaches to the end of the file. Nothing (INVAL) when the length is 0,
// or offset and length together are more than 64 bits count.
inline std::optional<Range> byte_range(std::uint64_t offset, std::uint64_t length) {
  if (length == Range::kEnd) return Range{offset, Range::kEnd};
  if (length == 0 || length > Range::kEnd - offset) return std::nullopt;
  return Range{offset, offset + (length - 1)};
}
// The other way round, for LOCK4denied.
inline std::uint64_t length_of(const Range& range) {
  return range.last == Range::kEnd ? Range::kEnd : range.last - range.first + 1;
}

}  // namespace stag::nfs::state
