// The threads where blocking is allowed: as many as there is work for, up to a limit, and none once
// there was none for a while. Which job is next is said by net/job_queue.h.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "net/job_queue.h"

namespace stag::net {

struct WorkerOptions {
  WorkerLimits limits;
  // How long a thread without work stays.
  Duration idle = std::chrono::seconds(10);
  // What the pool works for, as the log names it.
  std::string name;
  // What a client (Executor::Job::client) is called there; empty: it is not known. Any thread,
  // while the pool has work. May be null.
  std::function<std::string(const void* client)> whose{};
};

class WorkerPool final : public Executor {
 public:
  explicit WorkerPool(WorkerOptions options = {});
  ~WorkerPool() override { finish(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Also false when there is no thread and the system gives none, or no memory. What is refused is
  // counted under WorkersBusy.
  bool submit(Job&& job) override;

  // Runs what was submitted to its end, and waits for that. Nothing is submitted later.
  void finish();

  struct Load {
    std::size_t threads = 0;
    std::size_t under_way = 0;
    std::size_t waiting = 0;
    Duration oldest{};  // how long the oldest job has been under way
  };
  // Any thread. Gives back what waits in vain by `now`; the owner of a pool with stuck_after calls
  // it once in a while.
  Load look(TimePoint now);

 private:
  struct State;
  static void serve(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;  // of the threads too
};

}  // namespace stag::net
