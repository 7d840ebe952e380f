// Slots: the requester's half of a session's slot table (RFC 8881 section 2.10.6.1). A call takes a
// slot with the sequence number that is next there, and gives it back with what became of the
// number. A slot whose call got no answer is in doubt: whoever takes it next first finds out with a
// lone SEQUENCE of the same number whether the server has used it (RFC 8267 section 6.6).
//
// Pure: no clock, no thread; the memory is bounded by kMost.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>

#include "nfs/proto/nfs4.h"

namespace stag::nfs::session {

class Slots {
 public:
  static constexpr std::uint32_t kMost = 64;

  struct Turn {
    std::uint32_t table = 0;  // of several sessions in a row
    v4::slotid4 slot = 0;
    v4::sequenceid4 sequence = 0;
    bool doubtful = false;  // the number may have been used: to be settled first
    bool repeated = false;  // its call was sent more than once: the server may be at the first one
    // The incarnation of the client, where nothing was left to be reclaimed when the call was sent
    // first; else 0. The session fills it in; a turn in doubt has that of the call that got no
    // answer.
    std::uint32_t reclaimed = 0;
  };
  enum class Number : std::uint8_t { Used, Unused, Doubtful };
  // Of slots, by number.
  using Set = std::uint64_t;

  // A new session with `count` slots, at most kMost of which are used. Turns of the table before
  // mean nothing any more.
  void reset(std::uint32_t count);
  // The lowest free slot, one that is not in doubt if there is any; nullopt: none is free.
  std::optional<Turn> take() {
    if (!has_free()) return std::nullopt;
    const Set certain = free() & ~doubtful_;
    const auto slot = static_cast<v4::slotid4>(std::countr_zero(certain != 0 ? certain : free()));
    taken_ |= Set{1} << slot;
    Turn turn{table_, slot, next_[slot], certain == 0};
    if (turn.doubtful) turn.reclaimed = reclaimed_[slot];
    return turn;
  }
  // Whether take() would give one, and one that is not in doubt.
  bool has_free() const { return free() != 0; }
  bool has_certain() const { return (free() & ~doubtful_) != 0; }
  void give_back(const Turn& turn, Number number) {
    if (!current(turn)) return;
    const Set slot = Set{1} << turn.slot;
    taken_ &= ~slot;
    doubtful_ = number == Number::Doubtful ? doubtful_ | slot : doubtful_ & ~slot;
    if (number == Number::Doubtful) reclaimed_[turn.slot] = turn.reclaimed;
    next_[turn.slot] = number == Number::Used ? turn.sequence + 1 : turn.sequence;
  }
  // The server has used the number of a doubtful turn, which goes on with the next one.
  void settle(Turn& turn);
  // The server asks that no slot above be used (sr_target_highest_slotid).
  void aim_at(v4::slotid4 highest) { usable_ = highest < count_ ? highest + 1 : count_; }
  // The server does not know this slot, and so none above it; false if none is left.
  [[nodiscard]] bool drop_from(v4::slotid4 slot);

  // Whether the call that took the slot with this number has no answer yet; one that was given up
  // is not waited for.
  bool awaits(v4::slotid4 slot, v4::sequenceid4 sequence) const;

  // Of all turns that are taken: sa_highest_slotid. 0 where there is none.
  static v4::slotid4 highest_of(Set slots) {
    return slots == 0 ? 0 : static_cast<v4::slotid4>(std::bit_width(slots)) - 1;
  }
  std::uint32_t usable() const { return usable_; }
  bool current(const Turn& turn) const { return turn.table == table_ && turn.slot < count_; }

  // Of turns: which table they are of, and of this one the slots that are taken.
  std::uint32_t table() const { return table_; }
  Set in_use() const { return taken_ & first(count_); }

 private:
  static_assert(kMost == std::numeric_limits<Set>::digits);
  Set free() const { return first(usable_) & ~taken_; }
  static Set first(std::uint32_t count) { return count == 0 ? 0 : ~Set{0} >> (kMost - count); }

  std::array<v4::sequenceid4, kMost> next_{};
  std::array<std::uint32_t, kMost> reclaimed_{};  // of those in doubt
  Set taken_ = 0;
  Set doubtful_ = 0;
  std::uint32_t table_ = 0;
  std::uint32_t count_ = 0;   // that the server knows
  std::uint32_t usable_ = 0;  // that it wants used
};

}  // namespace stag::nfs::session
