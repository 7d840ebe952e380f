// FarTask: a Task of one Loop, *far*, that a coroutine of another one, *near*, awaits. What lies in
// the FarTask passes from near to far and back, and needs no lock: near touches it until it awaits
// the FarTask and after that has ended, far meanwhile.
//
// Thread: near's, but for what says otherwise. Both Loops run until every FarTask has ended.
// Errors: an exception of the Task is thrown where the FarTask is awaited. Nothing that is on its
// way between the two Loops asks for memory but of Loop::post(), which is called once for all that
// is on its way at a time, and again until there is memory (decision 0014).
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <optional>

#include "base/cancel.h"
#include "base/loop.h"
#include "base/result.h"
#include "base/task.h"

namespace stag::rpc {

// Has a Loop take notice of what another thread has for it, in the order of sending.
class Mailbox {
 public:
  class Notice {
   public:
    using Receive = void (*)(void* owner) noexcept;
    // `receive(owner)` is called on the Loop's thread, and may destroy the Notice and the Mailbox.
    Notice(void* owner, Receive receive) : owner_(owner), receive_(receive) {}
    Notice(const Notice&) = delete;
    Notice& operator=(const Notice&) = delete;

   private:
    friend class Mailbox;
    void* const owner_;
    const Receive receive_;
    Notice* before_ = nullptr;
  };

  // `loop` outlives the Mailbox, in which nothing is when it is destroyed.
  explicit Mailbox(Loop& loop) : loop_(loop) {}
  Loop& loop() const { return loop_; }
  // `notice` lives until it has been delivered, and may be sent again then. Thread: any.
  void send(Notice& notice) noexcept;

 private:
  void deliver() noexcept;

  Loop& loop_;
  std::atomic<Notice*> last_{nullptr};
};

// The way between two Loops, which many FarTasks share. Outlives them.
class LoopBridge {
 public:
  LoopBridge(Loop& near, Loop& far) : to_near_(near), to_far_(far) {}
  Loop& near() const { return to_near_.loop(); }
  Loop& far() const { return to_far_.loop(); }

 private:
  friend class FarTask;
  Mailbox to_near_;
  Mailbox to_far_;
};

class FarTask : private TaskEnd {
 public:
  FarTask(const FarTask&) = delete;
  FarTask& operator=(const FarTask&) = delete;

  // co_await task.ended(token), once: runs run() on far, which `token`, one of near, cancels, and
  // suspends until far has no more to do with this object. Throws what run() throws, and
  // std::bad_alloc where far has no memory to begin it.
  auto ended(CancelToken token) {
    struct Awaiter {
      FarTask& task;
      CancelToken token;
      bool await_ready() const { return false; }
      void await_suspend(std::coroutine_handle<> waiter) { task.send(waiter, token); }
      void await_resume() { task.finish(); }
    };
    return Awaiter{*this, token};
  }

 protected:
  explicit FarTask(LoopBridge& bridge) : bridge_(bridge) {}
  ~FarTask() = default;

 private:
  // Thread: far's.
  virtual Task<Ok> run(CancelToken cancel) = 0;

  // Has receive() called.
  template <void (FarTask::*receive)() noexcept>
  Mailbox::Notice notice() {
    return {this, [](void* task) noexcept { (static_cast<FarTask*>(task)->*receive)(); }};
  }
  void send(std::coroutine_handle<> waiter, CancelToken token) noexcept;
  void cancel() noexcept;
  void resume() noexcept { waiter_.resume(); }
  void finish();
  // Thread: far's.
  void begin() noexcept;
  void cancel_run() noexcept;
  void on_task_end() noexcept override;
  void end() noexcept;

  LoopBridge& bridge_;
  Mailbox::Notice begin_ = notice<&FarTask::begin>();
  Mailbox::Notice cancel_ = notice<&FarTask::cancel_run>();
  Mailbox::Notice end_ = notice<&FarTask::resume>();

  // Whether near has sent its cancellation, and whether run() has ended: whichever comes second
  // knows of the first, so that none is sent to a FarTask that is gone.
  static constexpr std::uint32_t kCancelSent = 1;
  static constexpr std::uint32_t kEnded = 2;
  std::atomic<std::uint32_t> state_{0};

  // Near's.
  std::coroutine_handle<> waiter_;
  std::optional<CancelCallback> on_cancel_;
  // Far's.
  Task<Ok> task_;
  CancelSource source_;
  bool cancel_came_ = false;
  std::exception_ptr failure_;
};

}  // namespace stag::rpc
