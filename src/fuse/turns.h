// Turns: operations on one file that must not overtake each other at the server. One that is alone
// begins when those before it have ended, and those that come later wait for it; others go on
// together.
//
// Pure. Thread: the loop of the Mount.
#pragma once

#include <coroutine>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/task.h"

namespace stag::fuse {

class Turns {
 public:
  // An operation in progress, until this is destroyed. The Turns outlive it.
  class Turn {
   public:
    Turn(Turn&& other) noexcept
        : all_(std::exchange(other.all_, nullptr)), number_(other.number_), alone_(other.alone_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (all_ != nullptr) all_->end(number_, alone_);
    }

   private:
    friend class Turns;
    Turn(Turns& all, std::uint64_t number, bool alone)
        : all_(&all), number_(number), alone_(alone) {}

    Turns* all_;
    std::uint64_t number_;
    bool alone_;
  };

  Task<Turn> alone(std::uint64_t number);
  Task<Turn> together(std::uint64_t number);
  // Whether one that is alone is in progress, or waits for those before it.
  bool taken(std::uint64_t number) const;

 private:
  struct File {
    bool alone = false;
    std::uint32_t together = 0;
  };
  struct Changed;
  void end(std::uint64_t number, bool alone);

  std::unordered_map<std::uint64_t, File> files_;  // where any is in progress
  std::vector<std::coroutine_handle<>> waiters_;   // for one to end
};

}  // namespace stag::fuse
