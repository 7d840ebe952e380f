// The end of a service's Calls, which outlive their connections: before its loops go.
#pragma once

#include "base/loop.h"
#include "base/task.h"
#include "rpc/service.h"

namespace stag::endpoint {

// Of those on `loop`.
inline Task<> quiet(Loop& loop, const rpc::Service& service) {
  while (service.active_calls_on(loop) > 0) co_await sleep_for(loop, std::chrono::milliseconds(1));
}

// Of all, until `deadline` by the loop's clock: whether there are none any more.
inline Task<bool> quiet_within(Loop& loop, const rpc::Service& service, TimePoint deadline) {
  while (service.active_calls() > 0) {
    if (loop.now() >= deadline) co_return false;
    co_await sleep_for(loop, std::chrono::milliseconds(1));
  }
  co_return true;
}

}  // namespace stag::endpoint
