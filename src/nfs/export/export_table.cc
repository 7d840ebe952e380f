#include "nfs/export/export_table.h"

#include <utility>

namespace stag::nfs {

namespace {

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// The table that this thread used last.
struct Taken {
  std::uint64_t version = 0;
  std::weak_ptr<const Exports> exports;
};
thread_local Taken taken;

}  // namespace

ExportTable::ExportTable()
    : exports_(std::make_shared<const Exports>()), version_(next_version()) {}

std::shared_ptr<const Exports> ExportTable::current() const {
  if (taken.version == version_.load(std::memory_order_acquire))
    if (auto exports = taken.exports.lock()) return exports;
  return take();
}

std::shared_ptr<const Exports> ExportTable::take() const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Exports>& count = counts_[std::this_thread::get_id()];
  if (count == nullptr) {
    // A pointer of its own to the shared one: its count stays in this thread's cache.
    const auto own = std::make_shared<const std::shared_ptr<const Exports>>(exports_);
    count = std::shared_ptr<const Exports>(own, own->get());
  }
  taken = {version_.load(std::memory_order_relaxed), count};
  return count;
}

void ExportTable::replace(Exports exports) {
  exports.remember(*current());
  auto next = std::make_shared<const Exports>(std::move(exports));
  Counts old;
  {
    const std::lock_guard lock(mutex_);
    version_.store(next_version(), std::memory_order_release);
    exports_.swap(next);
    counts_.swap(old);
  }
  // Here the old table goes, unless a Call has it: outside the lock, as file systems may go with
  // it.
}

}  // namespace stag::nfs
