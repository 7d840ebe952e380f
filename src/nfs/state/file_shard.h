// A shard of Files: the files whose keys hash to it, and all that is held on them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/brief_mutex.h"
#include "base/bytes.h"
#include "nfs/state/byte_ranges.h"
#include "nfs/state/file_records.h"
#include "nfs/state/files.h"
#include "nfs/state/hash_chains.h"
#include "nfs/state/state_table.h"

namespace stag::nfs::state {

// Revoked states of a client without sessions that a shard remembers.
inline constexpr std::uint32_t kRevokedKept = 16;

// A stateid of a state: bytes 0 and 1 are the epoch, as far as it fits, 2 to 5 shard and place, 6
// to 11 the tag. Those of copies begin with what is no epoch.
inline bool is_of_epoch(const Stateid& stateid, std::uint32_t epoch) {
  return load_be<std::uint16_t>(stateid.other.data()) == static_cast<std::uint16_t>(epoch);
}
inline std::uint32_t place_in(const Stateid& stateid) {
  return load_be<std::uint32_t>(stateid.other.data() + 2);
}
inline std::uint64_t tag_in(const Stateid& stateid) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << StateTable::kTagBits) - 1;
  return load_be<std::uint64_t>(stateid.other.data() + 4) & kMask;
}

// Records made before the lock is taken; what was not needed is freed after it.
struct Spare {
  std::unique_ptr<FileRecord> file;
  std::unique_ptr<HolderRecord> holder;
};

// What goes with a state, from its first locked byte to the last; nullopt: nothing is locked.
std::optional<Range> locked_through(const State& state);

// A client is about to get what guards a file (null: it is not): meanwhile, threads that change
// something take the shard's lock, and wait there.
class AboutToGuard {
 public:
  explicit AboutToGuard(std::atomic<std::uint32_t>* guards) : guards_(guards) {
    if (guards_ != nullptr) guards_->fetch_add(1);
  }
  AboutToGuard(const AboutToGuard&) = delete;
  ~AboutToGuard() {
    if (guards_ != nullptr) guards_->fetch_sub(1);
  }

 private:
  std::atomic<std::uint32_t>* const guards_;
};

// With it ends the waiting.
class DelegationWait final : public WaitPlace {
 public:
  DelegationWait(FileShard& shard, WaiterRecord& waiter) : shard_(shard), waiter_(&waiter) {
    waiter.place = this;
  }
  ~DelegationWait() override;
  void cancel() { waiter_ = nullptr; }  // It did not begin.

 private:
  friend class FileShard;
  FileShard& shard_;
  WaiterRecord* waiter_;  // with the shard's mutex; null: it is being called, or never waited
};

class FileShard {
 public:
  FileShard(std::uint32_t number, const Files::Options& options, std::atomic<std::uint32_t>& guards,
            std::atomic<std::uint32_t>& delegations)
      : number_(number),
        epoch_(options.epoch),
        guards_(guards),
        all_delegations_(delegations),
        table_(number, options.epoch, options.key) {}
  ~FileShard();

  mutable BriefMutex mutex;
  // The rest with the mutex held.
  FileRecord* find_file(const FileKey& key, std::uint64_t hash) const;
  HolderRecord* find_holder(ClientId clientid, std::uint64_t hash) const;
  OpenState* find_open(std::uint64_t hash, ClientId clientid, const FileKey& file,
                       Bytes owner) const;
  LockOwnerRecord* find_lock_owner(std::uint64_t hash, ClientId clientid, const FileKey& file,
                                   Bytes owner) const;
  DelegationState* find_delegation(std::uint64_t hash, ClientId clientid,
                                   const FileKey& file) const;
  LockState* find_lock(std::uint64_t hash, const OpenState& open,
                       const LockOwnerRecord& owner) const;
  // RFC 8881 8.2.4, but for the type; `file` null: of whatever file. `state` is set when Ok or
  // revoked.
  Status validate(const Stateid& stateid, const Life& life, const FileKey* file,
                  State*& state) const;
  Stateid stateid_of(const State& state) const;
  State* find(const Stateid& stateid) const;
  // Null: there is none, or it was revoked.
  DelegationState* find_delegation(const Stateid& stateid) const;
  // Rows from `at` on, which moves on to the next shard at the end.
  void list(StateCursor& at, const StateFilter& filter, StatePage& page) const;

  // Before the adding functions, which then cannot fail.
  void make_room() { table_.make_room(); }
  void add(OpenState& open, Spare& spare);
  void add(LockState& lock, OpenState& open, LockOwnerRecord& owner);
  void add(DelegationState& delegation, Spare& spare);
  void add(LockOwnerRecord& owner, OpenState& open);
  // The access and deny of an open.
  void set_share(OpenState& open, std::uint32_t access, std::uint32_t deny);
  void remove(State& state, RemovedRecords& removed);
  // It holds nothing from now on, nor do the locks under it.
  void revoke(State& state, Status why, RemovedRecords& removed);
  // The status of validate(), of an operation that gives `state` up: a client of version 4.0 that
  // is told of a revoked one has done with it.
  Status refuse(State* state, Status status, RemovedRecords& removed);
  // A client of version 4.0 opened again what was revoked, and never mentions that again.
  void replace_revoked(const OpenState& fresh, RemovedRecords& removed);

  // The holders, other than `except`, in the way of such an open; what is left of clients that
  // ended is removed. Granted, Lapsed, or `status`.
  Verdict share_conflict(const FileKey& key, std::uint64_t hash, std::uint32_t access,
                         std::uint32_t deny, const OpenState* except, Status status,
                         RemovedRecords& removed);
  // Delegations in the way of `touch`, but for those of `by`. Granted, Lapsed or Recall.
  enum class Effect : std::uint8_t {
    Recalls,  // they are recalled from now on
    None,
  };
  Verdict delegation_conflict(const FileKey& key, std::uint64_t hash, Touch touch, const Life* by,
                              RemovedRecords& removed, Effect effect = Effect::Recalls);
  // From now on.
  static void recall(DelegationState& delegation);
  // A delegation of the file is there.
  static void add(WaiterRecord& waiter, FileRecord& file);
  static void remove(WaiterRecord& waiter, RemovedRecords& removed);
  // As in Files.
  void hold_back(std::uint64_t hash, TimePoint until);
  bool is_held_back(std::uint64_t hash, TimePoint now) const;
  // A Recall of this file that nobody was told of yet.
  std::optional<Recall> next_recall(const FileKey& key, std::uint64_t hash);
  // The Recall of this delegation, unless the holder was told of it.
  std::optional<Recall> recall(const Stateid& stateid);
  void untell(const Stateid& stateid);
  // As in Files.
  const DelegationState* write_delegation(const FileKey& key, std::uint64_t hash,
                                          const Life* by) const;
  Recall recall_of(const DelegationState& delegation) const;
  // The same for a byte range. Granted, Lapsed or Denied, with the conflicting lock.
  LockResult range_conflict(const FileKey& key, std::uint64_t hash, const LockOwnerRecord* owner,
                            const Range& range, bool exclusive, RemovedRecords& removed);

 private:
  void add(State& state, Spare& spare);
  void add(State& state, FileRecord& file, HolderRecord& holder);
  void detach(OpenState& open);
  void detach(LockState& lock);
  void detach(DelegationState& delegation, RemovedRecords& removed);
  static void set_untold(DelegationState& delegation, bool untold);
  static bool mark_recalled(DelegationState& delegation);
  void detach(State& state, RemovedRecords& removed);
  void remove_one(State& state, RemovedRecords& removed);
  void leave(LockOwnerRecord& owner, RemovedRecords& removed);
  void forget_revoked(HolderRecord& holder, RemovedRecords& removed);
  // Of a client that ended, what is in the way.
  void sweep(State& state, RemovedRecords& removed);

  // By hash, each in its place; the last one there is known. A file of another hash that is as good
  // loses a delegation, nothing else.
  struct HeldBack {
    std::uint64_t hash = 0;
    TimePoint until = TimePoint::min();
  };
  static constexpr std::size_t kHeldBack = 64;
  static std::size_t place_of(std::uint64_t hash) { return hash / kFileShards % kHeldBack; }

  const std::uint32_t number_;
  const std::uint32_t epoch_;
  std::atomic<std::uint32_t>& guards_;
  std::atomic<std::uint32_t>& all_delegations_;
  StateTable table_;
  HashChains<FileRecord> files_;
  HashChains<HolderRecord> holders_;
  HashChains<OpenState> opens_;
  HashChains<LockState> locks_;
  HashChains<LockOwnerRecord> lock_owners_;
  HashChains<DelegationState> delegations_;
  std::array<HeldBack, kHeldBack> held_back_{};
};

// What a client wants states for. What it holds already, as the server has promised it (decision
// 0085), is held against other limits than what it wants anew.
enum class Claim : std::uint8_t {
  New,
  Reclaimed,  // RFC 8881 9.11
  Held,       // what a delegation of it covers; what remains of a range that it unlocks in part
};

// Those of StateLimits that are compared while Files::change_limits() replaces them. In
// Options::limits they stay as they were at the start.
struct CurrentStateLimits {
  explicit CurrentStateLimits(const StateLimits& limits) { replace(limits); }
  void replace(const StateLimits& limits);

  std::atomic<std::uint32_t> states_of_client, states_of_address, states, delegations;
  std::atomic<bool> shared_out;
};

struct Files::Impl {
  Impl(const Options& options, std::atomic<std::uint32_t>& guards);

  FileShard& shard_of(std::uint64_t file_hash) { return *shards[file_hash % kFileShards]; }
  FileShard& shard_of(const Stateid& stateid) { return *shards[place_in(stateid) % kFileShards]; }
  std::uint64_t hash_of(const FileKey& key) const;
  std::uint64_t hash_of(ClientId clientid) const;
  std::uint64_t hash_of(std::uint64_t file_hash, ClientId clientid, Bytes owner) const;
  Spare spare(const FileKey& key, std::uint64_t file_hash, const LifePtr& life);
  // Whether a delegation of the client, recalled or not, keeps out everybody who could claim again
  // what is in the way of such an open or lock.
  bool is_delegated(const FileShard& shard, const FileKey& key, std::uint64_t file_hash,
                    const Life& life, std::uint32_t access, std::uint32_t deny) const;
  // The holders in the way of an open, by an open of theirs or as holders of a delegation. Granted,
  // ShareDenied, Lapsed, or Recall: they are recalled from now on.
  Verdict open_conflict(FileShard& shard, const FileKey& key, std::uint64_t file_hash,
                        std::uint32_t access, std::uint32_t deny, const Life* by,
                        RemovedRecords& removed) const;
  // What is in the way of a client that wants so many more states; None: nothing.
  Limit limit_at(const Life& life, std::int32_t more, Claim claim = Claim::New) const;
  // The same of a new delegation, which is so many states.
  Limit limit_of_delegations(const Life& life, std::int32_t more) const;
  // The same of so many more byte ranges of a file, which are some of these states.
  Limit limit_of_ranges(const FileRecord& file, bool mirrored, const Life& life,
                        std::int32_t ranges, std::int32_t more, Claim claim = Claim::New) const;

  const Options options;
  CurrentStateLimits current{options.limits};
  std::atomic<std::uint32_t> states{0};
  std::atomic<std::uint32_t> delegations{0};
  std::array<std::unique_ptr<FileShard>, kFileShards> shards;
};

}  // namespace stag::nfs::state
