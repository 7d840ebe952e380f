// The end of a server in bounded time. To end in order it waits for the calls in progress, and
// those of a store that does not answer may never end.
#pragma once

#include <functional>
#include <memory>

#include "net/loop.h"

namespace stag::cli {

class Departure {
 public:
  // `last` is called on another thread if the time is over before this is destroyed; then the
  // sockets are closed and the process ends with Exit::Failed.
  Departure(Duration time, std::function<void()> last);
  Departure(const Departure&) = delete;
  Departure& operator=(const Departure&) = delete;
  ~Departure();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stag::cli
