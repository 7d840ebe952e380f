#include "fuse/ongoing.h"

namespace stag::fuse {

Ongoing::Operation::Operation(Ongoing& all, std::uint64_t number)
    : all_(all), number_(number), which_(all.next_++), before_(all.last_) {
  (before_ == nullptr ? all_.first_ : before_->after_) = this;
  all_.last_ = this;
}

Ongoing::Operation::~Operation() {
  (before_ == nullptr ? all_.first_ : before_->after_) = after_;
  (after_ == nullptr ? all_.last_ : after_->before_) = before_;
  all_.waiters_.tell();
}

bool Ongoing::is_any_before(std::uint64_t number, std::uint64_t which) const {
  for (const Operation* at = first_; at != nullptr && at->which_ < which; at = at->after_)
    if (at->number_ == number) return true;
  return false;
}

Task<void> Ongoing::ended(std::uint64_t number) {
  const std::uint64_t later = next_;
  while (is_any_before(number, later)) co_await waiters_.change();
}

}  // namespace stag::fuse
