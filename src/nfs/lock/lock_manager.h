// The lock table for many threads, with what time adds to it: the grace period after a restart, in
// which locks are only reclaimed (RFC 1813 6.1.4 NLM4_DENIED_GRACE_PERIOD), and grants that a
// client has not acknowledged yet. Speaks the statuses of NLM version 4.
//
// A waiter that gets its lock holds it from then on, so nobody else can have it; if the client does
// not want it any more, or cannot be reached, it goes back. Whoever set on_grant() hears of such
// grants, on the thread of whoever freed the bytes.
//
// One mutex for everything, held over allocations but not over system calls or a co_await: locks
// are rare beside READ and WRITE, and releasing one may concern any other.
#pragma once

#include <map>
#include <mutex>

#include "base/loop.h"
#include "nfs/lock/lock_table.h"
#include "nfs/lock/sharing.h"
#include "nfs/proto/nlm.h"
#include "nfs/state/grace_period.h"

namespace stag::nfs::lock {

// How a waiting client spoke, and is called back: with its own words (XNFS 10.3 NLM_GRANTED).
struct LockParams {
  std::uint32_t version = 4;  // of NLM
  bool by_message = false;    // it came as NLM_LOCK_MSG
  std::string file_handle;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

struct LockArgs {
  LockRequest request;
  bool block = false;
  bool reclaim = false;
  std::int32_t client_state = 0;  // of its status monitor; 0: it does not know
  LockParams wish;
};

// A grant on its way to the client.
struct PendingGrant {
  Grant grant;
  LockParams wish;
  bool offered = false;     // and not answered
  bool unanswered = false;  // that happened to an earlier offer
};

class LockManager {
 public:
  explicit LockManager(const LockLimits& limits = {});
  ~LockManager();

  // What clients of NFSv4 hold excludes what is asked for here, and the reverse. Before the first
  // request; `gate` has Files, and all outlive the manager.
  void share_with(state::Gate& gate, const FsidMap& stores);

  // From now on requests may wait; without this they are denied. Before the first request; called
  // from any thread, without a lock held.
  using OnGrant = UniqueFunction<void(const Client& client, Ticket ticket)>;
  void on_grant(OnGrant heard) { on_grant_ = std::move(heard); }
  // The grace period; in it only reclaims, outside of it none. Shared with whoever else gives locks
  // out. Before the first request.
  void share_grace(std::shared_ptr<state::GracePeriod> grace) { grace_ = std::move(grace); }
  // NLM's clients do not say when they are done: it runs its full time.
  void begin_grace(TimePoint end) { grace_->begin(end, true); }

  struct Tested {
    nlm::nlm4_stats stat = nlm::NLM4_GRANTED;
    std::optional<Held> holder;  // with NLM4_DENIED
  };
  Tested test(const LockRequest& request, TimePoint now) const;
  nlm::nlm4_stats lock(const LockArgs& ask, TimePoint now);
  nlm::nlm4_stats cancel(const LockRequest& request);
  nlm::nlm4_stats unlock(const FileKey& file, const Owner& owner, Range range);
  nlm::nlm4_stats share(const FileKey& file, const Share& share, bool reclaim, TimePoint now);
  void unshare(const FileKey& file, const Owner& owner);

  // The client says that it forgot everything (FREE_ALL).
  void release(const Client& client);
  // The status monitor of a host says that it restarted: whether that dropped anything. Hosts are
  // told by their address; the name only tells those that share one address apart. Locks that were
  // taken after the restart (with the same state) stay, and so does everything when the news comes
  // twice.
  bool restarted(const std::string& address, const std::string& name, std::int32_t state,
                 TimePoint now);
  // This host restarts, or so it is to look.
  void clear();

  // Nothing when it was settled meanwhile.
  std::optional<PendingGrant> pending(Ticket ticket) const;
  // It is told to the client, once more.
  void offering(Ticket ticket);
  // The client asks for time.
  void not_yet(Ticket ticket);
  // What the client says to an offer. That it does not want the lock counts only when no earlier
  // offer went unanswered: the client may have heard that one, and have the lock since.
  void answered(Ticket ticket, bool wanted);
  // The client has its lock, or did not want it. False: it was settled already.
  bool settle(Ticket ticket, bool wanted);
  bool is_pending(Ticket ticket) const;

  // Whether anybody at this address has or waits for anything.
  bool knows(const std::string& address) const;
  std::size_t size() const;           // locks, shares, waiters and pending grants
  std::size_t pending_count() const;  // grants

 private:
  struct Heard {
    std::int32_t state = 0;
    TimePoint when{};
  };
  struct GrantNotice {
    Client client;
    Ticket ticket = 0;
  };
  bool in_grace(TimePoint now) const { return grace_->active(now); }
  using Tickets = std::vector<Ticket>;
  // Grants on their way in one file, by owner: what an owner does looks at none of the others'.
  struct ByOwner {
    using is_transparent = void;
    static const Owner& owner(const Owner& one) { return one; }
    static const Owner& owner(const OwnerPtr& one) { return *one; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return owner(a) < owner(b);
    }
  };
  using Grants = std::multimap<OwnerPtr, Ticket, ByOwner>;
  nlm::nlm4_stats lock_now(const LockArgs& ask);
  Grant take_pending(Ticket ticket);
  Tickets pending_of(const FileKey& file, const Owner& owner) const;
  void forget_pending(const FileKey& file, const Owner& owner, Range range);
  void note_state(const Client& client, std::int32_t state);
  void release_which(const LockTable::Which& which);
  std::vector<Client> clients_of(const std::string& address, const std::string& name) const;
  bool heard_before(const Client& client, std::int32_t state, TimePoint now);
  // What must be told once the mutex is free.
  struct News {
    std::vector<GrantNotice> grants;
    std::vector<state::ClientId> lapsed;  // of version 4, that are in the way of somebody
  };
  News take_news();
  void tell(const News& news);
  nlm::nlm4_stats share_now(const FileKey& file, const Share& share);
  // Version 4 holds less of this file, or (null) of any.
  void recheck(const FileKey* file);

  mutable std::mutex mutex_;
  LockTable table_;
  std::shared_ptr<state::GracePeriod> grace_ = std::make_shared<state::GracePeriod>();
  std::map<Ticket, LockParams> wishes_;
  std::map<Ticket, PendingGrant> pending_;
  std::unordered_map<FileKey, Grants, FileKeyHash> pending_in_;
  std::map<Client, std::int32_t> states_;
  std::map<Client, Heard> heard_;  // restarts, of those who had locks then
  OnGrant on_grant_;
  std::unique_ptr<Sharing> sharing_;  // null: there is no version 4
};

}  // namespace stag::nfs::lock
