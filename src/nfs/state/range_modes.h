// Which bytes of a file are locked, and how, whichever owner locked them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "nfs/state/range.h"

namespace stag::nfs::state {

enum class RangeMode : std::uint8_t { None, Shared, Exclusive };

class RangeModes {
 public:
  struct Piece {
    Range range;
    RangeMode mode = RangeMode::None;
  };

  bool empty() const { return pieces_.empty(); }
  // The whole range, in order; neighbours differ.
  std::vector<Piece> within(const Range& range) const {
    std::vector<Piece> found;
    const auto add = [&found](const Range& piece, RangeMode mode) {
      if (!found.empty() && found.back().mode == mode)
        found.back().range.last = piece.last;
      else
        found.push_back({piece, mode});
    };
    std::uint64_t next = range.first;
    bool ended = false;
    auto at = pieces_.upper_bound(range.first);
    if (at != pieces_.begin()) --at;
    for (; at != pieces_.end() && at->first <= range.last && !ended; ++at) {
      const Range piece{std::max(at->first, range.first), std::min(at->second.last, range.last)};
      if (piece.first > piece.last) continue;
      if (piece.first > next) add({next, piece.first - 1}, RangeMode::None);
      add(piece, at->second.mode);
      ended = piece.last == range.last;
      next = piece.last + 1;
    }
    if (!ended) add({next, range.last}, RangeMode::None);
    return found;
  }
  // All of it or, where memory runs out, nothing.
  void set(const Range& range, RangeMode mode) { set(range, mode, prepare(range, mode)); }
  // What was weaker in this range gets this mode.
  void raise(const Range& range, RangeMode mode) {
    for (const Piece& piece : within(range))
      if (piece.mode < mode) set(piece.range, mode);
  }

 private:
  struct Rest {
    std::uint64_t last = 0;
    RangeMode mode = RangeMode::None;
  };
  using Pieces = std::map<std::uint64_t, Rest>;  // by first byte; they do not overlap

 public:
  // What set() needs memory for, for those who do something else in between that may not be done in
  // vain. Nothing else is set meanwhile.
  using Prepared = Pieces::node_type;
  Prepared prepare(const Range& range, RangeMode mode) {
    split_before(range.first);
    if (range.last != Range::kEnd) split_before(range.last + 1);
    if (mode == RangeMode::None || pieces_.lower_bound(range.first) != end_of(range)) return {};
    Pieces one;
    one.try_emplace(range.first);
    return one.extract(one.begin());
  }
  void set(const Range& range, RangeMode mode, Prepared prepared) {
    auto at = pieces_.lower_bound(range.first);
    const auto end = end_of(range);
    if (mode != RangeMode::None && at != end) prepared = pieces_.extract(at++);
    pieces_.erase(at, end);
    if (mode == RangeMode::None) return;
    prepared.key() = range.first;
    prepared.mapped() = {range.last, mode};
    pieces_.insert(std::move(prepared));
  }

 private:
  // The first piece behind it, once there is none across its end.
  Pieces::iterator end_of(const Range& range) {
    return range.last == Range::kEnd ? pieces_.end() : pieces_.lower_bound(range.last + 1);
  }
  void split_before(std::uint64_t byte) {
    const auto after = pieces_.lower_bound(byte);
    if (after == pieces_.begin()) return;
    const auto before = std::prev(after);
    if (before->second.last < byte) return;
    pieces_.emplace_hint(after, byte, before->second);
    before->second.last = byte - 1;
  }

  Pieces pieces_;
};

}  // namespace stag::nfs::state
