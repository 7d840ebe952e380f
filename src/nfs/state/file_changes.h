// The changes of files that are in progress: let through, and the store has not done with them.
//
// A FileChange begins before the Verdict on it is asked for; it lives from a Verdict that grants it
// to the end of the store's operation, and ends at once with any other: nobody waits for others
// with a FileChange in hand. It costs no memory and no lock. A thread that denies writing, or gives
// a delegation, first makes Files::guarded() true and then asks what is in progress; one that
// changes something begins, and then asks guarded(). So where both come at the same time, at least
// one of them sees the other.
//
// If a thread that denies writing finds that data are being changed, it stops that
// (StoppedChanges): later changes wait until it is done, and those in progress end. So neither a
// writer without a pause nor one that is refused each time keeps it out.
//
// Files whose hashes agree share a ChangeSlot: a change of one may be taken for one of the other,
// which defers a share reservation or costs a delegation, and is stopped with it.
//
// Thread: any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/brief_mutex.h"
#include "base/unique_function.h"
#include "nfs/state/linked_list.h"
#include "nfs/state/types.h"
#include "nfs/state/waiting.h"

namespace stag::nfs::state {

// What changes. Share reservations are about data alone (RFC 8881 9.7).
enum class ChangeOf : std::uint8_t { Attributes, Data };

// The changes in progress of the files that share it.
class ChangeSlot {
 public:
  enum class Event : std::uint8_t {
    DataAtRest,  // while changes are stopped
    GoingOn,     // changes are not stopped any more
  };

  ChangeSlot() = default;
  ChangeSlot(const ChangeSlot&) = delete;
  ChangeSlot& operator=(const ChangeSlot&) = delete;
  ~ChangeSlot();

  // False: changes of data are stopped.
  bool begin(ChangeOf what) {
    std::uint64_t now = state_.load(std::memory_order_relaxed);
    do {
      if (what == ChangeOf::Data && (now & kStopped) != 0) return false;
    } while (!state_.compare_exchange_weak(now, now + one(what)));
    return true;
  }
  void begin_though_stopped(ChangeOf what) { state_.fetch_add(one(what)); }
  void end(ChangeOf what) {
    const std::uint64_t before = state_.fetch_sub(one(what), std::memory_order_acq_rel);
    if ((before & kStopped) != 0 && (before & kData) == one(what)) tell(Event::DataAtRest);
  }
  bool data_in_progress() const { return (state_.load() & kData) != 0; }
  // Nothing is in progress, and nobody waits for that.
  bool at_rest() const { return state_.load() == 0; }
  bool stopped() const { return (state_.load() & kStopped) != 0; }

  // As often as each other.
  void stop();
  void go_on();
  // The waiter may be told too early, and where memory runs out not at all.
  Waiting wait(Event event, std::uint32_t at_most, UniqueFunction<void()> done);

 private:
  class Place;
  struct Waiter {
    Event event;
    UniqueFunction<void()> done;
    Place* place = nullptr;
    Link<Waiter> link{};
  };
  using Waiters = LinkedList<Waiter, &Waiter::link>;
  static constexpr std::uint64_t kOneOfData = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kStopped = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kData = kStopped - kOneOfData;
  static constexpr std::uint64_t one(ChangeOf what) {
    return what == ChangeOf::Data ? kOneOfData : 1;
  }
  void tell(std::optional<Event> event);
  std::unique_ptr<Waiter> take(Waiter& waiter);

  std::atomic<std::uint64_t> state_{0};  // how many of data, how many of attributes, kStopped
  BriefMutex mutex_;
  std::uint32_t stops_ = 0;
  std::uint32_t waiting_ = 0;
  Waiters waiters_;
};

// One change, which ends with it. FileChanges outlives it; an empty one is of nothing.
class FileChange {
 public:
  FileChange() = default;
  FileChange(FileChange&& other) noexcept
      : slot_(std::exchange(other.slot_, nullptr)), what_(other.what_) {}
  FileChange& operator=(FileChange&& other) noexcept {
    std::swap(slot_, other.slot_);
    std::swap(what_, other.what_);
    return *this;
  }
  ~FileChange() { end(); }

  void end() {
    if (auto* const slot = std::exchange(slot_, nullptr)) slot->end(what_);
  }
  // For another operation that goes on with the same change.
  FileChange another() const {
    if (slot_ == nullptr) return {};
    slot_->begin_though_stopped(what_);
    return {*slot_, what_};
  }

 private:
  friend class FileChanges;
  // It has begun.
  FileChange(ChangeSlot& slot, ChangeOf what) : slot_(&slot), what_(what) {}

  ChangeSlot* slot_ = nullptr;
  ChangeOf what_ = ChangeOf::Data;
};

// While there is one, no change of the data of a file begins. FileChanges outlives it.
class [[nodiscard]] StoppedChanges {
 public:
  explicit StoppedChanges(ChangeSlot& slot) : slot_(&slot) { slot.stop(); }
  StoppedChanges(StoppedChanges&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  StoppedChanges& operator=(StoppedChanges&&) = delete;
  ~StoppedChanges() {
    if (slot_ != nullptr) slot_->go_on();
  }

 private:
  ChangeSlot* slot_;
};

class FileChanges {
 public:
  // `secret`: peers that do not know it cannot tell which files share a ChangeSlot.
  explicit FileChanges(std::uint64_t secret) : multiplier_(secret | 1) {}

  // nullopt: it is stopped.
  std::optional<FileChange> begin(const FileKey& file, ChangeOf what) {
    ChangeSlot& slot = slot_of(file);
    if (!slot.begin(what)) return std::nullopt;
    return FileChange(slot, what);
  }
  // Of who has stopped all others.
  FileChange begin_though_stopped(const FileKey& file) {
    ChangeSlot& slot = slot_of(file);
    slot.begin_though_stopped(ChangeOf::Data);
    return {slot, ChangeOf::Data};
  }
  ChangeSlot& slot_of(const FileKey& file) const {
    const std::uint64_t hash = (vfs::HandleHash()(file.handle) ^ file.store) * multiplier_;
    return (*slots_)[hash >> (64 - kBits)];
  }

 private:
  static constexpr int kBits = 14;

  const std::uint64_t multiplier_;
  const std::unique_ptr<std::array<ChangeSlot, 1 << kBits>> slots_ =
      std::make_unique<std::array<ChangeSlot, 1 << kBits>>();
};

}  // namespace stag::nfs::state
