// LoopWatch: tells again and again that every loop of a server still turns. One that hangs ends the
// reports, and the program that waits for them knows (systemd's watchdog).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/loop.h"

namespace stag::cli {

// On the thread of `home`.
class LoopWatch {
 public:
  // Asks every one of `loops` now and each time that `every` has passed, but never while an answer
  // is missing. Calls `alive` on `home` when all have answered; what it throws is the home loop's.
  // The loops may end before it, once they answer no more.
  LoopWatch(Loop& home, std::vector<Loop*> loops, Duration every, std::function<void()> alive);
  ~LoopWatch();
  LoopWatch(const LoopWatch&) = delete;
  LoopWatch& operator=(const LoopWatch&) = delete;

 private:
  struct Round;
  static void begin(const std::shared_ptr<Round>& round);
  static void answered(const std::shared_ptr<Round>& round);

  std::shared_ptr<Round> round_;
};

}  // namespace stag::cli
