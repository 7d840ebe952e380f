// Opens with their share reservations, byte-range locks and delegations of files (RFC 8881 sections
// 8.2, 9, 10.4 and the operations 18.2, 18.6, 18.10 to 18.12, 18.16, 18.18, 18.38, 18.48): which
// client holds what, and whether that is in the way of what another wants.
//
// Pure: no clock, thread, file system or protocol. Every function may be called from any thread.
// Files are in 64 shards by their keys; no function holds two locks. A stateid says where its
// record stands, so finding it takes no search.
//
// Every client is its Life. What is in the way and belongs to one that Ended is swept aside; of one
// that Lapsed the Verdict says so: the caller ends that client (records first, Clients::end(),
// release()) and asks again. When end() yields null the client came back: ask again all the same.
//
// A delegation goes Granted -> Recalled -> returned | revoked. The first conflict with it, or
// recall(), makes a Recall, which the function of on_recall() is told once; the verdict is Recall
// until the delegation is gone, and wait() tells when to ask again. Clocks are not here: a caller
// that has one decides which client keeps a delegation too long, and calls revoke_delegation().
//
// check() and access() are asked before anybody knows whether the store lets the caller do it, and
// have no effect on what is in the way: that is for recall() and the end of lapsed clients, after
// the store was asked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/siphash.h"
#include "base/unique_function.h"
#include "nfs/state/file_changes.h"
#include "nfs/state/grace_period.h"
#include "nfs/state/outside.h"
#include "nfs/state/range.h"
#include "nfs/state/range_modes.h"
#include "nfs/state/types.h"
#include "vfs/local.h"

namespace stag::nfs::state {

struct Verdict {
  enum class Kind : std::uint8_t {
    Granted,
    Refused,  // `status`
    // Delegations are in the way, which are being recalled, or a caller has stopped changes of the
    // file: wait(), then ask again.
    Recall,
    Lapsed,  // `who` is in the way and has lapsed: end it and ask again
  };
  Kind kind = Kind::Granted;
  Status status = Status::Ok;
  ClientId who = 0;

  bool granted() const { return kind == Kind::Granted; }
  static Verdict refused(Status status) { return {Kind::Refused, status, 0}; }
};

// A Verdict on what changes a file, and the change, where that was granted.
struct Permit : Verdict {
  Permit(const Verdict& verdict, FileChange&& asked_for) : Verdict(verdict) {
    if (granted()) change = std::move(asked_for);
  }
  FileChange change;
};

// What an operation does to a file. Look: it reads attributes that change with the data.
enum class Touch : std::uint8_t { Read, Write, Size, Attributes, Unlink, Look };

struct OpenArgs {
  FileKey file;
  Bytes open_owner;                // without the clientid
  std::uint32_t share_access = 0;  // without the WANT bits
  std::uint32_t share_deny = 0;
  bool reclaim = false;        // CLAIM_PREVIOUS
  bool truncates = false;      // which is a Write, whatever it opens for
  bool stopped = false;        // the caller has stopped changes of the file
  std::uint32_t reserved = 0;  // ReservedStates::count()
  bool delegated = false;      // CLAIM_DELEGATE_CUR, CLAIM_DELEG_CUR_FH
};
// Of what a client may hold, kept for a state to come.
class ReservedStates {
 public:
  ReservedStates() = default;
  // `all`: of all clients.
  ReservedStates(LifePtr life, std::atomic<std::uint32_t>& all, std::uint32_t count)
      : life_(std::move(life)), all_(&all), count_(count) {
    life_->states.fetch_add(count);
    life_->account->states.fetch_add(count);
    all_->fetch_add(count);
  }
  ReservedStates(ReservedStates&& other) noexcept { *this = std::move(other); }
  ReservedStates& operator=(ReservedStates&& other) noexcept {
    std::swap(life_, other.life_);
    std::swap(all_, other.all_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~ReservedStates() {
    if (life_ == nullptr) return;
    life_->states.fetch_sub(count_);
    life_->account->states.fetch_sub(count_);
    all_->fetch_sub(count_);
  }
  std::uint32_t count() const { return count_; }

 private:
  LifePtr life_;
  std::atomic<std::uint32_t>* all_ = nullptr;
  std::uint32_t count_ = 0;
};
struct ReserveResult {
  Limit limit = Limit::None;  // None: `states` are reserved
  ReservedStates states;
};
struct OpenResult {
  // Refused: ShareDenied, Grace, NoGrace, ReclaimBad, ReclaimConflict, Inval, Delay (a limit, or
  // `changing`), Expired.
  Verdict verdict;
  Stateid stateid;
  // For undo(): what the owner had before; access 0: it had not opened the file.
  struct Before {
    std::uint32_t access = 0, deny = 0;
    std::uint8_t accesses_opened = 0, denies_opened = 0;
  } before;
  Limit limit = Limit::None;  // of Delay
  // It denies writing, and data are being changed: stop_changes(), wait_for_changes(), ask again.
  bool changing = false;
  FileChange truncation;  // where it truncates, which is still to be done
};

struct StateidResult {
  Status status = Status::Ok;
  Stateid stateid;
  Limit limit = Limit::None;  // of Delay and Serverfault, and as delegate() has it
};

struct LockArgs {
  FileKey file;
  Range range;  // byte_range()
  bool exclusive = false;
  bool reclaim = false;
  // True: `stateid` is an open's, and lock_owner (without the clientid) says who locks. False: it
  // is a lock's.
  bool new_lock_owner = false;
  Stateid stateid;
  Bytes lock_owner;
  bool only_asks = false;  // whether it would be granted; what is held already is granted at once
};
struct LockResult {
  // Refused: Denied, Openmode, Grace, NoGrace, ReclaimBad, ReclaimConflict, Delay, and those of
  // stateids.
  Verdict verdict;
  Stateid stateid;
  std::optional<ConflictingLock> conflict;  // Denied
  Limit limit = Limit::None;                // of Delay
  bool frees = false;                       // what the owner had to itself others may share
  bool held = false;                        // it had it already
};

// The client that a stateid belongs to; null unless Ok.
struct StateHolder {
  Status status = Status::Ok;  // StaleStateid: of an earlier start of the server; BadStateid
  LifePtr life;
};

struct DelegateArgs {
  FileKey file;
  DelegationType type = DelegationType::Read;
  SlotRef granted_by;        // the request, which a recall refers to
  std::uint64_t change = 0;  // the file's, before its holder could change anything
  bool reclaim = false;      // it was given before a restart (10.2.1)
  TimePoint now{};           // for hold_back() and Life::no_delegation_before
};
// A delegation that its holder is to give back, or is asked about.
struct Recall {
  Stateid stateid;
  FileKey file;
  ClientId clientid = 0;
  SlotRef granted_by;
  std::uint64_t change = 0;  // as in DelegateArgs
  bool recalled = false;     // before
};

// What is reclaimed, claimed by a delegation or left of a range that is unlocked in part is held
// against twice the limits of a client and of all (decision 0085). While clients are served,
// Files::change_limits() replaces those from `states_of_client` to `delegations`.
struct StateLimits {
  std::uint32_t states_of_client = 65536;  // opens, lock stateids, byte ranges; beyond: Delay
  std::uint32_t states_of_address = 262144;
  std::uint32_t states = 524288;
  bool shared_out = true;  // leaves_enough() is asked of states of an address, too
  std::uint32_t delegations = 32768;
  std::uint32_t ranges_of_mirrored = 4096;  // byte ranges of a file that RangeMirror mirrors
  std::uint32_t waiting = 1024;             // for delegations of one file
};

struct StateInfo {
  enum class Type : std::uint8_t { Open, Lock, Delegation };
  Type type = Type::Open;
  ClientId clientid = 0;
  Stateid stateid;
  FileKey file;
  std::string owner;
  std::uint32_t share_access = 0;  // Open
  std::uint32_t share_deny = 0;
  std::vector<std::pair<Range, bool>> ranges;             // Lock; true: exclusive
  DelegationType delegation_type = DelegationType::Read;  // Delegation
  bool recalled = false;                                  // Delegation
  Status revoked = Status::Ok;                            // AdminRevoked, DelegRevoked, Expired
};

// A listing of what all clients hold, page by page (nfs/state/listing.h).
struct StateCursor;
struct StateFilter;
class StatePage;

// How much a client holds.
struct HeldCounts {
  std::uint32_t opens = 0;
  std::uint32_t locks = 0;  // byte ranges
  std::uint32_t delegations = 0;
};

class FileShard;

class Files {
 public:
  struct Options {
    std::uint32_t epoch = 1;  // of this start of the server, as in Clients
    SipKey key{};
    StateLimits limits{};
    // Shared with the others that give locks out.
    std::shared_ptr<GracePeriod> grace = std::make_shared<GracePeriod>();
  };

  explicit Files(const Options& options);
  ~Files();

  // Replaces states_of_client, states_of_address, states, shared_out and delegations; the others
  // stay as they are, whatever `limits` has. What is held beyond a limit stays, too, and nothing
  // more is granted until it has gone; what asks meanwhile may be judged by some of the new limits
  // and some of the former.
  void change_limits(const StateLimits& limits);

  // The grace period: only reclaims are granted, and what the holder of a delegation was given with
  // it.
  bool grace() const { return grace_->active(); }
  // RFC 8881 8.4.2.1 and 18.51.3, of every OPEN and LOCK: Grace, NoGrace, ReclaimBad. `delegated`:
  // it is covered by a delegation of the client, of which open() and lock() see to it.
  Status may_claim(bool reclaim, const Life& life, bool delegated = false) const;

  // Names the table that keeps locks besides; null: none. Called while no Call runs.
  void share_with(OutsideLocks* outside) { outside_ = outside; }
  void stop_sharing_with(const OutsideLocks& outside) {
    if (outside_ == &outside) outside_ = nullptr;
  }
  // Told after what was locked here has gone; null: nobody. Set while no Call runs.
  void mirror_to(RangeMirror* mirror) { mirror_ = mirror; }
  // Raises what is locked in this range of a file.
  void locked_in(const FileKey& file, const Range& range, RangeModes& to) const;
  // The address of a client that has locked something of a file: `preferred`, if one there is among
  // the first that are looked at; nullopt: nobody has.
  std::optional<std::string> locker_at(const FileKey& file, const std::string& preferred) const;
  // What the others ask before they add something. Of a byte range: Denied with the lock that is in
  // the way, Recall, or Lapsed. Of a share reservation: ShareDenied, Recall or Lapsed.
  LockResult range_conflict(const FileKey& file, const Range& range, bool exclusive);
  Verdict share_conflict(const FileKey& file, std::uint32_t share_access, std::uint32_t share_deny);

  OpenResult open(const OpenArgs& args, const LifePtr& life);
  // For an open of a file that is still to be made.
  ReserveResult reserve_open(Bytes open_owner, const LifePtr& life);
  // Changes of the data of the file that come later are Recall meanwhile; those of OPENs, too.
  StoppedChanges stop_changes(const FileKey& file) {
    return StoppedChanges(changes_.slot_of(file));
  }
  // Once they are stopped, until those that had begun have ended.
  Waiting wait_for_changes(const FileKey& file, UniqueFunction<void()> done);
  // The rest of OPEN failed, and nobody was told of the stateid: what was before is again.
  void undo(const OpenResult& opened);
  // Inval unless the owner opened the file like that.
  StateidResult open_downgrade(const FileKey& file, const Stateid& stateid,
                               std::uint32_t share_access, std::uint32_t share_deny,
                               const Life& life);
  // Locks under the open go with it. The stateid is kInvalidStateid.
  StateidResult close(const FileKey& file, const Stateid& stateid, const Life& life);

  // A delegation for a client, the last step of its OPEN. Denied: others use or change the file, or
  // a delegation is there, or it is too early for another one; Delay: there are too many; Grace;
  // Expired. A client that reclaims one which it has reclaimed already gets that one;
  // ReclaimConflict in place of Denied. Too many is no reason to refuse it that (10.2.1): Ok with a
  // limit, it is to be given back at once.
  StateidResult delegate(const DelegateArgs& args, const LifePtr& life);
  // What keeps local programs waiting while the delegation stands; it goes with it, at once where
  // it is gone already.
  void keep_lease(const Stateid& delegation, std::shared_ptr<vfs::Lease> lease);
  // DELEGRETURN; or nobody was told of it after all.
  Status return_delegation(const FileKey& file, const Stateid& stateid, const Life& life);
  // The write delegation of a client other than `by`, which knows size and change of the file
  // better (RFC 8881 10.4.3). Nullopt if its holder has lapsed.
  std::optional<Recall> write_delegation(const FileKey& file, const Life* by) const;
  // The kind that the client itself has of the file.
  std::optional<DelegationType> delegation_of(const FileKey& file, const Life& life) const;
  // Whether this is a delegation of the client, recalled or not: CLAIM_DELEGATE_CUR.
  Status check_delegation(const FileKey& file, const Stateid& stateid, const Life& life);
  // `told` hears of each Recall, without any lock held, on whatever thread the conflict came. Set
  // once, before the first delegation.
  void on_recall(UniqueFunction<void(const Recall&)> told) { told_ = std::move(told); }
  // No client gets a delegation of this file before that time, for another wants it. What is held
  // back last is what is remembered.
  void hold_back(const FileKey& file, TimePoint until);
  // The server could not send a Recall after all: the next conflict makes another one.
  void recall_again(const Stateid& stateid);
  // After Verdict Recall, until a delegation of the file is gone, or its changes go on.
  Waiting wait(const FileKey& file, UniqueFunction<void()> done);
  // Whether it still stands, recalled or not.
  bool is_delegated(const Stateid& stateid) const;
  // One that was not given back in time: DelegRevoked from now on, until its client frees it, or
  // BadStateid where that cannot (version 4.0).
  void revoke_delegation(const Stateid& stateid);

  // READ, WRITE and SETATTR with a stateid: Openmode, Locked, Grace, BadStateid, OldStateid, ...
  Permit check(const FileKey& file, const Stateid& stateid, const Life& life, Touch touch);
  // The gate for all that comes without a stateid: NFSv2, NFSv3, operations on names. Locked when a
  // share reservation denies it; Recall. `by`: who touches it, whose own delegations are not in
  // the way; null: no client of version 4.
  Permit access(const FileKey& file, Touch touch, const Life* by = nullptr) {
    auto change = begin_change(file, touch);
    if (!change) return {kChangesStopped, {}};
    return {guarded() ? guarded_access(file, touch, by) : Verdict{}, *std::move(change)};
  }
  // After a Recall of check() or access(): what is in the way is recalled from now on.
  void recall(const FileKey& file, Touch touch, const Life* by = nullptr);
  // Wants a delegation back though nobody is in its way. One that was recalled already, or is gone,
  // is left alone.
  void recall(const Stateid& delegation);
  // Whether anything could be in the way of anybody.
  bool guarded() const { return guards_.load() != 0; }

  LockResult lock(const LockArgs& args, const LifePtr& life);
  // LOCKT: Denied or granted.
  LockResult test_lock(const FileKey& file, const Range& range, bool exclusive, Bytes lock_owner,
                       const Life& life);
  // Serverfault: of a range would be left more pieces than there is room for, which does not pass
  // with time.
  StateidResult unlock(const FileKey& file, const Stateid& stateid, const Range& range,
                       const Life& life);

  // Version 4.0, where a stateid says who asks.
  StateHolder holder_of(const Stateid& stateid) const;
  // The open or lock owner of a stateid; empty when it is gone.
  std::string owner_of(const Stateid& stateid) const;
  bool is_open(const Stateid& stateid) const;
  StateidResult open_confirm(const FileKey& file, const Stateid& stateid, const Life& life);
  // An open that was never confirmed ends.
  void cancel(const Stateid& stateid);
  // Whether a lock stateid has byte ranges.
  bool holds_ranges(const Stateid& stateid) const;
  // Whether a client has byte ranges in a file.
  bool holds_ranges(const FileKey& file, const Life& life) const;

  // COPY_NOTIFY: whether this is an open for reading, or locks of one, or a delegation: Openmode,
  // BadStateid, OldStateid, AdminRevoked, DelegRevoked, Expired.
  Status may_read(const FileKey& file, const Stateid& stateid, const Life& life);
  // TEST_STATEID, of one.
  Status test_stateid(const Stateid& stateid, const Life& life);
  // FREE_STATEID: LocksHeld, BadStateid, OldStateid.
  Status free_stateid(const Stateid& stateid, const Life& life);

  // What an administrator takes away: the stateid is AdminRevoked until its client frees it, in
  // version 4.0 until it is told so where it gives the stateid up (CLOSE, LOCKU, DELEGRETURN,
  // RELEASE_LOCKOWNER), opens the file again, or more were revoked since. BadStateid when there is
  // none.
  Status revoke(const Stateid& stateid);
  // The client of a stateid as of revoke(); null: there is none.
  LifePtr holder(const Stateid& stateid) const;
  // Where a client has byte ranges, once for each lock stateid.
  std::vector<FileKey> locked_by(const Life& life) const;
  // Takes the byte ranges that a client which has lapsed has in a file, and does not end it for
  // them: their stateids are Expired as of revoke(). How many these are; 0: it came back, or has
  // none there.
  std::size_t expire_locks(const FileKey& file, const Life& life);
  // Some client lapsed: those who wait elsewhere ask again, and find out whom to end.
  void tell_of_lapse();
  // Everything of a client that Ended, at once. It asks for no memory: nobody would come back to
  // what it left.
  void release(const Life& life);
  // Those who found no memory when they were told that something had gone are told again. To be
  // called now and then, while untold().
  void tell_again();
  bool untold() const { return untold_.load(); }
  // The next page of a listing; false: it was the last one. What is there from the first page to
  // the last is listed once (a lock with many ranges in several rows); what comes or goes meanwhile
  // may be. Holds one lock, for some hundred records at most.
  bool list(StateCursor& at, const StateFilter& filter, StatePage& page) const;
  // What a client holds, at most `most` rows of it.
  std::vector<StateInfo> list(ClientId clientid, std::size_t most) const;
  // Of each client, one after the other; shards are looked at one by one.
  void count_held(std::span<const ClientId> clients, std::span<HeldCounts> counts) const;

  std::uint32_t states() const;  // of all clients, as in Life

 private:
  struct Impl;
  struct LockTarget;
  OpenResult open_asking(const OpenArgs& args, const LifePtr& life);
  LockResult lock_asking(const LockArgs& args, const LifePtr& life);
  StateidResult delegate_asking(const DelegateArgs& args, const LifePtr& life);
  static constexpr Verdict kChangesStopped{Verdict::Kind::Recall, Status::Delay, 0};
  // What takes a name away leaves the file as it is. nullopt: changes of it are stopped.
  std::optional<FileChange> begin_change(const FileKey& file, Touch touch) {
    switch (touch) {
      case Touch::Write:
      case Touch::Size:
        return changes_.begin(file, ChangeOf::Data);
      case Touch::Attributes:
        return changes_.begin(file, ChangeOf::Attributes);
      case Touch::Read:
      case Touch::Unlink:
      case Touch::Look:
        break;
    }
    return FileChange();
  }
  // What changes in progress, and those who have stopped them, have against an OPEN.
  void meet_changes(const OpenArgs& args, OpenResult& result);
  Verdict guarded_access(const FileKey& file, Touch touch, const Life* by);
  Verdict checked(const FileKey& file, const Stateid& stateid, const Life& life, Touch touch);
  void tell_recalls(const FileKey& file);
  void tell(const Recall& recall);
  static Status find_target(FileShard& shard, const LockArgs& args, const Life& life,
                            std::uint64_t owner_hash, LockTarget& target);
  struct Touched;
  bool release_some(FileShard& shard, const Life& life, Touched& touched);
  // nullopt: first the others are to be asked, whose mutex is held then (`asked`).
  std::optional<OpenResult> open_if(const OpenArgs& args, const LifePtr& life, bool asked);
  std::optional<StateidResult> delegate_if(const DelegateArgs& args, const LifePtr& life,
                                           bool asked);
  std::optional<LockResult> lock_if(const LockArgs& args, const LifePtr& life, bool asked);
  bool ask_others(bool asked) const { return !asked && outside_ != nullptr && outside_->any(); }
  // Others may go on: of this file, or (null) of any. `where`: byte ranges went there; nullopt:
  // there were none.
  void freed(const FileKey* file, const std::optional<Range>& where);
  void unlocked(const FileKey* file, const Range& range);
  bool is_mirrored(const FileKey& file) const {
    return mirror_ != nullptr && mirror_->mirrors(file);
  }

  const std::shared_ptr<GracePeriod> grace_;
  // Opens that deny something and delegations, those that are about to be granted among them.
  std::atomic<std::uint32_t> guards_{0};
  FileChanges changes_;
  UniqueFunction<void(const Recall&)> told_;
  OutsideLocks* outside_ = nullptr;
  RangeMirror* mirror_ = nullptr;
  std::atomic<bool> untold_{false};  // outside_ or mirror_ missed what is gone
  const std::unique_ptr<Impl> impl_;
};

}  // namespace stag::nfs::state
