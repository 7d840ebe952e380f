#include "nfs/session/slots.h"

#include <algorithm>

namespace stag::nfs::session {

void Slots::reset(std::uint32_t count) {
  slots_.fill(Slot{});
  ++table_;
  count_ = usable_ = std::min(count, kMost);
}

std::optional<Slots::Turn> Slots::take_slot(bool doubtful) {
  for (std::uint32_t i = 0; i < usable_; ++i) {
    Slot& slot = slots_[i];
    if (slot.taken || slot.doubtful != doubtful) continue;
    slot.taken = true;
    return Turn{table_, i, slot.next, doubtful};
  }
  return std::nullopt;
}

std::optional<Slots::Turn> Slots::take() {
  if (const std::optional<Turn> certain = take_slot(false)) return certain;
  return take_slot(true);
}

void Slots::give_back(const Turn& turn, Number number) {
  if (!current(turn)) return;
  Slot& slot = slots_[turn.slot];
  slot.taken = false;
  slot.doubtful = number == Number::Doubtful;
  slot.next = number == Number::Used ? turn.sequence + 1 : turn.sequence;
}

void Slots::settle(Turn& turn) {
  turn.doubtful = false;
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

v4::slotid4 Slots::highest_in_use() const {
  for (std::uint32_t i = count_; i > 0; --i)
    if (slots_[i - 1].taken) return i - 1;
  return 0;
}

}  // namespace stag::nfs::session
