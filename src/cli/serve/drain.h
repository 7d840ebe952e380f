// Drain: the end of a server that leaves nothing half done. New Calls are not begun any more, and
// those in progress get their time.
#pragma once

#include <functional>

#include "base/loop.h"
#include "rpc/server.h"

namespace stag::cli {

// On the thread of `loop`.
class Drain {
 public:
  // Calls `done` when no Call is in progress, when `limit` has passed, or after hurry(); once.
  // Both references outlive it.
  Drain(Loop& loop, rpc::Server& server, Duration limit, std::function<void()> done);
  // Waits no longer.
  void hurry() { deadline_ = loop_.now(); }

 private:
  void look();

  Loop& loop_;
  rpc::Server& server_;
  TimePoint deadline_;
  const std::function<void()> done_;
  Timer timer_;
};

}  // namespace stag::cli
