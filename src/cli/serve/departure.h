// Departure: bounds the time that a server takes to shut down. A clean shutdown waits for the calls
// in progress, and those of a store that does not answer may never end.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/loop.h"

namespace stag::cli {

// Constructed before the server has work, because at shutdown a new thread might be refused.
class Departure {
 public:
  // If the time is over before the Departure is destroyed, another thread calls `complain`, closes
  // the sockets, calls `last` and ends the process with Exit::Failed.
  Departure(std::function<void()> complain, std::function<void()> last);
  Departure(const Departure&) = delete;
  Departure& operator=(const Departure&) = delete;
  ~Departure();

  // Starts the time limit; further calls have no effect.
  void begin(Duration time);

 private:
  void watch();

  const std::function<void()> complain_;
  const std::function<void()> last_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<TimePoint> deadline_;
  bool left_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace stag::cli
