// LastCalls: for how long the calls of a mount go on that is being ended. Most are a courtesy, and
// a server that does not answer gets seconds. What programs wrote is waited for until it is safe,
// for as long as the server keeps what it has delegated to this client: a lease.
//
// Thread: the loop of the Mount. All that it refers to outlives it.
#pragma once

#include "base/cancel.h"
#include "base/loop.h"
#include "fuse/unstable_writes.h"

namespace stag::fuse {

class LastCalls {
 public:
  static constexpr Duration kCourtesy = std::chrono::seconds(5);

  // Cancels `calls` when their time is up.
  LastCalls(Loop& loop, const UnstableWrites& writes, Duration lease, CancelSource& calls);

 private:
  Timer courtesy_;
  Timer lease_;
};

}  // namespace stag::fuse
