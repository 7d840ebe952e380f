// Who holds which bytes of which file, and who waits for them: the state of a lock manager without
// clock, thread or protocol.
//
// The locks of a file are those of range_locks.h: exclusive keeps everybody else out, shared only
// exclusive. Who must wait stands in a queue per file; whatever frees bytes makes holders, first
// come first served, of all who no longer conflict. Whether waiting closes a circle is the business
// of clients: only they know who waits for whom.
//
// Everything a peer can make grow is counted: by client, by file and in all. Not thread-safe;
// LockManager is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nfs/lock/range_locks.h"
#include "vfs/types.h"

namespace stag::nfs::lock {

struct FileKey {
  std::uint64_t store = 0;  // FsidMap
  vfs::Handle handle;
  friend bool operator==(const FileKey&, const FileKey&) = default;
};
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

// Names one place in a queue, for ever.
using Ticket = std::uint64_t;

// A waiter that has become a holder; counted until settled(). `before` is what the owner had in
// this range until then.
struct Grant {
  Ticket ticket = 0;
  LockRequest request;
  std::vector<Held> before;
};

// DOS file sharing: what an opener wants and what he denies to others, as bits 1 (read) and
// 2 (write).
struct Share {
  OwnerPtr owner;
  std::uint32_t denied = 0;
  std::uint32_t access = 0;
};

struct LockLimits {
  std::size_t of_client = 8192;    // locks, shares, waiters and grants that are not settled
  std::size_t of_address = 16384;  // names are the client's choice
  std::size_t of_file = 16384;
  // Waiters, and grants that are not settled.
  std::size_t waiters_of_file = 1024;
  std::size_t waiters_of_address = 1024;
  std::size_t in_all = 65536;
};

enum class LockOutcome : std::uint8_t { Granted, Denied, Blocked, Full };

class LockTable {
 public:
  explicit LockTable(const LockLimits& limits = {}) : limits_(limits) {}

  // A lock that stands in the way.
  std::optional<Held> test(const LockRequest& request) const;

  struct Answer {
    LockOutcome outcome = LockOutcome::Denied;
    // Blocked: the place in the queue, which asking again keeps. Granted: the place that was given
    // up, if there was one.
    Ticket ticket = 0;
  };
  Answer lock(const LockRequest& request, bool wait);
  // The place that is given up; nothing: nobody waits like that.
  std::optional<Ticket> cancel(const LockRequest& request);
  // Bytes that are not locked may be unlocked too. False: the split is one lock too many.
  bool unlock(const FileKey& file, const Owner& owner, Range range);
  // The client knows of the grant, or it does not matter any more: once for each grant.
  void settled(const Grant& grant);
  // The owner did not want the lock any more: he has again what he had. After settled().
  void revert(const Grant& grant);

  // Denied or Granted; replaces what the owner had.
  LockOutcome share(const FileKey& file, const Share& share);
  void unshare(const FileKey& file, const Owner& owner);

  // All that clients of this kind hold and wait for; yields the places they gave up.
  using Which = std::function<bool(const Client&)>;
  std::vector<Ticket> release(const Which& which);

  // Who became a holder since this was last asked, in order.
  std::vector<Grant> take_grants() { return std::exchange(granted_, {}); }

  std::vector<Held> held(const FileKey& file) const;
  std::size_t size() const { return total_; }  // locks, shares, waiters and unsettled grants
  // Who holds anything or waits: those at an address, in order; and the only one whose name is
  // right, if it is the only one.
  std::vector<Client> clients_at(const std::string& address) const;
  using IsName = std::function<bool(const std::string& name)>;
  std::optional<Client> only_client(const IsName& is_right) const;
  bool knows(const Client& client) const { return counts_.contains(client); }
  bool knows(const std::string& address) const { return addresses_.contains(address); }

 private:
  struct Waiter {
    Ticket ticket = 0;
    OwnerPtr owner;
    Range range;
    bool exclusive = false;
  };
  // What a waiter waits for; in one file nobody waits for the same twice.
  struct WaitsFor {
    Range range;
    bool exclusive = false;
    OwnerPtr owner;
    friend bool operator<(const WaitsFor& a, const WaitsFor& b) {
      if (a.range != b.range) return a.range < b.range;
      return std::tie(a.exclusive, *a.owner) < std::tie(b.exclusive, *b.owner);
    }
  };
  struct File {
    RangeLocks locks;
    std::vector<Waiter> waiters;         // in the order they came, which is that of their tickets
    std::map<WaitsFor, Ticket> tickets;  // of the waiters
    std::vector<Share> shares;
    std::size_t unsettled = 0;  // grants
    std::size_t places() const { return waiters.size() + unsettled; }
    std::size_t size() const { return locks.size() + shares.size() + places(); }
  };

  struct Address {
    std::size_t all = 0;
    std::size_t places = 0;  // of these, waiters and unsettled grants
  };

  static bool frees(const File& file, const LockRequest& request);
  static void remove_waiter(File& file, const Waiter& waiter);
  bool assign(File& file, const OwnerPtr& owner, Range range, std::optional<bool> exclusive);
  Answer enqueue(File& file, const LockRequest& request);
  Ticket leave_queue(File& file, const LockRequest& request);
  void sweep(const FileKey& key, File& file, Range freed);
  bool promote(File& file, const Waiter& waiter, const LockRequest& request);
  bool release_from(File& file, const Which& which, std::vector<Ticket>& places);
  bool room(const File& file, const Client& client, std::size_t more) const;
  void count(const Client& client, std::ptrdiff_t change);
  void count_place(const Client& client, std::ptrdiff_t change);
  void tidy(const FileKey& key);

  LockLimits limits_;
  std::unordered_map<FileKey, File, FileKeyHash> files_;
  std::map<Client, std::size_t> counts_;
  std::map<std::string, Address> addresses_;
  std::size_t total_ = 0;
  Ticket last_ticket_ = 0;
  std::vector<Grant> granted_;
};

}  // namespace stag::nfs::lock
