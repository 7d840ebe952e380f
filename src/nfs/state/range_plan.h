// What setting or unlocking a range comes to by the rules of POSIX (fcntl(2); RFC 8881 9.2, 9.3):
// it replaces what its owner has there, neighbouring ranges of one mode become one, and unlocking a
// part of a range splits it. NLM and NFSv4 keep different records of a locked range; `Held` is
// either of them, with its bytes as `range`. The ranges of one owner do not overlap, and a map has
// them by their first bytes.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "nfs/state/range.h"

namespace stag::nfs::state {

// The last that begins at or before the range, even as its neighbour, or the first behind it.
template <class Held>
auto first_that_may_join(const std::map<std::uint64_t, Held>& ranges, const Range& range) {
  const auto behind = ranges.lower_bound(range.first);
  return behind == ranges.begin() ? behind : std::prev(behind);
}

// Calls gone(held) for each of an owner's ranges that setting this one ends: those it overlaps, and
// its neighbours with which it becomes one, as merges(held) says. What it leaves of the others it
// passes to left(held, rest). Returns the range with all that merges.
template <class Held, class Merges, class Gone, class Left>
Range plan_range(const std::map<std::uint64_t, Held>& ranges, const Range& range, Merges merges,
                 Gone gone, Left left) {
  Range merged = range;
  for (auto at = first_that_may_join(ranges, range); at != ranges.end(); ++at) {
    const Held& held = at->second;
    // A direct neighbour behind the range still joins; those behind that one do not.
    if (held.range.first > range.last && !held.range.joins(range)) break;
    if (merges(held)) {
      if (!held.range.joins(range)) continue;
      gone(held);
      merged = hull(merged, held.range);
    } else if (held.range.overlaps(range)) {
      gone(held);
      if (held.range.first < range.first) left(held, Range{held.range.first, range.first - 1});
      if (held.range.last > range.last) left(held, Range{range.last + 1, held.range.last});
    }
  }
  return merged;
}

// Inserts an owner's ranges, each into index_of(held): all of them or, where memory runs out, none.
template <class Held, class Holder, class IndexOf>
void insert_all(const std::map<std::uint64_t, Held>& ranges, const Holder& holder,
                IndexOf index_of) {
  auto at = ranges.begin();
  try {
    for (; at != ranges.end(); ++at) index_of(at->second).insert(at->second.range, &holder);
  } catch (...) {
    while (at != ranges.begin()) {
      --at;
      index_of(at->second).erase(at->second.range, &holder);
    }
    throw;
  }
}

}  // namespace stag::nfs::state
