#include "nfs/lock/range_parts.h"

#include <algorithm>
#include <iterator>

namespace stag::nfs::lock {

namespace {

// The first part that ends in this range or behind it.
RangeParts::const_iterator first_near(const RangeParts& parts, const Range& range) {
  return std::lower_bound(
      parts.begin(), parts.end(), range.first,
      [](const RangePart& part, std::uint64_t first) { return part.range.last < first; });
}

}  // namespace

std::vector<Range> outside(Range range, const RangeParts& parts) {
  std::vector<Range> left;
  for (auto at = first_near(parts, range); at != parts.end() && at->range.first <= range.last;
       ++at) {
    if (range.first < at->range.first) left.push_back({range.first, at->range.first - 1});
    if (range.last <= at->range.last) return left;
    range.first = at->range.last + 1;
  }
  left.push_back(range);
  return left;
}

RangeParts within(const RangeParts& parts, const Range& range) {
  RangeParts found;
  for (auto at = first_near(parts, range); at != parts.end() && at->range.first <= range.last; ++at)
    found.push_back({{std::max(at->range.first, range.first), std::min(at->range.last, range.last)},
                     at->exclusive});
  return found;
}

RangeParts without(const RangeParts& parts, const RangeParts& cut) {
  RangeParts left;
  for (const RangePart& part : parts)
    for (const Range& range : outside(part.range, cut)) left.push_back({range, part.exclusive});
  return left;
}

RangeParts merged(const RangeParts& a, const RangeParts& b) {
  RangeParts all;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all),
             [](const RangePart& x, const RangePart& y) { return x.range.first < y.range.first; });
  return all;
}

}  // namespace stag::nfs::lock
