#include "vfs/ceph/name_turns.h"

namespace stag::vfs::ceph {

std::optional<NameTurns::Turn> NameTurns::together() {
  std::unique_lock lock(mutex_);
  if (!ended_.wait_for(lock, patience_, [this] { return !alone_ && renames_ == 0; }))
    return std::nullopt;
  ++together_;
  return Turn(*this, false);
}

std::optional<NameTurns::Turn> NameTurns::alone() {
  std::unique_lock lock(mutex_);
  // Else renames would wait for ever where others come all the time.
  const bool keeps_out = Clock::now() >= rests_until_;
  if (keeps_out) ++renames_;
  const bool free = ended_.wait_for(lock, patience_, [this] { return !alone_ && together_ == 0; });
  if (keeps_out) --renames_;
  if (free) {
    alone_ = true;
    return Turn(*this, true);
  }
  if (keeps_out) rests_until_ = Clock::now() + rest_;
  ended_.notify_all();
  return std::nullopt;
}

void NameTurns::end(bool alone) {
  const std::scoped_lock lock(mutex_);
  if (alone)
    alone_ = false;
  else
    --together_;
  ended_.notify_all();
}

}  // namespace stag::vfs::ceph
