// LeaseTimer: lets leases run out though no client of version 4 calls. For what such a client holds
// others wait, too: those of NFSv3 and NLM, and programs of this machine, which cannot ask for it.
// So do grace periods end, which READ and WRITE of version 4.0 without an open wait for, and
// records go that could not be removed when their clients ended, and locks against programs that
// there was no memory to give back. Looks once a second while there are any of these, and never
// while there are none.
//
// Thread: that of `home`, but look(), which is any. The SharedState and home outlive it.
#pragma once

#include <atomic>

#include "base/loop.h"
#include "nfs/v4/compound/lapsed_locks.h"

namespace stag::nfs::nfs4 {

class SharedState;

class LeaseTimer {
 public:
  // Before the first Call.
  LeaseTimer(SharedState& shared, Loop& home);
  // After the last one.
  ~LeaseTimer();
  LeaseTimer(const LeaseTimer&) = delete;

  Loop& home() const { return home_; }
  LapsedLocks& lapsed_locks() { return lapsed_locks_; }
  // There may be a client, or a grace period, since the last look.
  void look();

 private:
  bool needed() const;
  void arm();
  void expire();

  SharedState& shared_;
  Loop& home_;
  LapsedLocks lapsed_locks_;
  Timer timer_;
  std::atomic<bool> armed_{false};
};

}  // namespace stag::nfs::nfs4
