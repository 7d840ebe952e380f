#include "cli/serve/departure.h"

#include <unistd.h>

#include <utility>

#include "base/failure.h"
#include "cli/support/command.h"
#include "net/abandon.h"
#include "net/blocked_signals.h"

namespace stag::cli {

Departure::Departure(std::function<void()> complain, std::function<void()> last)
    : complain_(std::move(complain)), last_(std::move(last)) {
  const net::BlockedSignals blocked;
  thread_ = std::thread([this] { watch(); });
}

Departure::~Departure() {
  {
    const std::lock_guard lock(mutex_);
    left_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Departure::begin(Duration time) {
  {
    const std::lock_guard lock(mutex_);
    if (!deadline_) deadline_ = std::chrono::steady_clock::now() + time;
  }
  changed_.notify_one();
}

void Departure::watch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return left_ || deadline_; });
  if (changed_.wait_until(lock, deadline_.value_or(TimePoint::max()), [this] { return left_; }))
    return;
  try {
    complain_();
  } catch (...) {
    trace_exception(Reason::TaskFailed, "end");
  }
  net::abandon_sockets();
  last_();
  // Not exit(): other threads still use the objects that it would destroy, and it would wait for
  // the reader of standard output.
  ::_exit(static_cast<int>(Exit::Failed));
}

}  // namespace stag::cli
