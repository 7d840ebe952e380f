// The status monitor, version 1 (X/Open XNFS, chapter 11): hears which clients restarted. It
// monitors for the lock manager in this process and for nobody else, so SM_MON is declined: its
// state counts restarts of this process, at which other programs of the host lose nothing.
#pragma once

#include "nfs/lock/nlm.h"

namespace stag::nfs::lock {

// A restart that is only played, as SM_SIMU_CRASH asks for, with the grace period that follows.
// Blocking.
Result<Ok, StateError> restart(NlmContext& context, TimePoint grace_end);

rpc::Program nsm1(NlmContext& context, Duration grace);

}  // namespace stag::nfs::lock
