#include "rpc/far_task.h"

#include <new>
#include <utility>

#include "rpc/with_channel.h"

namespace stag::rpc {

// The sender that finds the Mailbox empty has the Loop empty it, once. Until that has happened
// other senders find something in it, and need not; so nothing is left to do with a Mailbox whose
// last Notice was delivered.
void Mailbox::send(Notice& notice) noexcept {
  Notice* before = last_.load(std::memory_order_relaxed);
  do {
    notice.before_ = before;
  } while (!last_.compare_exchange_weak(before, &notice, std::memory_order_acq_rel,
                                        std::memory_order_relaxed));
  if (before != nullptr) return;
  for (;;) {
    try {
      return loop_.post([this] { deliver(); });
    } catch (const std::bad_alloc&) {
      wait_for_memory();
    }
  }
}

void Mailbox::deliver() noexcept {
  Notice* last = last_.exchange(nullptr, std::memory_order_acq_rel);
  Notice* first = nullptr;
  // `before_` becomes the one behind it.
  while (last != nullptr) {
    Notice* const notice = last;
    last = std::exchange(notice->before_, first);
    first = notice;
  }
  while (first != nullptr) {
    Notice* const notice = first;
    first = notice->before_;
    notice->receive_(notice->owner_);
  }
}

// The cancellation goes behind the beginning, also when it has happened before.
void FarTask::send(std::coroutine_handle<> waiter, CancelToken token) noexcept {
  waiter_ = waiter;
  bridge_.to_far_.send(begin_);
  on_cancel_.emplace(token, [this] { cancel(); });
}

void FarTask::cancel() noexcept {
  if ((state_.fetch_or(kCancelSent, std::memory_order_acq_rel) & kEnded) != 0) return;
  bridge_.to_far_.send(cancel_);
}

void FarTask::finish() {
  on_cancel_.reset();
  if (failure_) std::rethrow_exception(std::move(failure_));
}

void FarTask::begin() noexcept {
  try {
    task_ = run(source_);
  } catch (...) {
    failure_ = std::current_exception();
    return end();
  }
  task_.start(*this);
}

// Last of all: what it cancels may end run(), and near then destroys this object.
void FarTask::cancel_run() noexcept {
  cancel_came_ = true;
  if ((state_.load(std::memory_order_acquire) & kEnded) != 0) return bridge_.to_near_.send(end_);
  source_.cancel();
}

// The frame goes back to the thread that it came from.
void FarTask::on_task_end() noexcept {
  try {
    static_cast<void>(task_.result());
  } catch (...) {
    failure_ = std::current_exception();
  }
  task_ = {};
  end();
}

// A cancellation that is on its way still comes here, and near is told behind it.
void FarTask::end() noexcept {
  const std::uint32_t before = state_.fetch_or(kEnded, std::memory_order_acq_rel);
  if ((before & kCancelSent) != 0 && !cancel_came_) return;
  bridge_.to_near_.send(end_);
}

}  // namespace stag::rpc
