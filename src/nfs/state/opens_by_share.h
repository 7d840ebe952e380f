// The opens of one file by what they access and deny together, so that who is in the way of another
// one is found at once: a client may have opened a file as often as it may have states, and each
// READ, of versions 2 and 3 as well, may have to ask. Nothing is allocated.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "nfs/state/linked_list.h"

namespace stag::nfs::state {

// `Open` has `access` and `deny`, sets of two bits each, and a Link `of_file`.
template <class Open>
class OpensByShare {
 public:
  void put(Open& open) {
    const std::uint32_t kind = kind_of(open.access, open.deny);
    lists_[kind].push_front(open);
    used_ |= 1u << kind;
  }
  // With the bits that it was put with.
  void take(Open& open) {
    const std::uint32_t kind = kind_of(open.access, open.deny);
    lists_[kind].erase(open);
    if (lists_[kind].empty()) used_ &= ~(1u << kind);
  }
  // The first of those that deny some of `access`, or access some of `deny`, of which `accepts` is
  // true. It is asked of no others, and no others are looked at. Null: there is none.
  template <class Accepts>
  Open* find_conflict(std::uint32_t access, std::uint32_t deny, Accepts accepts) const {
    for (std::uint32_t kinds = used_ & kConflicting[kind_of(access, deny)]; kinds != 0;
         kinds &= kinds - 1) {
      const List& list = lists_[static_cast<std::size_t>(std::countr_zero(kinds))];
      for (Open* open = list.front(); open != nullptr; open = list.next(*open))
        if (accepts(*open)) return open;
    }
    return nullptr;
  }

 private:
  using List = LinkedList<Open, &Open::of_file>;
  static constexpr std::uint32_t kKinds = 16;
  static constexpr std::uint32_t kind_of(std::uint32_t access, std::uint32_t deny) {
    return access << 2 | deny;
  }

  // Bit n: an open of kind n is in the way of one of this kind.
  static constexpr std::array<std::uint32_t, kKinds> kConflicting = [] {
    std::array<std::uint32_t, kKinds> all{};
    for (std::uint32_t one = 0; one < kKinds; ++one)
      for (std::uint32_t other = 0; other < kKinds; ++other)
        if (((one >> 2 & other) | (other >> 2 & one)) & 3) all[one] |= 1u << other;
    return all;
  }();

  std::array<List, kKinds> lists_;
  std::uint32_t used_ = 0;  // bit n: there are some of kind n
};

}  // namespace stag::nfs::state
