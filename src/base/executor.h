// Executor: threads on which blocking is allowed, apart from those of every other Executor, so that
// a job waits for nothing but what it is about. net::WorkerPool is one.
#pragma once

#include "base/unique_function.h"

namespace stag {

class Executor {
 public:
  using Function = UniqueFunction<void()>;
  // Gets `done` on a thread of the Executor.
  using Deliver = void (*)(void* context, Function done);

  struct Job {
    Function work;
    // Delivered once `work` has ended and is destroyed, or was given back without having begun.
    Function done;
    Deliver deliver = nullptr;
    void* context = nullptr;
    // Jobs of one client share its bounds and take turns with those of others; only compared.
    const void* client = nullptr;
    // Neither refused for want of room nor given back: what it holds may only go on a thread where
    // blocking is allowed.
    bool must_run = false;
  };

  virtual ~Executor() = default;
  // Any thread. False: there is no room for one more, and the caller keeps the job.
  virtual bool submit(Job&& job) = 0;
};

}  // namespace stag
