// AwaitedLock: a lock that is held over work of other threads, as a security context needs one that
// a single thread may use at a time. A coroutine that finds it taken does not block its loop: it
// waits, in turn.
#pragma once

#include <coroutine>
#include <utility>

#include "base/brief_mutex.h"
#include "base/loop.h"

namespace stag::rpc {

// Thread: any.
class AwaitedLock {
 public:
  AwaitedLock() = default;
  AwaitedLock(const AwaitedLock&) = delete;
  AwaitedLock& operator=(const AwaitedLock&) = delete;

  bool try_lock() {
    const BriefLock held(mutex_);
    return !std::exchange(taken_, true);
  }

  // co_await lock(loop): continues on `loop`, with the lock.
  auto lock(Loop& loop) {
    struct Awaiter : Waiter {
      AwaitedLock& lock;
      Awaiter(AwaitedLock& of, Loop& resumed_on) : Waiter{&resumed_on, {}, nullptr}, lock(of) {}
      bool await_ready() const { return false; }
      bool await_suspend(std::coroutine_handle<> handle) {
        this->waiting = handle;
        return !lock.take_or_queue(*this);
      }
      void await_resume() const {}
    };
    return Awaiter(*this, loop);
  }

  // Hands the lock to the coroutine that has waited for longest.
  void unlock() noexcept {
    Waiter* next = nullptr;
    {
      const BriefLock held(mutex_);
      next = first_;
      if (next == nullptr)
        taken_ = false;
      else if ((first_ = next->next) == nullptr)
        last_ = &first_;
    }
    if (next != nullptr) next->loop->post([handle = next->waiting] { handle.resume(); });
  }

  // Has a lock, which was taken before, for a scope.
  class Held {
   public:
    explicit Held(AwaitedLock& lock) : lock_(lock) {}
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() { lock_.unlock(); }

   private:
    AwaitedLock& lock_;
  };

 private:
  // In the frame of the coroutine that waits.
  struct Waiter {
    Loop* loop;
    std::coroutine_handle<> waiting;
    Waiter* next;
  };
  bool take_or_queue(Waiter& waiter) {
    const BriefLock held(mutex_);
    if (!std::exchange(taken_, true)) return true;
    *last_ = &waiter;
    last_ = &waiter.next;
    return false;
  }

  BriefMutex mutex_;
  bool taken_ = false;
  Waiter* first_ = nullptr;
  Waiter** last_ = &first_;
};

}  // namespace stag::rpc
