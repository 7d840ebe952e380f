#include "fuse/ongoing.h"

namespace stag::fuse {

void Ongoing::end(const Key& key) {
  running_.erase(key);
  waiters_.tell();
}

Task<void> Ongoing::ended(std::uint64_t number) {
  const std::uint64_t later = next_;
  for (;;) {
    const auto oldest = running_.lower_bound({number, 0});
    if (oldest == running_.end() || *oldest >= Key(number, later)) co_return;
    co_await waiters_.change();
  }
}

}  // namespace stag::fuse
