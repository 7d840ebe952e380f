#include "nfs/v4/compound/lease_timer.h"

#include "nfs/v4/compound/shared_state.h"

namespace stag::nfs::nfs4 {

LeaseTimer::LeaseTimer(SharedState& shared, Loop& home)
    : shared_(shared), home_(home), lapsed_locks_(shared, home) {
  shared_.lease_timer.store(this, std::memory_order_release);
  look();
}

LeaseTimer::~LeaseTimer() {
  shared_.lease_timer.store(nullptr, std::memory_order_release);
}

void LeaseTimer::look() {
  if (!armed_ && needed()) home_.post([this] { arm(); });
}

bool LeaseTimer::needed() const {
  const recovery::Recovery* const recovery = shared_.options.recovery;
  return shared_.clients.any_confirmed() || shared_.files.untold() ||
         shared_.server.local_locks->overdue() || shared_.options.grace->active() ||
         lapsed_locks_.any() || (recovery != nullptr && recovery->unremoved());
}

void LeaseTimer::arm() {
  if (armed_ || !needed()) return;
  timer_ = home_.after(std::chrono::seconds(1), [this] { expire(); });
  armed_ = true;
}

void LeaseTimer::expire() {
  armed_ = false;
  arm();
  LocalLockTable& local = *shared_.server.local_locks;
  if (local.overdue()) local.reconcile_overdue();
  shared_.expire(home_.now());
  lapsed_locks_.look();
}

}  // namespace stag::nfs::nfs4
