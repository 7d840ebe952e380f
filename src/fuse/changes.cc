#include "fuse/changes.h"

#include <algorithm>

namespace stag::fuse {

void Changes::Change::leave() {
  if (!std::exchange(at_->second, true)) ++all_.left_;
}

void Changes::end(Running::iterator change) {
  const bool was_left = change->second;
  running_.erase(change);
  if (!was_left) return;
  --left_;
  waiters_.tell();
}

bool Changes::is_left(std::uint64_t number, std::uint64_t before) const {
  if (left_ == 0) return false;
  return std::any_of(running_.lower_bound({number, 0}), running_.lower_bound({number, before}),
                     [](const auto& change) { return change.second; });
}

Task<void> Changes::left_ended(std::uint64_t number) {
  const std::uint64_t later = next_;
  while (is_left(number, later)) co_await waiters_.change();
}

}  // namespace stag::fuse
