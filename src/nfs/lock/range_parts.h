// RangeParts: what an owner of locks has, or had, in a range of bytes, part by part. Pure.
#pragma once

#include <optional>
#include <vector>

#include "nfs/state/range.h"

namespace stag::nfs::lock {

using state::Range;

struct RangePart {
  Range range;
  std::optional<bool> exclusive;  // nothing: not locked
  friend bool operator==(const RangePart&, const RangePart&) = default;
};
// In order; none overlaps another.
using RangeParts = std::vector<RangePart>;

// What no part covers of a range, in order.
std::vector<Range> outside(Range range, const RangeParts& parts);
RangeParts within(const RangeParts& parts, const Range& range);
RangeParts without(const RangeParts& parts, const RangeParts& cut);
// Of parts that do not overlap.
RangeParts merged(const RangeParts& a, const RangeParts& b);

}  // namespace stag::nfs::lock
