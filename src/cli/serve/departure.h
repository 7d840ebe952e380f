// The end of a server in bounded time. To end in order it waits for the calls in progress, and
// those of a store that does not answer may never end.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/loop.h"

namespace stag::cli {

// Made before the server has work: short of memory at its end, it might get no thread then.
class Departure {
 public:
  // `last` is called on another thread if the time is over before this is destroyed; then the
  // sockets are closed and the process ends with Exit::Failed.
  explicit Departure(std::function<void()> last);
  Departure(const Departure&) = delete;
  Departure& operator=(const Departure&) = delete;
  ~Departure();

  // The time runs from the first call on; later ones change nothing.
  void begin(Duration time);

 private:
  void watch();

  const std::function<void()> last_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<TimePoint> deadline_;
  bool left_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace stag::cli
