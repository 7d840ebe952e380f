// Ranges of many holders, which may overlap: tells without looking at all of them whether anybody
// but one holder has something within a range. Those of one holder may overlap, too, as while
// others take their place.
//
// A sorted sequence in blocks. Each block knows how far its ranges reach, and how far those of all
// holders but the one that reaches furthest do; so a search looks at the summary of each block and
// into two blocks at most. It stays that cheap whatever ranges a peer chooses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "nfs/state/range.h"

namespace stag::nfs::state {

// `Holder` is told apart by its address.
template <class Holder>
class RangeIndex {
 public:
  struct Entry {
    Range range;
    const Holder* holder = nullptr;
  };

  // A range that overlaps this one and whose holder is another.
  const Entry* find_other(const Range& range, const Holder* holder) const {
    for (const Block& block : blocks_) {
      if (block.entries.front().range.first > range.last) break;
      if (!block.reaches(range.first, holder)) continue;
      for (const Entry& entry : block.entries)
        if (entry.holder != holder && entry.range.overlaps(range)) return &entry;
    }
    return nullptr;
  }

  // Calls `function` with each range that overlaps this one, while it returns true.
  template <class Function>
  void each(const Range& range, Function function) const {
    for (const Block& block : blocks_) {
      if (block.entries.front().range.first > range.last) return;
      if (block.furthest.last < range.first) continue;
      for (const Entry& entry : block.entries)
        if (entry.range.overlaps(range) && !function(entry.range)) return;
    }
  }

  // Calls `function` with whose each range is, while it returns true.
  template <class Function>
  void each_holder(Function function) const {
    for (const Block& block : blocks_)
      for (const Entry& entry : block.entries)
        if (!function(*entry.holder)) return;
  }

  // All of it or, where memory runs out, nothing.
  void insert(const Range& range, const Holder* holder) {
    const Entry entry{range, holder};
    auto block = block_for(entry);
    if (block == blocks_.end()) {
      blocks_.push_back(Block{{entry}, {}, {}});
      return blocks_.back().summarize();
    }
    if (block->entries.size() >= kMost) {
      split(block);
      block = block_for(entry);
    }
    std::vector<Entry>& entries = block->entries;
    entries.insert(std::upper_bound(entries.begin(), entries.end(), entry, before), entry);
    block->summarize();
  }

  // One that was inserted.
  void erase(const Range& range, const Holder* holder) noexcept {
    const Entry entry{range, holder};
    const auto block = block_for(entry);
    std::vector<Entry>& entries = block->entries;
    entries.erase(std::lower_bound(entries.begin(), entries.end(), entry, before));
    if (entries.empty())
      blocks_.erase(block);
    else
      block->summarize();
  }

 private:
  static constexpr std::size_t kMost = 128;  // entries of a block

  struct Reach {
    const Holder* holder = nullptr;  // null: nobody
    std::uint64_t last = 0;
  };
  struct Block {
    std::vector<Entry> entries;  // never empty
    Reach furthest;
    Reach other;  // the furthest of another holder

    bool reaches(std::uint64_t byte, const Holder* except) const {
      const Reach& reach = furthest.holder == except ? other : furthest;
      return reach.holder != nullptr && reach.last >= byte;
    }
    void summarize() {
      furthest = other = {};
      for (const Entry& entry : entries) {
        if (furthest.holder == nullptr || entry.range.last > furthest.last) {
          if (furthest.holder != entry.holder) other = furthest;
          furthest = {entry.holder, entry.range.last};
        } else if (entry.holder != furthest.holder &&
                   (other.holder == nullptr || entry.range.last > other.last)) {
          other = {entry.holder, entry.range.last};
        }
      }
    }
  };
  using Blocks = std::vector<Block>;

  static bool before(const Entry& a, const Entry& b) {
    if (a.range != b.range) return a.range < b.range;
    return std::less<const Holder*>()(a.holder, b.holder);
  }
  // Where this entry is or goes: the first block whose last entry is not before it, or the last.
  typename Blocks::iterator block_for(const Entry& entry) {
    const auto block = std::lower_bound(
        blocks_.begin(), blocks_.end(), entry,
        [](const Block& one, const Entry& wanted) { return before(one.entries.back(), wanted); });
    return block == blocks_.end() && !blocks_.empty() ? std::prev(block) : block;
  }
  void split(typename Blocks::iterator block) {
    const auto middle = static_cast<std::ptrdiff_t>(block->entries.size() / 2);
    Block second;
    second.entries.assign(block->entries.begin() + middle, block->entries.end());
    second.summarize();
    block = std::prev(blocks_.insert(block + 1, std::move(second)));
    block->entries.resize(static_cast<std::size_t>(middle));
    block->summarize();
  }

  Blocks blocks_;
};

}  // namespace stag::nfs::state
