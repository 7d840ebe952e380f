// Waiters: coroutines that wait for something to change, and look again when it has. It needs no
// memory of its own: each waiter stands in its coroutine's frame.
//
// Pure. Thread: the loop of the Mount.
#pragma once

#include <coroutine>
#include <utility>

namespace stag::fuse {

class Waiters {
 public:
  Waiters() = default;
  Waiters(const Waiters&) = delete;
  Waiters& operator=(const Waiters&) = delete;

  class Change {
   public:
    explicit Change(Waiters& all) : all_(all) {}
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) {
      waiter_ = waiter;
      (all_.last_ == nullptr ? all_.first_ : all_.last_->next_) = this;
      all_.last_ = this;
    }
    void await_resume() const {}

   private:
    friend Waiters;
    Waiters& all_;
    std::coroutine_handle<> waiter_;
    Change* next_ = nullptr;
  };
  // co_await change(): until the next tell().
  Change change() { return Change(*this); }
  // Those that wait now go on, in the order in which they came. One of them may destroy this.
  void tell() {
    last_ = nullptr;
    for (Change* told = std::exchange(first_, nullptr); told != nullptr;)
      std::exchange(told, told->next_)->waiter_.resume();
  }

 private:
  Change* first_ = nullptr;
  Change* last_ = nullptr;
};

}  // namespace stag::fuse
