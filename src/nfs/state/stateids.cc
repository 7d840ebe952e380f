// Stateids as such: TEST_STATEID, FREE_STATEID, revocation, and the end of a client.
#include <array>
#include <new>

#include "nfs/state/file_shard.h"
#include "nfs/state/files.h"

namespace stag::nfs::state {

Status Files::test_stateid(const Stateid& stateid, const Life& life) {
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  State* state = nullptr;
  return shard.validate(stateid, life, nullptr, state);
}

Status Files::free_stateid(const Stateid& stateid, const Life& life) {
  RemovedRecords removed;
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  State* state = nullptr;
  const Status status = shard.validate(stateid, life, nullptr, state);
  if (state == nullptr) return status;
  if (state->revoked == Status::Ok &&
      (state->type != State::Type::Lock || static_cast<LockState*>(state)->ranges > 0))
    return Status::LocksHeld;
  shard.remove(*state, removed);
  return Status::Ok;
}

Status Files::may_read(const FileKey& file, const Stateid& stateid, const Life& life) {
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  State* state = nullptr;
  const Status status = shard.validate(stateid, life, &file, state);
  if (status != Status::Ok || state->type == State::Type::Delegation) return status;
  return (open_of(*state).access & kShareRead) != 0 ? Status::Ok : Status::Openmode;
}

LifePtr Files::holder(const Stateid& stateid) const {
  FileShard& shard = impl_->shard_of(stateid);
  const BriefLock lock(shard.mutex);
  const State* const state = shard.find(stateid);
  return state == nullptr ? nullptr : state->holder->life;
}

Status Files::revoke(const Stateid& stateid) {
  RemovedRecords removed;
  FileKey file;
  std::optional<Range> locked;
  FileShard& shard = impl_->shard_of(stateid);
  {
    const BriefLock lock(shard.mutex);
    State* const state = shard.find(stateid);
    if (state == nullptr) return Status::BadStateid;
    file = state->file->key;
    locked = locked_through(*state);
    shard.revoke(*state, Status::AdminRevoked, removed);
  }
  freed(&file, locked);
  return Status::Ok;
}

namespace {

// States of a client that are removed under one lock: others use the shard meanwhile.
constexpr std::size_t kReleasedAtOnce = 256;

// Lock stateids of a client that have byte ranges in a file, until `each` is false.
template <class Each>
void each_lock(const FileRecord& file, const Life& life, Each each) {
  file.opens.find_conflict(kShareBoth, kShareBoth, [&](const OpenState& open) {
    if (open.holder->life.get() != &life) return false;
    LockState* next = nullptr;
    for (LockState* one = open.locks.front(); one != nullptr; one = next) {
      next = open.locks.next(*one);
      if (one->ranges != 0 && !each(*one)) return true;
    }
    return false;
  });
}

}  // namespace

bool Files::holds_ranges(const FileKey& file, const Life& life) const {
  const std::uint64_t hash = impl_->hash_of(file);
  const FileShard& shard = impl_->shard_of(hash);
  bool found = false;
  const BriefLock lock(shard.mutex);
  if (const FileRecord* const record = shard.find_file(file, hash))
    each_lock(*record, life, [&](const LockState&) { return !(found = true); });
  return found;
}

std::size_t Files::expire_locks(const FileKey& file, const Life& life) {
  const std::uint64_t hash = impl_->hash_of(file);
  FileShard& shard = impl_->shard_of(hash);
  std::size_t gone = 0;
  for (bool more = true; more;) {
    RemovedRecords removed;
    std::optional<Range> locked;
    const std::size_t before = gone;
    {
      const BriefLock lock(shard.mutex);
      const FileRecord* const record = shard.find_file(file, hash);
      if (record == nullptr) return gone;
      each_lock(*record, life, [&](LockState& one) {
        // It may come back at any moment: from then on the locks are its own again.
        if (gone - before == kReleasedAtOnce || !life.lapsed()) return false;
        locked = hull(locked, locked_through(one));
        shard.revoke(one, Status::Expired, removed);
        ++gone;
        return true;
      });
    }
    if (locked) freed(&file, locked);
    more = gone - before == kReleasedAtOnce;
  }
  return gone;
}

namespace {

// Whether a client may wait for it.
bool is_in_the_way(const State& state) {
  if (state.revoked != Status::Ok || state.type == State::Type::Open) return false;
  return state.type == State::Type::Delegation || static_cast<const LockState&>(state).ranges > 0;
}

}  // namespace

// Files on which others may go on, and what was locked there.
struct Files::Touched {
  struct Entry {
    FileKey file;
    std::optional<Range> unlocked;
  };
  void add(const State& state) {
    if (count == 0 || entries[count - 1].file != state.file->key)
      entries[count++] = {state.file->key, std::nullopt};
    std::optional<Range>& unlocked = entries[count - 1].unlocked;
    unlocked = hull(unlocked, locked_through(state));
  }
  std::array<Entry, kReleasedAtOnce> entries;
  std::size_t count = 0;
};

// The client adds nothing any more. `touched` is empty before.
bool Files::release_some(FileShard& shard, const Life& life, Touched& touched) {
  const std::uint64_t hash = impl_->hash_of(life.clientid);
  RemovedRecords removed;
  const BriefLock lock(shard.mutex);
  for (std::size_t i = 0; i < kReleasedAtOnce; ++i) {
    HolderRecord* const holder = shard.find_holder(life.clientid, hash);
    if (holder == nullptr) return false;
    State* state = holder->any();
    if (state->type == State::Type::Open && !static_cast<OpenState*>(state)->locks.empty())
      state = static_cast<OpenState*>(state)->locks.front();
    if (is_in_the_way(*state)) touched.add(*state);
    shard.remove(*state, removed);
  }
  return true;
}

// Everybody's files are looked at only where it is not known which ones it is about.
void Files::release(const Life& life) {
  Touched touched;
  for (const auto& shard : impl_->shards)
    for (bool more = true; more; touched.count = 0) {
      more = release_some(*shard, life, touched);
      for (std::size_t i = 0; i < touched.count; ++i)
        freed(&touched.entries[i].file, touched.entries[i].unlocked);
    }
  if (life.swept.load(std::memory_order_relaxed)) freed(nullptr, Range{});
}

// What is gone is gone, whether or not those who are told find memory for what they do then.
void Files::unlocked(const FileKey* file, const Range& range) {
  try {
    if (mirror_ != nullptr) mirror_->freed(file, range);
  } catch (const std::bad_alloc&) {
    untold_.store(true);
  }
}

void Files::freed(const FileKey* file, const std::optional<Range>& where) {
  if (where) unlocked(file, *where);
  try {
    if (outside_ != nullptr && outside_->waiting()) outside_->freed(file);
  } catch (const std::bad_alloc&) {
    untold_.store(true);
  }
}

void Files::tell_of_lapse() {
  try {
    if (outside_ != nullptr && outside_->waiting()) outside_->freed(nullptr);
  } catch (const std::bad_alloc&) {
    untold_.store(true);
  }
}

void Files::tell_again() {
  if (untold_.exchange(false)) freed(nullptr, Range{});
}

}  // namespace stag::nfs::state
