// Whether this thread runs a Loop. What blocks it stops everything that the Loop has, and may wait
// for that very thing.
#pragma once

#include <utility>

namespace stag {

inline constinit thread_local bool thread_runs_a_loop = false;

// While a Loop runs on this thread.
class LoopOnThread {
 public:
  LoopOnThread() : outer_(std::exchange(thread_runs_a_loop, true)) {}
  ~LoopOnThread() { thread_runs_a_loop = outer_; }
  LoopOnThread(const LoopOnThread&) = delete;
  LoopOnThread& operator=(const LoopOnThread&) = delete;

 private:
  const bool outer_;
};

}  // namespace stag
