// WorkerTime: how long the jobs of one Call waited for threads of Executors, and took there. It is
// measured of Calls that an observer follows, and of no others: a clock is read three times for
// each.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

namespace stag {

// Thread: the loop of the Call. Jobs that are under way at the same time are added up all the same.
struct WorkerTime {
  std::uint32_t jobs = 0;             // that were done
  std::uint32_t refused = 0;          // that were not: the Executor refused them, or gave them up
  std::chrono::nanoseconds waited{};  // for a thread, in vain too
  std::chrono::nanoseconds worked{};
};

// The times of one job. A part of its work, made when the work is about to be submitted, and
// destroyed on the loop, once that has ended or will not begin any more.
class JobTimer {
 public:
  // Adds them to `to`, which outlives this object; null: nothing is measured.
  explicit JobTimer(WorkerTime* to) : to_(to) {
    if (to_ != nullptr) submitted_ = Clock::now();
  }
  // Before the job begins.
  JobTimer(JobTimer&& other) noexcept
      : to_(std::exchange(other.to_, nullptr)), submitted_(other.submitted_) {}
  JobTimer& operator=(JobTimer&&) = delete;
  ~JobTimer() {
    if (to_ == nullptr) return;
    const bool done = begun_ != Clock::time_point();
    ++(done ? to_->jobs : to_->refused);
    to_->waited += (done ? begun_ : Clock::now()) - submitted_;
    to_->worked += ended_ - begun_;
  }

  // On the thread that does the job, while it does.
  class Work {
   public:
    explicit Work(JobTimer& timer) : timer_(timer) {
      if (timer_.to_ != nullptr) timer_.begun_ = Clock::now();
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    ~Work() {
      if (timer_.to_ != nullptr) timer_.ended_ = Clock::now();
    }

   private:
    JobTimer& timer_;
  };

 private:
  using Clock = std::chrono::steady_clock;

  WorkerTime* to_;
  Clock::time_point submitted_, begun_, ended_;
};

}  // namespace stag
