#include "nfs/session/slots.h"

#include <algorithm>

namespace stag::nfs::session {

void Slots::reset(std::uint32_t count) {
  next_.fill(1);
  taken_ = doubtful_ = 0;
  ++table_;
  count_ = usable_ = std::min(count, kMost);
}

void Slots::settle(Turn& turn) {
  turn.doubtful = turn.repeated = false;
  ++turn.sequence;
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

}  // namespace stag::nfs::session
