// Which bytes of a file are locked, and how, whoever locked them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
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
  void set(const Range& range, RangeMode mode) {
    split_before(range.first);
    if (range.last != Range::kEnd) split_before(range.last + 1);
    const auto end =
        range.last == Range::kEnd ? pieces_.end() : pieces_.lower_bound(range.last + 1);
    pieces_.erase(pieces_.lower_bound(range.first), end);
    if (mode != RangeMode::None) pieces_[range.first] = {range.last, mode};
  }
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
  void split_before(std::uint64_t byte) {
    const auto after = pieces_.lower_bound(byte);
    if (after == pieces_.begin()) return;
    const auto before = std::prev(after);
    if (before->second.last < byte) return;
    const Rest rest = before->second;
    before->second.last = byte - 1;
    pieces_.emplace_hint(after, byte, rest);
  }

  std::map<std::uint64_t, Rest> pieces_;  // by first byte; they do not overlap
};

}  // namespace stag::nfs::state
