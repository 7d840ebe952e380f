#include "nfs/state/file_changes.h"

#include <new>

namespace stag::nfs::state {

class ChangeSlot::Place final : public WaitPlace {
 public:
  Place(ChangeSlot& of, Waiter& its) : slot(of), waiter(&its) { its.place = this; }
  ~Place() override {
    std::unique_ptr<Waiter> gone;
    const BriefLock lock(slot.mutex_);
    if (waiter != nullptr) gone = slot.take(*waiter);
  }
  ChangeSlot& slot;
  Waiter* waiter;  // with the slot's mutex; null: told
};

ChangeSlot::~ChangeSlot() {
  while (Waiter* const waiter = waiters_.front()) take(*waiter);
}

// With the mutex.
std::unique_ptr<ChangeSlot::Waiter> ChangeSlot::take(Waiter& waiter) {
  waiters_.erase(waiter);
  --waiting_;
  waiter.place->waiter = nullptr;
  return std::unique_ptr<Waiter>(&waiter);
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

Waiting ChangeSlot::wait(Event event, std::uint32_t at_most, UniqueFunction<void()> done) {
  auto fresh = std::make_unique<Waiter>(Waiter{event, std::move(done)});
  auto place = std::make_unique<Place>(*this, *fresh);
  Wait refused = Wait::TooMany;
  {
    const BriefLock lock(mutex_);
    const bool over = event == Event::DataAtRest ? !data_in_progress() : !stopped();
    if (!over && waiting_ < at_most) {
      ++waiting_;
      waiters_.push_front(*fresh.release());
      return {Wait::Begun, std::move(place)};
    }
    place->waiter = nullptr;
    if (over) refused = Wait::NoNeed;
  }
  return refused;
}

// Calls the waiters for this event; nullopt: all of them.
void ChangeSlot::tell(std::optional<Event> event) {
  Waiters told;
  {
    const BriefLock lock(mutex_);
    Waiter* next = nullptr;
    for (Waiter* one = waiters_.front(); one != nullptr; one = next) {
      next = Waiters::next(*one);
      if (event && one->event != *event) continue;
      told.push_front(*take(*one).release());
    }
  }
  while (Waiter* const waiter = told.front()) {
    told.erase(*waiter);
    const std::unique_ptr<Waiter> one(waiter);
    try {
      one->done();
    } catch (const std::bad_alloc&) {
      // It asks again when its time is over.
    }
  }
}

}  // namespace stag::nfs::state
