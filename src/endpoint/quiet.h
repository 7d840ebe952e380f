// The end of a service's Calls, which outlive their connections: before its loops go.
#pragma once

#include "base/loop.h"
#include "base/task.h"
#include "rpc/service.h"

namespace stag::endpoint {

inline Task<> quiet(Loop& loop, const rpc::Service& service) {
  while (service.active_calls() > 0) co_await sleep_for(loop, std::chrono::milliseconds(1));
}

}  // namespace stag::endpoint
