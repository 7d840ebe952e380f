// The threads where blocking is allowed: at most `max_threads`, started when first needed, first
// come first served.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/unique_function.h"

namespace stag::net {

class WorkerPool {
 public:
  using Function = UniqueFunction<void()>;
  // Gets `done` on the worker's thread once the work has ended.
  using Deliver = void (*)(void* context, Function done);

  explicit WorkerPool(std::size_t max_threads = 4);
  // Runs what was submitted to its end.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Callable from any thread.
  void submit(Function work, Deliver deliver, void* context, Function done);

 private:
  struct Job {
    Function work;
    Deliver deliver;
    void* context;
    Function done;
  };
  void start_thread();
  void serve();

  const std::size_t max_threads_;
  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<Job> jobs_;
  std::size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace stag::net
