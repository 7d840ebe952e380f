// Executor: threads on which blocking is allowed. Each Executor has threads of its own, so that a
// job waits only for other jobs of its Executor. Each net::EpollLoop brings one, for
// Loop::offload(); a program may implement another.
#pragma once

#include <cstdint>

#include "base/unique_function.h"

namespace stag {

class Executor {
 public:
  using Function = UniqueFunction<void()>;
  // Takes `done` over, on a thread of the Executor; most often posts it to a loop.
  using Deliver = void (*)(void* context, Function done);

  struct Job {
    Function work;  // runs on a thread of the Executor and may block
    // Delivered by `deliver` once `work` has ended and is destroyed, or when the Executor gives the
    // job up without having begun it.
    Function done;
    Deliver deliver = nullptr;
    void* context = nullptr;  // the first argument of `deliver`
    // Identifies the client whose jobs share one bound and take turns with those of other clients.
    // Compared, never dereferenced.
    const void* client = nullptr;
    // Memory that stays taken while the job waits, such as the data of a WRITE.
    std::uint64_t bytes = 0;
    // The Executor neither refuses this job nor gives it up, because what `work` owns may be
    // destroyed only where blocking is allowed.
    bool must_run = false;
  };

  virtual ~Executor() = default;
  // Queues `job`. Thread: any. False when the queue is full: the caller keeps the job, and neither
  // function runs.
  virtual bool submit(Job&& job) = 0;
};

}  // namespace stag
