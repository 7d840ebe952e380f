// LapsedLocks: the byte-range locks of clients that have lapsed, in files that programs of this
// machine may use (decision 0073). Clients ask the server for what is in their way; a program runs
// into a lock, and nobody hears of it. So the server takes a lease of the system on each such file
// (vfs/local.h): nobody else has the file open then, and whoever opens it waits until the locks
// have been given up. Of a file without a lease they are given up at once.
//
// What is given up are the byte ranges of that client in that file. Their stateids are Expired, of
// which it is told when it comes back; all else that it holds keeps its courtesy.
//
// Thread: that of `home`, but add() and any(), which are any. The SharedState and home outlive it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/loop.h"
#include "base/task.h"
#include "base/unique_function.h"
#include "nfs/state/types.h"
#include "vfs/local.h"
#include "vfs/vfs.h"

namespace stag::nfs::nfs4 {

class SharedState;

class LapsedLocks {
 public:
  // Before the first Call.
  LapsedLocks(SharedState& shared, Loop& home);
  // After the last one.
  ~LapsedLocks();
  LapsedLocks(const LapsedLocks&) = delete;

  // Of a client that has just lapsed. False: there is no memory for it.
  bool add(const state::LifePtr& life) noexcept;
  // Once a second: what those have who came back or ended is none of these any more.
  void look();
  // No lease is taken any more; `done` runs once none is being taken. While the stores are there.
  void stop(UniqueFunction<void()> done);
  // Whether look() has anything to do.
  bool any() const { return any_.load(); }

 private:
  // A client, until it comes back or ends; shared with the worker that writes its record.
  struct Client {
    explicit Client(state::LifePtr of) : life(std::move(of)) {}
    const state::LifePtr life;
    // Its record was removed, so that it cannot claim after a restart what it has lost.
    std::atomic<bool> unrecorded{false};
  };
  using ClientPtr = std::shared_ptr<Client>;
  using LeasePtr = std::shared_ptr<vfs::Lease>;
  struct File {
    std::vector<ClientPtr> clients;
    LeasePtr lease;       // null while it is being taken, and where there is none
    bool taking = false;  // the lease
  };
  struct KeyHash {
    std::size_t operator()(const state::FileKey& key) const {
      return vfs::HandleHash()(key.handle) ^ std::hash<std::uint64_t>()(key.store);
    }
  };
  // Where those who hear of the system find the LapsedLocks, while they are there.
  struct Mailbox {
    std::mutex mutex;
    LapsedLocks* locks;
  };

  void begin(const state::LifePtr& life);
  struct Taking;
  static Task<void> take_leases(std::shared_ptr<Mailbox> mailbox, Loop& home,
                                std::vector<state::FileKey> keys);
  static Task<LeasePtr> take_lease(const std::shared_ptr<Mailbox>& mailbox, Loop& home,
                                   const state::FileKey& key);
  void taken(const state::FileKey& key, LeasePtr lease);
  vfs::LeaseWanted wanted(const state::FileKey& key) const;
  void give_up(const state::FileKey& key);
  void give_up(const state::FileKey& key, const ClientPtr& client, const LeasePtr& lease);
  bool has_locks(const Client& client, const state::FileKey& key) const;
  bool record_again(const ClientPtr& client);
  void note();

  SharedState& shared_;
  Loop& home_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::atomic<bool> any_{false};
  std::size_t takers_ = 0;  // Tasks of take_leases()
  bool stopping_ = false;
  UniqueFunction<void()> stopped_;
  std::vector<ClientPtr> clients_;
  std::unordered_map<state::FileKey, File, KeyHash> files_;
};

}  // namespace stag::nfs::nfs4
