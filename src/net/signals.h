// Waiting for signals, for programs (`stag serve`); the library itself never makes one.
#pragma once

#include <initializer_list>
#include <memory>

#include "base/unique_function.h"

namespace stag::net {

class EpollLoop;

// A descriptor that is readable when a signal has arrived that a SignalWatch has not told of yet,
// for a thread that waits for something else than its loop. Only a SignalWatch reads it.
int signal_arrivals();

// From now on the signal waits for a SignalWatch, in this thread and those that it starts, instead
// of having its default effect on the process: of what comes before the loop runs, nothing is lost.
void hold_signal(int number);

// From construction to destruction the named signals no longer have their default effect on the
// process; instead `on_signal` runs on the loop's thread, once for each arrival (arrivals close
// together may be merged). Signals that are held are taken while it exists, and held again
// afterwards. SIGHUP stays ignored where it is, unless it is among the `requests`, which ask for
// something else than the end. One at a time in a process, on one thread.
class SignalWatch {
 public:
  SignalWatch(EpollLoop& loop, std::initializer_list<int> signals,
              UniqueFunction<void(int)> on_signal, std::initializer_list<int> requests = {});
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace stag::net
