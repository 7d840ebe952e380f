// LockTable: the locks, shares and blocked requests (waiters) of all files: the state of a lock
// manager without clock, thread or protocol.
//
// The locks of a file are those of range_locks.h: an exclusive lock excludes all locks of other
// owners, a shared lock only exclusive ones. Each file has a queue of waiters; an operation that
// frees bytes grants the lock, in the order of the queue, to every waiter that no longer conflicts.
// Those that ask again come first: who has not for minutes may be gone.
// Deadlocks are not detected: only clients know which of their processes wait for each other.
//
// Limits by client, by address, by file and in all bound what a peer can make grow; of a file, and
// of all, an address leaves as much as it takes (decision 0082). Not synchronised; LockManager is.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "nfs/lock/range_locks.h"
#include "nfs/state/types.h"
#include "vfs/types.h"

namespace stag::nfs::lock {

using state::FileKey;
struct FileKeyHash {
  std::size_t operator()(const FileKey& key) const {
    return vfs::HandleHash()(key.handle) ^ std::hash<std::uint64_t>()(key.store);
  }
};

struct LockRequest {
  FileKey file;
  OwnerPtr owner;
  Range range;
  bool exclusive = false;
};

// Identifies a blocked request; never reused.
using Ticket = std::uint64_t;

// A waiter that was granted its lock; counted until settled(). `before` is what its owner has in
// this range where it does not want the lock.
struct Grant {
  Ticket ticket = 0;
  LockRequest request;
  RangeParts before;
};

// DOS file sharing (NLM_SHARE): the access that an opener has and the access that it denies to
// others, as bits 1 (read) and 2 (write).
struct Share {
  OwnerPtr owner;
  std::uint32_t denied = 0;
  std::uint32_t access = 0;
};

struct LockLimits {
  std::size_t of_client = 8192;    // locks, shares, waiters and grants that are not settled
  std::size_t of_address = 16384;  // for clients choose their names freely
  std::size_t of_file = 16384;
  // Waiters, and grants that are not settled.
  std::size_t waiters_of_file = 1024;
  std::size_t waiters_of_address = 1024;
  std::size_t in_all = 65536;
};

// What a client wants locks for. What it has already is held against other limits than what it
// wants anew (decision 0085).
enum class Claim : std::uint8_t {
  New,
  Reclaimed,  // after a restart of this host
  Held,       // what remains of a range that it unlocks in part
};

enum class LockOutcome : std::uint8_t { Granted, Denied, Blocked, Full };

class LockTable {
 public:
  explicit LockTable(const LockLimits& limits = {}) : limits_(limits) {}

  // Whether a request conflicts with something outside this table (NFSv4). It is then denied, or
  // blocked until recheck().
  using Elsewhere = std::function<bool(const LockRequest&)>;
  void ask_elsewhere(Elsewhere elsewhere) { elsewhere_ = std::move(elsewhere); }
  // Something outside the table was released in this file, or in any file.
  void recheck(const FileKey& file);
  void recheck_all();

  // A lock that conflicts with the request; nullopt when there is none.
  std::optional<Held> test(const LockRequest& request) const;

  struct Answer {
    LockOutcome outcome = LockOutcome::Denied;
    // Blocked: the ticket of the waiter, which a repeated request keeps; 0: there is no place for
    // it, and it is to ask again. Granted: the ticket of the waiter that the request was until
    // then, or 0.
    Ticket ticket = 0;
  };
  Answer lock(const LockRequest& request, bool wait, TimePoint now = {}, Claim claim = Claim::New);
  // Removes the waiter of this request from the queue and yields its ticket; nullopt when there is
  // none.
  std::optional<Ticket> cancel(const LockRequest& request);
  // The waiters of an address that have not asked again for minutes are none any more; calls left()
  // with their tickets. Asks for no memory.
  using Left = std::function<void(Ticket)>;
  void forget_silent(const std::string& address, TimePoint now, const Left& left);
  // Bytes that are not locked may be unlocked too. False when unlocking would split a lock and
  // exceed a limit.
  bool unlock(const FileKey& file, const Owner& owner, Range range);
  // Called once for each grant, when the client has acknowledged it or has replaced it by a later
  // operation.
  void settled(const Grant& grant);
  // Called before settled() when the owner does not want the lock of a grant any more: these bytes
  // of it become what they were before or, where memory runs out, nothing changes. What others have
  // locked since the grant made it shared stays shared.
  void revert(const LockRequest& granted, RangeParts before);

  // Whether a share by an owner outside this table conflicts.
  bool share_conflict(const FileKey& file, std::uint32_t access, std::uint32_t denied) const;
  // Denied or Granted; replaces the share that the owner had.
  LockOutcome share(const FileKey& file, const Share& share);
  void unshare(const FileKey& file, const Owner& owner);

  // Releases all locks, shares and waiters of the clients for which `which` is true; calls left()
  // with the tickets of those waiters. Asks for no memory.
  using Which = std::function<bool(const Client&)>;
  void release(const Which& which, const Left& left);

  // The grants that were not taken, in order.
  const std::list<Grant>& grants() const { return granted_; }
  // The first of them. Asks for no memory.
  Grant take_grant() {
    Grant first = std::move(granted_.front());
    granted_.pop_front();
    return first;
  }
  // Whether there was no memory, since the last call, to look who gets what was freed: then
  // recheck_all() is due.
  bool take_unswept() { return std::exchange(unswept_, false); }

  // Whether there is anything of this file: a lock, a share, a waiter, an unsettled grant.
  bool concerns(const FileKey& file) const {
    const auto found = files_.find(file);
    return found != files_.end() && found->second.size() != 0;
  }
  std::vector<Held> held(const FileKey& file) const;
  // For a listing: the files that anything is of, and how much each client has.
  std::vector<FileKey> files() const;
  const std::map<Client, std::size_t>& counts() const { return counts_; }
  // Raises what is locked in this range of the file.
  void locked_in(const FileKey& file, const Range& range, state::RangeModes& to) const {
    const auto found = files_.find(file);
    if (found != files_.end()) found->second.locks.locked_in(range, to);
  }
  // As of RangeLocks.
  std::optional<std::string> locker_at(const FileKey& file, const std::string& preferred) const {
    const auto found = files_.find(file);
    if (found == files_.end()) return std::nullopt;
    return found->second.locks.locker_at(preferred);
  }
  std::size_t size() const { return total_; }  // locks, shares, waiters and unsettled grants
  // The clients with locks, shares or waiters at an address, in order.
  std::vector<Client> clients_at(const std::string& address) const;
  using IsName = std::function<bool(const std::string& name)>;
  // The only client with locks, shares or waiters whose name `is_right`; nullopt when there are
  // none or several.
  std::optional<Client> only_client(const IsName& is_right) const;
  bool knows(const Client& client) const { return counts_.contains(client); }
  bool knows(const std::string& address) const { return accounts_.contains(address); }

 private:
  struct Waiter {
    Ticket ticket = 0;
    OwnerPtr owner;
    Range range;
    bool exclusive = false;
    TimePoint asked{};  // for the last time
  };
  // The lock that a waiter waits for; a file has no two waiters for the same one.
  struct WaitsFor {
    Range range;
    bool exclusive = false;
    OwnerPtr owner;
    friend bool operator<(const WaitsFor& a, const WaitsFor& b) {
      if (a.range != b.range) return a.range < b.range;
      return std::tie(a.exclusive, *a.owner) < std::tie(b.exclusive, *b.owner);
    }
  };
  // What an address has, in a file or in all.
  struct Account {
    std::size_t all = 0;
    std::size_t places = 0;  // of these, waiters and unsettled grants
  };
  using Accounts = std::map<std::string, Account>;
  struct File {
    RangeLocks locks;
    std::vector<Waiter> waiters;         // in the order they came, which is that of their tickets
    std::map<WaitsFor, Ticket> tickets;  // of the waiters
    std::vector<Share> shares;
    Accounts accounts;
    std::size_t unsettled = 0;  // grants
    std::size_t places() const { return waiters.size() + unsettled; }
    std::size_t size() const { return locks.size() + shares.size() + places(); }
  };

  static bool frees(const File& file, const LockRequest& request);
  static std::vector<Waiter>::iterator waiter_of(File& file, Ticket ticket);
  static void remove_waiter(File& file, const Waiter& waiter);
  bool is_silent(const Waiter& waiter) const;
  bool assign(File& file, const OwnerPtr& owner, Range range, std::optional<bool> exclusive,
              Claim claim);
  Answer enqueue(File& file, const LockRequest& request);
  Ticket leave_queue(File& file, const LockRequest& request);
  Answer lock_in(File& file, const LockRequest& request, bool wait, Claim claim);
  void sweep(const FileKey& key, File& file, Range freed);
  void grant_waiters(const FileKey& key, File& file, Range freed);
  bool grant_those(const FileKey& key, File& file, Range& freed, bool silent);
  bool promote(File& file, const Waiter& waiter, const LockRequest& request);
  bool release_from(File& file, const Which& which, const Left& left);
  template <class Gone>
  bool release_waiters(File& file, Gone gone, const Left& left);
  void carry_out(File& file, const OwnerPtr& owner, const RangeLocks::Change& change);
  bool has_capacity(const File& file, const Client& client, std::size_t more, Claim claim) const;
  static Account account_of(const Accounts& accounts, const std::string& address);
  bool has_place(const File& file, const Client& client) const;
  void count(File& file, const Client& client, std::ptrdiff_t change, bool places = false);
  void tidy(const FileKey& key);

  bool conflicts(const File& file, const LockRequest& request) const;

  LockLimits limits_;
  Elsewhere elsewhere_;
  std::unordered_map<FileKey, File, FileKeyHash> files_;
  std::map<Client, std::size_t> counts_;
  Accounts accounts_;
  std::size_t total_ = 0;
  Ticket last_ticket_ = 0;
  TimePoint now_{};  // when somebody asked last
  std::list<Grant> granted_;
  bool unswept_ = false;
};

}  // namespace stag::nfs::lock
