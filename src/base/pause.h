// co_await pause(loop, 10ms, token): sleeps on `loop`, but not beyond the pull of `token`.
#pragma once

#include "base/cancel.h"
#include "base/loop.h"
#include "base/task.h"

namespace stag {

Task<void> pause(Loop& loop, Duration length, CancelToken token);

}  // namespace stag
