#include "nfs/session/slots.h"

#include <algorithm>
#include <bit>

namespace stag::nfs::session {

void Slots::reset(std::uint32_t count) {
  next_.fill(1);
  taken_ = doubtful_ = 0;
  ++table_;
  count_ = usable_ = std::min(count, kMost);
}

std::optional<Slots::Turn> Slots::take() {
  if (!has_free()) return std::nullopt;
  const Set certain = free() & ~doubtful_;
  const auto slot = static_cast<v4::slotid4>(std::countr_zero(certain != 0 ? certain : free()));
  taken_ |= Set{1} << slot;
  Turn turn{table_, slot, next_[slot], certain == 0};
  if (turn.doubtful) turn.reclaimed = reclaimed_[slot];
  return turn;
}

void Slots::give_back(const Turn& turn, Number number) {
  if (!current(turn)) return;
  const Set slot = Set{1} << turn.slot;
  taken_ &= ~slot;
  doubtful_ = number == Number::Doubtful ? doubtful_ | slot : doubtful_ & ~slot;
  if (number == Number::Doubtful) reclaimed_[turn.slot] = turn.reclaimed;
  next_[turn.slot] = number == Number::Used ? turn.sequence + 1 : turn.sequence;
}

void Slots::settle(Turn& turn) {
  turn.doubtful = turn.repeated = false;
  ++turn.sequence;
}

void Slots::aim_at(v4::slotid4 highest) {
  usable_ = highest < count_ ? highest + 1 : count_;
}

bool Slots::drop_from(v4::slotid4 slot) {
  count_ = std::min(count_, slot);
  usable_ = std::min(usable_, count_);
  return count_ > 0;
}

// A turn that was in doubt goes on with the number behind.
bool Slots::awaits(v4::slotid4 slot, v4::sequenceid4 sequence) const {
  if (slot >= count_) return false;
  const Set one = Set{1} << slot;
  const v4::sequenceid4 sent = next_[slot] + ((doubtful_ & one) != 0 ? 1 : 0);
  return (taken_ & one) != 0 && sequence == sent;
}

v4::slotid4 Slots::highest_of(Set slots) {
  return slots == 0 ? 0 : static_cast<v4::slotid4>(std::bit_width(slots)) - 1;
}

}  // namespace stag::nfs::session
