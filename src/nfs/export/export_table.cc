#include "nfs/export/export_table.h"

#include <algorithm>
#include <utility>

namespace stag::nfs {

namespace {

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// What this thread used of the table that it used last.
struct Taken {
  struct One {
    std::uint32_t id = 0;
    std::weak_ptr<const Export> kept{};  // none until it is used
  };

  std::uint64_t version = 0;
  bool nested = false;
  std::weak_ptr<const Exports> exports{};
  std::vector<One> each{};  // in the order of their ids
  One none{};
  One* latest = &none;  // the one used last

  // Null: there is none.
  One* find(std::uint32_t id) {
    const auto at = std::ranges::lower_bound(each, id, {}, &One::id);
    if (at == each.end() || at->id != id) return nullptr;
    return latest = &*at;
  }
};

// A pointer is there without being made first, as an object with a destructor is not.
constinit thread_local Taken* taken = nullptr;

struct TakenHere : Taken {
  TakenHere() { taken = this; }
  TakenHere(const TakenHere&) = delete;
  ~TakenHere() { taken = nullptr; }
};

Taken& taken_here() {
  thread_local TakenHere here;
  return here;
}

bool is_taken(std::uint64_t version) {
  return taken != nullptr && taken->version == version;
}

// A pointer of its own to the shared one: its count stays in this thread's cache.
template <class T>
std::shared_ptr<T> own_count(const std::shared_ptr<T>& shared) {
  const auto own = std::make_shared<const std::shared_ptr<T>>(shared);
  return std::shared_ptr<T>(own, own->get());
}

}  // namespace

ExportTable::ExportTable() : present_(present({})), version_(next_version()) {}

std::shared_ptr<const Export> ExportTable::keep(std::uint32_t id) const {
  if (is_taken(version_.load(std::memory_order_acquire))) [[likely]] {
    Taken::One* one = taken->latest;
    if (one->id != id && (one = taken->find(id)) == nullptr) return nullptr;
    if (auto kept = one->kept.lock()) return kept;
  }
  return take_one(id);
}

std::shared_ptr<const Exports> ExportTable::current() const {
  if (is_taken(version_.load(std::memory_order_acquire)))
    if (auto exports = taken->exports.lock()) return exports;
  return take_all();
}

bool ExportTable::nested() const {
  if (is_taken(version_.load(std::memory_order_acquire))) return taken->nested;
  const std::lock_guard lock(mutex_);
  return present_.exports->nested();
}

// The counts of this thread. Under the lock.
ExportTable::Present& ExportTable::take() const {
  Present& counts = counts_[std::this_thread::get_id()];
  counts.each.resize(present_.each.size());
  const std::uint64_t version = version_.load(std::memory_order_relaxed);
  Taken& here = taken_here();
  if (here.version == version) return counts;
  std::vector<Taken::One> each;
  each.reserve(counts.each.size());
  for (std::size_t i = 0; i < counts.each.size(); ++i)
    each.push_back({present_.each[i]->id, counts.each[i]});
  here.latest = &here.none;
  here.each = std::move(each);
  here.exports = counts.exports;
  here.nested = present_.exports->nested();
  here.version = version;
  return counts;
}

std::shared_ptr<const Exports> ExportTable::take_all() const {
  const std::lock_guard lock(mutex_);
  Present& counts = take();
  if (counts.exports == nullptr) counts.exports = own_count(present_.exports);
  taken->exports = counts.exports;
  return counts.exports;
}

std::shared_ptr<const Export> ExportTable::take_one(std::uint32_t id) const {
  const std::lock_guard lock(mutex_);
  Present& counts = take();
  Taken::One* const one = taken->find(id);
  if (one == nullptr) return nullptr;
  const auto at = static_cast<std::size_t>(one - taken->each.data());
  std::shared_ptr<const Export>& count = counts.each[at];
  if (count == nullptr) count = own_count(present_.each[at]);
  one->kept = count;
  return count;
}

ExportTable::Present ExportTable::present(Exports exports) {
  Present next{std::make_shared<const Exports>(std::move(exports))};
  for (const Export& each : next.exports->all())
    next.each.push_back(std::make_shared<const Export>(each));
  std::ranges::sort(next.each, {}, &Export::id);
  return next;
}

void ExportTable::replace(Exports exports) {
  exports.remember(*current());
  Present next = present(std::move(exports));
  Counts old;
  {
    const std::lock_guard lock(mutex_);
    version_.store(next_version(), std::memory_order_release);
    std::swap(present_, next);
    counts_.swap(old);
  }
  // Here those go that were removed, unless a Call keeps them: outside the lock, as file systems
  // may go with them.
}

}  // namespace stag::nfs
