#include "nfs/export/local_locks.h"

#include <sys/resource.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

namespace stag::nfs {

using state::ConflictingLock;
using state::FileKey;
using state::Range;
using state::RangeMode;
using state::RangeModes;

namespace {

vfs::LocalRange to_local(const Range& range) {
  return {range.first, range.last};
}

vfs::LockMode to_local(RangeMode mode) {
  switch (mode) {
    case RangeMode::None:
      break;
    case RangeMode::Shared:
      return vfs::LockMode::Shared;
    case RangeMode::Exclusive:
      return vfs::LockMode::Exclusive;
  }
  return vfs::LockMode::None;
}

RangeMode mode_of(bool exclusive) {
  return exclusive ? RangeMode::Exclusive : RangeMode::Shared;
}

ConflictingLock to_conflict(const vfs::LocalLock& lock) {
  return {{lock.range.first, lock.range.last}, lock.exclusive, 0, "a program of the server"};
}

}  // namespace

// One file that is open. What the store holds is known here, so that it is never asked for less
// than an owner has.
class LocalFile {
 public:
  LocalFile(const FileKey& of, std::string for_address, std::unique_ptr<vfs::LocalLocks> locks)
      : key(of), address(std::move(for_address)), locks_(std::move(locks)) {}

  const FileKey key;
  // With the table's mutex:
  std::string address;  // of the client that it counts for
  bool shared = false;  // clients at another address have opened it, too
  std::size_t pins = 0;

  bool unused() const {
    const std::scoped_lock lock(mutex_);
    return held_.empty() && holding_ == 0;
  }

  // Without a conflict, settle() is due.
  std::optional<ConflictingLock> hold(const Range& range, RangeMode mode) {
    const std::scoped_lock lock(mutex_);
    if (auto conflict = hold_weaker(range, mode)) return conflict;
    ++holding_;
    ++version_;
    return std::nullopt;
  }
  // This range is to be reconciled, by the next thread that comes to it.
  void postpone(const Range& range) {
    const std::scoped_lock lock(mutex_);
    postponed_ = postponed_ ? state::hull(*postponed_, range) : range;
  }
  // What was postponed, unless settle() will come to it.
  std::optional<Range> overdue() {
    const std::scoped_lock lock(mutex_);
    if (holding_ != 0) return std::nullopt;
    return std::exchange(postponed_, std::nullopt);
  }

  // What is to be reconciled, unless another Hold still stands.
  std::optional<Range> settle(const Range& range) {
    const std::scoped_lock lock(mutex_);
    ++version_;
    --holding_;
    return postponed(range);
  }

  struct Due {
    Range range;
    std::uint64_t number = 0;  // for reconcile()
  };
  // nullopt: later, by settle().
  std::optional<Due> begin(const Range& range) {
    const std::scoped_lock lock(mutex_);
    const auto due = postponed(range);
    if (!due) return std::nullopt;
    return Due{*due, version_};
  }
  // False: something came in between. Where memory runs out what has been done is known.
  bool reconcile(const Range& range, const RangeModes& wanted, std::uint64_t number) {
    const std::scoped_lock lock(mutex_);
    if (version_ != number) return false;
    for (const RangeModes::Piece& target : wanted.within(range)) {
      const std::vector<RangeModes::Piece> now = held_.within(target.range);
      if ((now.size() == 1 && now[0].mode == target.mode) || change(target)) continue;
      for (const RangeModes::Piece& piece : now)
        if (piece.mode != target.mode) static_cast<void>(change({piece.range, target.mode}));
    }
    return true;
  }

  std::optional<ConflictingLock> conflict(const Range& range, RangeMode mode) const {
    const std::scoped_lock lock(mutex_);
    const auto found = locks_->conflict(to_local(range), to_local(mode));
    if (!found) return std::nullopt;
    return to_conflict(*found);
  }

 private:
  std::optional<Range> postponed(const Range& range) {
    postponed_ = postponed_ ? state::hull(*postponed_, range) : range;
    if (holding_ != 0) return std::nullopt;
    return std::exchange(postponed_, std::nullopt);
  }
  // Where the store cannot lock like that, no program could, either.
  std::optional<ConflictingLock> raise(const Range& range, RangeMode mode) {
    auto prepared = held_.prepare(range, mode);
    const auto set = locks_->set(to_local(range), to_local(mode));
    if (set && *set) return to_conflict(**set);
    if (!set && set.error() != vfs::Status::NotSupported)
      return to_conflict({to_local(range), true});
    held_.set(range, mode, std::move(prepared));
    return std::nullopt;
  }
  // A range in which nothing is stronger is one system call, in however many pieces it was: a file
  // may have as many as clients have locks, and the loop waits.
  std::optional<ConflictingLock> hold_weaker(const Range& range, RangeMode mode) {
    const std::vector<RangeModes::Piece> pieces = held_.within(range);
    std::vector<RangeModes::Piece> raised;
    raised.reserve(pieces.size());
    const auto stronger = [mode](const RangeModes::Piece& piece) { return piece.mode > mode; };
    if (std::none_of(pieces.begin(), pieces.end(), stronger)) {
      if (pieces.size() == 1 && pieces[0].mode == mode) return std::nullopt;
      return raise(range, mode);
    }
    for (const RangeModes::Piece& piece : pieces) {
      if (piece.mode >= mode) continue;
      if (auto conflict = raise(piece.range, mode)) {
        for (const RangeModes::Piece& before : raised) change(before);
        return conflict;
      }
      raised.push_back(piece);
    }
    return std::nullopt;
  }
  // False: it is as before. What the store is asked for is noted without asking for memory: else
  // it would have what nobody knows of, or not have what it is taken to have.
  bool change(const RangeModes::Piece& piece) {
    auto prepared = held_.prepare(piece.range, piece.mode);
    const auto set = locks_->set(to_local(piece.range), to_local(piece.mode));
    if (!set || *set) return false;
    held_.set(piece.range, piece.mode, std::move(prepared));
    return true;
  }

  mutable std::mutex mutex_;
  const std::unique_ptr<vfs::LocalLocks> locks_;
  RangeModes held_;
  std::uint32_t holding_ = 0;
  std::uint64_t version_ = 0;
  std::optional<Range> postponed_;
};

LocalLockLimits LocalLockLimits::of_process() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const auto files = static_cast<std::size_t>(limit.rlim_cur / 16);
  return {files, files / 2};
}

LocalLockTable::LocalLockTable() = default;
LocalLockTable::~LocalLockTable() = default;

LocalLockTable::SourceId LocalLockTable::add(Source source) {
  return sources_.insert(sources_.end(), std::move(source));
}

void LocalLockTable::remove(SourceId source) {
  sources_.erase(source);
}

LocalLockTable::Pin::Pin(LocalLockTable& table, std::shared_ptr<LocalFile> file)
    : table_(&table), file_(std::move(file)) {}

LocalLockTable::Pin& LocalLockTable::Pin::operator=(Pin&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(file_, other.file_);
  return *this;
}

LocalLockTable::Pin::~Pin() {
  if (file_ != nullptr) table_->release(*file_);
}

std::shared_ptr<LocalFile> LocalLockTable::find(const FileKey& key) const {
  if (!any()) return nullptr;
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(key);
  return found == files_.end() ? nullptr : found->second;
}

LocalLockTable::Pin LocalLockTable::pinned_if_open(const FileKey& key, const std::string& address) {
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(key);
  return found == files_.end() ? Pin() : pin(found->second, address);
}

// With the mutex.
LocalLockTable::Pin LocalLockTable::pin(const std::shared_ptr<LocalFile>& file,
                                        const std::string& address) {
  file->shared = file->shared || address != file->address;
  ++file->pins;
  return {*this, file};
}

// Another Call may have opened the file meanwhile.
Result<LocalLockTable::Pin, vfs::Status> LocalLockTable::pinned(
    const std::shared_ptr<LocalFile>& file) {
  const std::scoped_lock lock(mutex_);
  auto at = files_.find(file->key);
  if (at == files_.end()) {
    std::size_t& of_address = files_of_address_[file->address];
    if (files_.size() >= limits_.files || of_address >= limits_.files_of_address) {
      if (of_address == 0) files_of_address_.erase(file->address);
      return Failure{vfs::Status::TooManyObjects};
    }
    at = files_.emplace(file->key, file).first;
    ++of_address;
    open_.fetch_add(1);
  }
  return pin(at->second, file->address);
}

// The limits are seen once the file is open: a store without local programs has none of them.
Task<Result<LocalLockTable::Pin, vfs::Status>> LocalLockTable::open(const FileKey& key,
                                                                    vfs::FileSystem& store,
                                                                    vfs::CallerContext caller,
                                                                    const std::string& address) {
  if (Pin pin = pinned_if_open(key, address)) co_return std::move(pin);
  auto locks = co_await store.local_locks(caller, key.handle);
  if (!locks && locks.error() == vfs::Status::NotSupported) co_return Pin();
  if (!locks) co_return Failure{locks.error()};
  co_return pinned(std::make_shared<LocalFile>(key, address, *std::move(locks)));
}

void LocalLockTable::release(LocalFile& file) {
  std::shared_ptr<LocalFile> closed;
  const std::scoped_lock lock(mutex_);
  --file.pins;
  close_if_unused(file, closed);
}

// With the mutex; `closed` is destroyed without.
void LocalLockTable::close_if_unused(LocalFile& file, std::shared_ptr<LocalFile>& closed) {
  if (file.pins != 0 || !file.unused()) return;
  const auto found = files_.find(file.key);
  if (found == files_.end() || found->second.get() != &file) return;
  closed = std::move(found->second);
  files_.erase(found);
  discount(file.address);
  open_.fetch_sub(1);
}

// With the mutex.
void LocalLockTable::discount(const std::string& address) {
  const auto count = files_of_address_.find(address);
  if (--count->second == 0) files_of_address_.erase(count);
}

LocalLockTable::Hold::Hold(LocalLockTable& table, std::shared_ptr<LocalFile> file,
                           const Range& range)
    : table_(&table), file_(std::move(file)), range_(range) {}

LocalLockTable::Hold::~Hold() {
  if (file_ == nullptr) return;
  if (const auto due = file_->settle(range_)) table_->reconcile(*file_, *due);
}

Result<LocalLockTable::Hold, ConflictingLock> LocalLockTable::hold(const FileKey& key,
                                                                   const Range& range,
                                                                   bool exclusive) {
  auto file = find(key);
  if (file == nullptr) return Hold();
  try {
    if (auto conflict = file->hold(range, mode_of(exclusive))) return Failure{*std::move(conflict)};
  } catch (const std::bad_alloc&) {  // some of it may be held
    postpone(*file, range);
    throw;
  }
  return Hold(*this, std::move(file), range);
}

std::optional<ConflictingLock> LocalLockTable::conflict(const FileKey& key, const Range& range,
                                                        bool exclusive) const {
  const auto file = find(key);
  return file == nullptr ? std::nullopt : file->conflict(range, mode_of(exclusive));
}

void LocalLockTable::freed(const FileKey* key, const Range& range) {
  if (!any()) return;
  if (key != nullptr) {
    if (const auto file = find(*key)) reconcile(*file, range);
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [each, file] : files_) postpone(*file, range);
  }
  reconcile_overdue();
}

void LocalLockTable::postpone(LocalFile& file, const Range& range) {
  file.postpone(range);
  overdue_.store(true);
}

void LocalLockTable::reconcile_overdue() {
  overdue_.store(false);
  try {
    std::vector<std::shared_ptr<LocalFile>> all;
    {
      const std::scoped_lock lock(mutex_);
      all.reserve(files_.size());
      for (const auto& [key, file] : files_) all.push_back(file);
    }
    for (const auto& file : all)
      if (const auto due = file->overdue()) reconcile(*file, *due);
  } catch (const std::bad_alloc&) {
    overdue_.store(true);
  }
}

RangeModes LocalLockTable::locked(const FileKey& key, const Range& range) const {
  RangeModes modes;
  for (const Source& source : sources_) source.locked(key, range, modes);
  return modes;
}

// A thread that changes the locks meanwhile makes this one repeat the work, or does it itself.
// Throws nothing, as callers release something.
void LocalLockTable::reconcile(LocalFile& file, const Range& range) {
  Range rest = range;
  for (bool done = false; !done;) {
    const auto due = file.begin(rest);
    if (!due) return;
    rest = due->range;
    try {
      done = file.reconcile(rest, locked(file.key, rest), due->number);
    } catch (const std::bad_alloc&) {
      return postpone(file, rest);
    }
  }
  std::shared_ptr<LocalFile> closed;
  {
    const std::scoped_lock lock(mutex_);
    close_if_unused(file, closed);
  }
  if (closed != nullptr) return;
  try {
    charge_locker(file);
  } catch (const std::bad_alloc&) {
    // When a lock is set or released the next time.
  }
}

// A client that has nothing locked there any more must not pay for what others keep locked: their
// locks could use up the files that count for its address and keep it from locking any.
void LocalLockTable::charge_locker(LocalFile& file) {
  std::string before;
  {
    const std::scoped_lock lock(mutex_);
    if (!file.shared) return;
    before = file.address;
  }
  std::optional<std::string> other;
  for (const Source& source : sources_) {
    auto locker = source.locker(file.key, before);
    if (locker == before) return;
    if (!other) other = std::move(locker);
  }
  if (other) charge(file, before, *std::move(other));
}

// Even beyond the limit of that address, which gets no more files then.
void LocalLockTable::charge(LocalFile& file, const std::string& before, std::string address) {
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(file.key);
  if (found == files_.end() || found->second.get() != &file || file.address != before) return;
  ++files_of_address_[address];
  discount(before);
  file.address.swap(address);
}

}  // namespace stag::nfs
