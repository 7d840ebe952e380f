// The records of Files: what one file, client, open or lock owner is within a shard. All are made
// before the shard's lock is taken and freed after it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <new>
#include <string>
#include <utility>

#include "nfs/state/files.h"
#include "nfs/state/linked_list.h"
#include "nfs/state/opens_by_share.h"
#include "nfs/state/range_index.h"

namespace stag::nfs::state {

struct FileRecord;
struct HolderRecord;
struct LockOwnerRecord;
struct LockState;
struct OpenState;

struct Record {
  Record() = default;
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;
  virtual ~Record() = default;
  Record* next_removed = nullptr;
};

// Records that nothing refers to any more, to be freed when no lock is held.
class RemovedRecords {
 public:
  RemovedRecords() = default;
  RemovedRecords(const RemovedRecords&) = delete;
  RemovedRecords& operator=(const RemovedRecords&) = delete;
  ~RemovedRecords() {
    while (first_ != nullptr) delete std::exchange(first_, first_->next_removed);
  }
  void add(Record& record) {
    record.next_removed = first_;
    first_ = &record;
  }

 private:
  Record* first_ = nullptr;
};

// What a stateid stands for.
struct State : Record {
  using Type = StateInfo::Type;
  State(Type of, std::size_t owner_size) : type(of), cost(cost_of(owner_size)) {}
  static std::uint32_t cost_of(std::size_t owner_size) {
    return 1 + static_cast<std::uint32_t>(owner_size / 256);
  }

  const Type type;
  const std::uint32_t cost;
  Status revoked = Status::Ok;  // as in StateInfo: it holds nothing any more
  std::uint32_t seqid = 1;
  std::uint32_t place = 0;  // in the StateTable
  std::uint32_t via = 0;    // FileKey::via, of the client that has it
  FileRecord* file = nullptr;
  HolderRecord* holder = nullptr;
  Link<State> of_holder;
};

struct Held {
  Range range;
  bool exclusive = false;
  LockState* via = nullptr;  // the lock stateid it was locked through last
  Link<Held> of_via;         // of one that is held
};

// The locks of one lock owner under one open.
struct LockState : State {
  explicit LockState(std::size_t owner_size) : State(Type::Lock, owner_size) {}

  std::uint64_t hash = 0;  // of owner and open
  LockState* chain = nullptr;
  OpenState* open = nullptr;             // null when revoked
  LockOwnerRecord* owner = nullptr;      // also when revoked: version 4.0 counts its operations
  LinkedList<Held, &Held::of_via> held;  // that were locked through it last
  std::uint32_t ranges = 0;              // how many these are
  Link<LockState> of_open;
};

struct OpenState : State {
  OpenState(std::uint64_t hash_of_owner, Bytes owner_bytes)
      : State(Type::Open, owner_bytes.size()), hash(hash_of_owner), owner(text_of(owner_bytes)) {}

  const std::uint64_t hash;  // of file, client and owner
  OpenState* chain = nullptr;
  const std::string owner;
  std::uint32_t access = 0;
  std::uint32_t deny = 0;
  // Bit n: an OPEN in effect asked for n.
  std::uint8_t accesses_opened = 0;
  std::uint8_t denies_opened = 0;
  Link<OpenState> of_file;
  LinkedList<LockState, &LockState::of_open> locks;
};

// The open that a state is, or whose locks it is; it is not revoked, and no delegation.
inline const OpenState& open_of(const State& state) {
  return state.type == State::Type::Lock ? *static_cast<const LockState&>(state).open
                                         : static_cast<const OpenState&>(state);
}

// One lock owner of one file, through whatever opens (RFC 8881 9.5).
struct LockOwnerRecord : Record {
  LockOwnerRecord(std::uint64_t hash_of_owner, Bytes owner_bytes)
      : hash(hash_of_owner), owner(text_of(owner_bytes)) {}

  const std::uint64_t hash;  // of file, client and owner
  LockOwnerRecord* chain = nullptr;
  const std::string owner;
  FileRecord* file = nullptr;
  HolderRecord* holder = nullptr;
  std::uint32_t states = 0;  // LockStates, revoked ones, too
  // By their first bytes; they do not overlap.
  std::map<std::uint64_t, Held> ranges;
};

// Given back when the record is freed, which is without a lock.
struct LeaseRecord : Record {
  explicit LeaseRecord(std::shared_ptr<vfs::Lease> of) : lease(std::move(of)) {}
  const std::shared_ptr<vfs::Lease> lease;
};

struct DelegationState : State {
  DelegationState(const DelegateArgs& args, std::uint64_t hash_of_holder)
      : State(Type::Delegation, 0),
        delegation_type(args.type),
        granted_by(args.granted_by),
        change(args.change),
        hash(hash_of_holder) {}

  const DelegationType delegation_type;
  const SlotRef granted_by;
  const std::uint64_t change;
  const std::uint64_t hash;  // of file and client
  DelegationState* chain = nullptr;
  bool recalled = false;
  bool untold = false;  // recalled, and nobody was told yet
  std::unique_ptr<LeaseRecord> lease;
  Link<DelegationState> of_file;
  Link<DelegationState> of_untold;
};

class DelegationWait;

// A waiter for the end of a delegation; it is called when the record is freed, without a lock,
// unless it has given up.
struct WaiterRecord : Record {
  explicit WaiterRecord(UniqueFunction<void()> told) : done(std::move(told)) {}
  ~WaiterRecord() override {
    try {
      if (!gave_up) done();
    } catch (const std::bad_alloc&) {
      // The waiter asks again when its time is over.
    }
  }
  UniqueFunction<void()> done;
  bool gave_up = true;  // or has not begun
  FileRecord* file = nullptr;
  DelegationWait* place = nullptr;
  Link<WaiterRecord> of_file;
};

struct FileRecord : Record {
  FileRecord(const FileKey& of, std::uint64_t hash_of_key) : key(of), hash(hash_of_key) {}

  const FileKey key;
  const std::uint64_t hash;
  FileRecord* chain = nullptr;
  std::uint32_t references = 0;  // states
  OpensByShare<OpenState> opens;
  LinkedList<DelegationState, &DelegationState::of_file> delegations;
  LinkedList<DelegationState, &DelegationState::of_untold> untold;  // of these
  std::uint32_t delegated[2] = {0, 0};                              // by DelegationType
  std::uint32_t recalled = 0;                                       // of the delegations
  LinkedList<WaiterRecord, &WaiterRecord::of_file> waiters;
  std::uint32_t waiting = 0;
  std::uint32_t ranges = 0;
  // Of all lock owners, by mode.
  RangeIndex<LockOwnerRecord> exclusive, shared;
};

// One client within one shard.
struct HolderRecord : Record {
  HolderRecord(LifePtr of, std::uint64_t hash_of_id, std::atomic<std::uint32_t>& of_all)
      : life(std::move(of)), hash(hash_of_id), total(of_all) {}

  // What is charged to the client, its address and all.
  void count(std::int32_t change) {
    const auto by = static_cast<std::uint32_t>(change);
    life->states.fetch_add(by, std::memory_order_acq_rel);
    life->account->states.fetch_add(by, std::memory_order_relaxed);
    total.fetch_add(by, std::memory_order_relaxed);
  }

  const LifePtr life;
  const std::uint64_t hash;
  std::atomic<std::uint32_t>& total;
  std::uint32_t held[3] = {0, 0, 0};  // by State::Type
  std::uint32_t ranges = 0;
  HolderRecord* chain = nullptr;
  LinkedList<State, &State::of_holder> states;
  LinkedList<State, &State::of_holder> revoked;  // the latest first
  std::uint32_t revoked_count = 0;

  bool empty() const { return states.empty() && revoked.empty(); }
  State* any() const { return states.empty() ? revoked.front() : states.front(); }
};

}  // namespace stag::nfs::state
