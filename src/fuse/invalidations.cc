#include "fuse/invalidations.h"

#include <new>

#include "base/task_group.h"

namespace stag::fuse {

Task<bool> Invalidations::tell_by_thread(std::uint64_t number, std::int64_t from) {
  ++telling_;
  bool told = false;
  try {
    const auto tell = [this, number, from] {
      tell_(number, from);
      return true;
    };
    told = co_await offloaded_to(threads_, this, loop_, tell, false);
  } catch (const std::bad_alloc&) {
  }
  --telling_;
  if (telling_ == 0 && then_) std::exchange(then_, {})();
  co_return told;
}

Task<void> Invalidations::attributes_left(std::uint64_t number) {
  if (stopped_) co_return;
  static_cast<void>(co_await tell_by_thread(number, kAttributesOnly));
}

Task<bool> Invalidations::pages(std::uint64_t number, std::uint64_t from) {
  co_await locked_.ended(number);
  if (stopped_) co_return true;
  const bool told = co_await tell_by_thread(number, static_cast<std::int64_t>(from));
  co_return told;
}

Task<void> Invalidations::pages_of(std::vector<std::uint64_t> numbers) {
  TaskGroup files;
  try {
    for (const std::uint64_t number : numbers) files.add(all_pages(number));
  } catch (const std::bad_alloc&) {  // those that have begun go on
  }
  co_await files.join();
}

Task<void> Invalidations::all_pages(std::uint64_t number) {
  try {
    static_cast<void>(co_await pages(number, 0));
  } catch (const std::bad_alloc&) {  // as where there is no thread
  }
}

void Invalidations::stop(UniqueFunction<void()> then) {
  stopped_ = true;
  if (telling_ == 0) return then();
  then_ = std::move(then);
  given_up_.cancel();
}

}  // namespace stag::fuse
