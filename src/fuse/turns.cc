#include "fuse/turns.h"

namespace stag::fuse {

bool Turns::taken(const Key& key) const {
  const auto found = running_.find(key);
  return found != running_.end() && found->second.alone;
}

Task<Turns::Turn> Turns::alone(Key key) {
  while (taken(key)) co_await waiters_.change();
  running_[key].alone = true;
  Turn turn(*this, key, true);
  while (running_[key].together > 0) co_await waiters_.change();
  co_return turn;
}

Task<Turns::Turn> Turns::together(Key key) {
  while (taken(key)) co_await waiters_.change();
  ++running_[key].together;
  co_return Turn(*this, key, false);
}

void Turns::end(const Key& key, bool alone) {
  const auto found = running_.find(key);
  Operations& operations = found->second;
  if (alone)
    operations.alone = false;
  else
    --operations.together;
  if (!operations.alone && operations.together == 0) running_.erase(found);
  waiters_.tell();
}

}  // namespace stag::fuse
