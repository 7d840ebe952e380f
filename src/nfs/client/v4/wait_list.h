// WaitList: coroutines of one loop that wait until another one has something for them.
#pragma once

#include <cstddef>
#include <list>

#include "base/cancel.h"
#include "base/completion.h"
#include "base/result.h"
#include "base/task.h"

namespace stag::nfs::client::nfs4 {

class WaitList {
 public:
  // Until it is woken, or `cancel` is pulled: the caller looks again, whichever it was.
  Task<void> wait(CancelToken cancel) {
    Waiter waiter;
    waiting_.push_back(&waiter);
    const CancelCallback cancelled(cancel, [this, &waiter] {
      if (waiting_.remove(&waiter) > 0) waiter.woken.complete(Ok{});
    });
    co_await waiter.woken;
  }
  bool empty() const { return waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }
  // Each resumes before this returns. False: nobody waits.
  bool wake_one() {
    if (waiting_.empty()) return false;
    Waiter* const first = waiting_.front();
    waiting_.pop_front();
    first->woken.complete(Ok{});
    return true;
  }
  // Those that wait now.
  void wake_all() {
    for (std::size_t left = waiting_.size(); left > 0 && !waiting_.empty(); --left) wake_one();
  }

 private:
  struct Waiter {
    Completion<Ok> woken;
  };
  std::list<Waiter*> waiting_;
};

}  // namespace stag::nfs::client::nfs4
