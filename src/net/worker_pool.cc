#include "net/worker_pool.h"

#include <system_error>
#include <utility>

#include "base/failure.h"
#include "net/blocked_signals.h"

namespace stag::net {

WorkerPool::WorkerPool(std::size_t max_threads) : max_threads_(max_threads) {
  STAG_CHECK(max_threads > 0);
}

WorkerPool::~WorkerPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wanted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::submit(Function work, Deliver deliver, void* context, Function done) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(work), deliver, context, std::move(done)});
    if (idle_ < jobs_.size() && threads_.size() < max_threads_) {
      start_thread();
    }
  }
  wanted_.notify_one();
}

void WorkerPool::start_thread() {
  const BlockedSignals blocked;
  try {
    threads_.emplace_back([this] { serve(); });
  } catch (const std::system_error&) {
    // The system has no thread left to give: the ones there do the work, more slowly.
    STAG_CHECK(!threads_.empty());
  }
}

void WorkerPool::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wanted_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    --idle_;
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    try {
      job.work();
    } catch (...) {
      trace_exception(Reason::TaskFailed, "worker");
    }
    // Before `done` runs: what the work refers to may end with it.
    job.work = {};
    job.deliver(job.context, std::move(job.done));
    lock.lock();
  }
}

}  // namespace stag::net
