#include "nfs/state/file_changes.h"

#include <new>

namespace stag::nfs::state {

ChangeSlot::~ChangeSlot() {
  while (waiters_ != nullptr) delete std::exchange(waiters_, waiters_->next);
}

void ChangeSlot::stop() {
  const BriefLock lock(mutex_);
  if (stops_++ == 0) state_.fetch_or(kStopped);
}

void ChangeSlot::go_on() {
  {
    const BriefLock lock(mutex_);
    if (--stops_ > 0) return;
    state_.fetch_and(~kStopped);
  }
  // Also those who waited for the others to end and gave up.
  tell(std::nullopt);
}

Wait ChangeSlot::wait(Event event, std::uint32_t at_most, UniqueFunction<void()> done) {
  auto fresh = std::make_unique<Waiter>(Waiter{event, std::move(done)});
  const BriefLock lock(mutex_);
  if (event == Event::DataAtRest ? !data_in_progress() : !stopped()) return Wait::NoNeed;
  if (waiting_ >= at_most) return Wait::TooMany;
  ++waiting_;
  fresh->next = std::exchange(waiters_, fresh.get());
  fresh.release();
  return Wait::Begun;
}

// Whoever waits for this event; nullopt: everybody.
void ChangeSlot::tell(std::optional<Event> event) {
  Waiter* told = nullptr;
  {
    const BriefLock lock(mutex_);
    for (Waiter** at = &waiters_; *at != nullptr;) {
      Waiter* const one = *at;
      if (event && one->event != *event) {
        at = &one->next;
        continue;
      }
      *at = one->next;
      one->next = std::exchange(told, one);
      --waiting_;
    }
  }
  while (told != nullptr) {
    const std::unique_ptr<Waiter> one(std::exchange(told, told->next));
    try {
      one->done();
    } catch (const std::bad_alloc&) {
      // It asks again when its time is over.
    }
  }
}

}  // namespace stag::nfs::state
