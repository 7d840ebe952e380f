#include "nfs/v4/compound/shared_state.h"

#include <mutex>

namespace stag::nfs::nfs4 {

std::shared_ptr<const PseudoFs> SharedState::pseudo_fs(
    const std::shared_ptr<const Exports>& exports) {
  {
    const std::lock_guard lock(mutex_);
    if (exports_.lock() == exports) return pseudo_fs_;
  }
  auto made = std::make_shared<const PseudoFs>(*exports, server.handles);
  const std::lock_guard lock(mutex_);
  exports_ = exports;
  pseudo_fs_ = made;
  return made;
}

void SharedState::expire(TimePoint now) {
  constexpr Duration kInterval = std::chrono::seconds(1);
  const TimePoint::rep time = now.time_since_epoch().count();
  TimePoint::rep due = next_expiry_.load(std::memory_order_relaxed);
  if (time < due || !next_expiry_.compare_exchange_strong(due, time + kInterval.count())) return;
  for (const state::LifePtr& ended : clients.expire(now)) release(ended);
}

void SharedState::end_lapsed(state::ClientId client) {
  release(clients.end(client, true));
}

}  // namespace stag::nfs::nfs4
