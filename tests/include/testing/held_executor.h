// An Executor that holds its jobs until the test lets them begin, as a store that hangs does.
#pragma once

#include <deque>
#include <utility>

#include "base/executor.h"

namespace stag::testing {

class HeldExecutor final : public Executor {
 public:
  explicit HeldExecutor(bool runs_at_once = false) : at_once(runs_at_once) {}
  bool submit(Job&& job) override {
    if (full && !job.must_run) return false;
    held.push_back(std::move(job));
    if (at_once) run_all();
    return true;
  }
  void run_all() {
    while (!held.empty()) {
      Job job = take();
      job.work();
      job.work = {};
      job.deliver(job.context, std::move(job.done));
    }
  }
  // Without having begun them.
  void give_all_back() {
    while (!held.empty()) {
      Job job = take();
      job.work = {};
      job.deliver(job.context, std::move(job.done));
    }
  }

  std::deque<Job> held;
  bool full = false;
  bool at_once;  // holds none: each has run when submit() returns

 private:
  Job take() {
    Job job = std::move(held.front());
    held.pop_front();
    return job;
  }
};

}  // namespace stag::testing
