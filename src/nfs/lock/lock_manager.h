// LockManager: the lock table for many threads, with the grace period after a restart, in which
// clients may only reclaim locks (RFC 1813 6.1.4 NLM4_DENIED_GRACE_PERIOD), and with the grants
// that a client has not acknowledged yet. It yields the statuses of NLM version 4.
// A blocked request that is granted holds its lock from then on; if the client does not want the
// lock any more, or cannot be reached, the lock is reverted. on_grant() is called for each such
// grant, on the thread that freed the bytes.
// One mutex protects everything; it is held over allocations but not over system calls or a
// co_await. Locks are rare beside READ and WRITE, and releasing one may grant any other.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <mutex>

#include "base/loop.h"
#include "nfs/lock/client_states.h"
#include "nfs/lock/local_programs.h"
#include "nfs/lock/lock_table.h"
#include "nfs/lock/sharing.h"
#include "nfs/proto/nlm.h"
#include "nfs/state/grace_period.h"

namespace stag::nfs::lock {

// What NLM_GRANTED repeats of the client's own NLM_LOCK (XNFS 10.3).
struct LockParams {
  std::uint32_t version = 4;  // version of NLM
  bool by_message = false;    // the request was NLM_LOCK_MSG
  std::string file_handle;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::string called_at{};  // the address of this machine that the request came to
  // Has the file open for programs of this host to be asked, while the request waits.
  std::shared_ptr<LocalLockTable::Pin> open{};
};

// A LOCK or SHARE whose file is being opened, or whose client is being recorded: nothing is locked
// yet.
struct LockUnderWay {
  std::string file_handle;
  OwnerPtr owner;
  std::optional<Range> range;  // of a LOCK
  std::int32_t state = 0;      // as LockArgs::client_state
  bool withdrawn = false;      // by CANCEL, UNLOCK or UNSHARE, or its client has lost all it has
};

struct LockArgs {
  LockRequest request;
  bool block = false;
  bool reclaim = false;
  std::int32_t client_state = 0;  // the client's NSM state number; 0: unknown
  LockParams params;
  const LockUnderWay* under_way = nullptr;  // of LockManager::Begun; may be null
};

// A grant that the client has not acknowledged.
struct PendingGrant {
  Grant grant;
  LockParams params;
  bool offered = false;     // NLM_GRANTED was sent and is not answered
  bool unanswered = false;  // an earlier NLM_GRANTED was never answered
};

class LockManager {
 public:
  explicit LockManager(const LockLimits& limits = {});
  ~LockManager();

  // Makes the locks and shares of NFSv4 and of NLM exclude each other. Called before the first
  // request; `gate`, which has Files, outlives the manager.
  void share_with(state::Gate& gate);

  // Makes the locks of NLM and those of programs of this host exclude each other. Called before the
  // first request; `local` outlives the manager. `met` is called, on any thread and without
  // the mutex, when a request is blocked by a program, of which nobody hears when it has done, or
  // when there was no memory to tell who has what was freed: then retry() is due.
  void share_with_programs(LocalLockTable& local, UniqueFunction<void()> met);
  // True when it is due again: a program is still in the way of a request, say.
  bool retry();
  // Whether there was no memory for something that retry() does.
  bool overdue() const { return overdue_.load(); }

  // Lets requests block; without a callback they are denied. Set before the first request; the
  // callback runs on any thread, without the mutex.
  using OnGrant = UniqueFunction<void(const Client& client, Ticket ticket)>;
  void on_grant(OnGrant callback) { on_grant_ = std::move(callback); }
  // The grace period, shared with NFSv4: reclaims are granted during it and refused outside of it.
  // Set before the first request.
  void share_grace(std::shared_ptr<state::GracePeriod> grace) { grace_ = std::move(grace); }
  // NLM has no RECLAIM_COMPLETE, so the grace period runs its full time.
  void begin_grace(TimePoint end) {
    grace_->begin(end, true);
    if (on_grace_) on_grace_();
  }
  // Called on any thread when it has begun a grace period: from now on in_grace(now) is to be asked
  // again and again. Set before the first request.
  void on_grace(UniqueFunction<void()> callback) { on_grace_ = std::move(callback); }
  bool in_grace() const { return grace_->active(); }
  // The same, and ends it where it is due.
  bool in_grace(TimePoint now) const { return grace_->active(now); }
  state::GracePeriod& grace() { return *grace_; }

  struct Tested {
    nlm::nlm4_stats stat = nlm::NLM4_GRANTED;
    std::optional<Held> holder;  // with NLM4_DENIED
  };
  Tested test(const LockRequest& request, TimePoint now) const;
  // Stands from the arrival of a LOCK or SHARE until lock() or share() has ended.
  class Begun {
   public:
    Begun(LockManager& manager, LockUnderWay lock);
    ~Begun();
    Begun(const Begun&) = delete;
    Begun& operator=(const Begun&) = delete;
    const LockUnderWay* get() const { return &*place_; }

   private:
    LockManager& manager_;
    std::list<LockUnderWay>::iterator place_;
  };
  // Comes before cancel() and unlock(): the owner's LOCKs of this range, or of parts of it, that
  // have begun are denied. nullopt: before unshare(), of its SHAREs.
  void withdraw(const std::string& file_handle, const Owner& owner, std::optional<Range> range);
  nlm::nlm4_stats lock(const LockArgs& args, TimePoint now);
  nlm::nlm4_stats cancel(const LockRequest& request);
  nlm::nlm4_stats unlock(const FileKey& file, const Owner& owner, Range range);
  nlm::nlm4_stats share(const FileKey& file, const Share& share, bool reclaim, TimePoint now,
                        const LockUnderWay* under_way = nullptr);
  void unshare(const FileKey& file, const Owner& owner);

  // NLM_FREE_ALL, or an administrator: the client has lost its locks. False when it had nothing.
  bool release(const Client& client);
  // SM_NOTIFY of a host that restarted; true when locks were released. The address identifies the
  // host; the name only distinguishes hosts that share an address. Locks taken since the restart
  // (with the same state number, first seen not long before) stay, and a repeated notification
  // releases nothing. What is under way since before the restart is denied.
  bool restarted(const std::string& address, const std::string& name, std::int32_t state,
                 TimePoint now);
  // Releases everything, as a restart of this host would (SM_SIMU_CRASH).
  void clear();

  std::vector<Ticket> pending_tickets() const;
  // nullopt when the grant was settled meanwhile.
  std::optional<PendingGrant> pending(Ticket ticket) const;
  // NLM_GRANTED is about to be sent to the client, perhaps once more.
  void offering(Ticket ticket);
  // The client answered that it is in its own grace period: NLM_GRANTED is sent again later.
  void not_yet(Ticket ticket);
  // The client's answer to NLM_GRANTED. A refusal counts only when no earlier NLM_GRANTED went
  // unanswered: the client may have received that one, and use the lock since.
  void answered(Ticket ticket, bool wanted);
  // The client cannot be reached. Where it may have received NLM_GRANTED it has the lock, and may
  // use it: the grant stays. Else the lock is reverted: true.
  bool give_up(Ticket ticket);
  // The host at this address cannot be reached: what waited there and has not asked again for
  // minutes waits no more. One that lives asks again, and has a new place in the queue.
  void forget_silent(const std::string& address, TimePoint now);
  // Ends a pending grant: the client has the lock, or the lock is reverted. False when the grant
  // was settled already.
  bool settle(Ticket ticket, bool wanted);
  bool is_pending(Ticket ticket) const;

  // Whether a client at this address has a lock, a share or a blocked request.
  bool knows(const std::string& address) const;
  std::size_t size() const;           // locks, shares, blocked requests and pending grants
  std::size_t pending_count() const;  // grants
  // For a listing: locks, shares, blocked requests and pending grants of each client; the files
  // that these are of, and the locks of one.
  std::map<Client, std::size_t> clients() const;
  std::vector<FileKey> files() const;
  std::vector<Held> held(const FileKey& file) const;

 private:
  struct GrantNotice {
    Client client;
    Ticket ticket = 0;
  };
  // The pending grants of one file, by owner, so that an operation looks at its own owner's only.
  using Grants = std::multimap<OwnerPtr, Ticket, ByOwner>;
  nlm::nlm4_stats lock_now(const LockArgs& args, TimePoint now);
  bool release_older(const Client& client, std::int32_t state);
  // As in PendingGrant.
  struct Offers {
    bool offered = false;
    bool unanswered = false;
  };
  Offers offers_of(Ticket ticket) const;
  Grant take_pending(Ticket ticket);
  template <class Use>
  void each_pending_of(const FileKey& file, const Owner& owner, Use use);
  // Pending grants, and what is to become their `before`.
  using Befores = std::list<std::pair<PendingGrant*, RangeParts>>;
  static void put(Befores& befores) noexcept;
  void revert(const PendingGrant& unwanted);
  template <class Which>
  Befores befores_without(const FileKey& file, const Owner& owner, Which which);
  Befores befores_without(const FileKey& file, const Owner& owner, Range range);
  void forget_pending(const FileKey& file, const Owner& owner, Range range, Befores befores);
  template <class Which>
  void withdraw_which(Which which) noexcept;
  void release_which(const LockTable::Which& which);
  std::vector<Client> clients_at(const std::string& address) const;
  std::vector<Client> clients_of(const std::string& address, const std::string& name,
                                 bool is_repeated) const;
  // What is reported to others once the mutex is free.
  struct Notices {
    std::list<GrantNotice> grants;
    std::vector<state::ClientId>
        lapsed;  // expired NFSv4 clients whose state conflicts with a request
    std::vector<LocalLockTable::Hold> holds;
    bool retry = false;  // it is due
  };
  Notices take_notices();
  void take_grant();
  void take_grants();
  void deliver(Notices& notices);
  template <class Work>
  Notices carry_out(std::unique_lock<std::mutex>& lock, Work work);
  void ask_elsewhere();
  // Without the mutex: NLM holds less of this file, or (null) of any.
  void freed(const FileKey* file, const Range& range = {});
  nlm::nlm4_stats share_now(const FileKey& file, const Share& share);
  // NFSv4 released locks or shares of this file, or (null) of any file.
  void recheck(const FileKey* file);

  mutable std::mutex mutex_;
  LockTable table_;
  std::shared_ptr<state::GracePeriod> grace_ = std::make_shared<state::GracePeriod>();
  std::list<LockUnderWay> under_way_;
  using Blocked = std::map<Ticket, LockParams>;
  Blocked blocked_;
  std::map<Ticket, PendingGrant> pending_;
  std::unordered_map<FileKey, Grants, FileKeyHash> pending_in_;
  ClientStates states_;
  OnGrant on_grant_;
  UniqueFunction<void()> on_grace_;
  std::list<GrantNotice> undelivered_;       // for want of memory
  std::unique_ptr<Sharing> sharing_;         // null: NFSv4 is not served
  std::unique_ptr<LocalPrograms> programs_;  // may be null
  UniqueFunction<void()> on_met_;
  std::atomic<bool> overdue_{false};
};

}  // namespace stag::nfs::lock
