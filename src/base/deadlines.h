// Deadlines: one Timer for the deadlines of many calls. A call that ends in time costs a place in a
// list and no timer of its own; the Timer sometimes fires for a deadline that was removed before,
// and is then set for the next one. Thread: the loop's.
#pragma once

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/loop.h"

namespace stag {

// One deadline, a base class of the object that has it. Leaves its list when it is destroyed.
class Deadline {
 public:
  Deadline() = default;
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  virtual ~Deadline() { leave(); }

  // Removes it from its list; no effect when it is in none.
  void leave() {
    if (next_ == nullptr) return;
    previous_->next_ = next_;
    next_->previous_ = previous_;
    next_ = previous_ = nullptr;
  }

 protected:
  // The time has come; it is in no list any more.
  virtual void on_deadline() = 0;

 private:
  friend class Deadlines;
  TimePoint at_{};
  Deadline* next_ = nullptr;
  Deadline* previous_ = nullptr;
};

// Outlives the Deadlines in it; used on the loop's thread.
class Deadlines {
 public:
  explicit Deadlines(Loop& loop) : loop_(loop) { ring_.next_ = ring_.previous_ = &ring_; }
  ~Deadlines() { STAG_CHECK(ring_.next_ == &ring_); }

  // `deadline` is in no list. Those of calls that are all given the same time come in order and go
  // to the end at once.
  void add(Deadline& deadline, TimePoint at) {
    STAG_CHECK(deadline.next_ == nullptr);
    deadline.at_ = at;
    Deadline* before = ring_.previous_;
    while (before != &ring_ && before->at_ > at) before = before->previous_;
    deadline.previous_ = before;
    deadline.next_ = before->next_;
    before->next_ = before->next_->previous_ = &deadline;
    if (!armed_ || at < fires_at_) arm();
  }

 private:
  struct Ring final : Deadline {
    void on_deadline() override {}
  };

  void arm() {
    const TimePoint at = ring_.next_->at_;
    // What there is no memory for is not taken for armed.
    timer_ = loop_.after(std::max(Duration::zero(), at - loop_.now()), [this] { fire(); });
    fires_at_ = at;
    armed_ = true;
  }
  // Each of those that are due may end others, or add some.
  void fire() {
    armed_ = false;
    const TimePoint now = loop_.now();
    while (ring_.next_ != &ring_ && ring_.next_->at_ <= now) {
      Deadline* const due = ring_.next_;
      due->leave();
      due->on_deadline();
    }
    if (!armed_ && ring_.next_ != &ring_) arm();
  }

  Loop& loop_;
  Ring ring_;
  Timer timer_;
  TimePoint fires_at_{};
  bool armed_ = false;
};

}  // namespace stag
