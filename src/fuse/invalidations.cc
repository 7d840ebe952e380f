#include "fuse/invalidations.h"

#include <new>

namespace stag::fuse {

Task<void> Invalidations::pages(std::uint64_t number, std::uint64_t from) {
  co_await locked_.ended(number);
  if (stopped_) co_return;
  ++telling_;
  bool told = false;
  try {
    const auto tell = [this, number, from] {
      tell_(number, static_cast<std::int64_t>(from));
      return true;
    };
    told = co_await offloaded_to(threads_, this, loop_, tell, false);
  } catch (const std::bad_alloc&) {
  }
  --telling_;
  // Without a thread the pages go with the next open(2).
  if (!told) attributes(number);
  if (telling_ == 0 && then_) std::exchange(then_, {})();
}

void Invalidations::stop(UniqueFunction<void()> then) {
  stopped_ = true;
  if (telling_ == 0) return then();
  then_ = std::move(then);
  given_up_.cancel();
}

}  // namespace stag::fuse
