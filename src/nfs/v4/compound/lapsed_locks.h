// LapsedLocks: the byte-range locks of clients that have lapsed, in files that programs of this
// machine may use (decision 0073). Clients ask the server for what is in their way; a program runs
// into a lock, and nobody hears of it. So the server takes a lease of the system on each such file
// (vfs/local.h): no program has the file open then, and one that opens it waits until the locks
// have been given up. Of a file without a lease they are given up at once.
//
// What is given up are the byte ranges of that client in that file. Their stateids are Expired, of
// which it is told when it comes back; all else that it holds keeps its courtesy.
//
// A client has thousands of files: they are looked at some hundred at a time, and each one's locks
// by the file, never all that the client has for one of them.
//
// Thread: that of `home`, but add() and any(), which are any. The SharedState and home outlive it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
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

  // Adds the locks of a client that has just lapsed. False: there is no memory for it.
  bool add(const state::LifePtr& life) noexcept;
  // Once a second: what those have who came back or ended is none of these any more, nor what an
  // administrator has revoked.
  void look();
  // No lease is taken any more; `done` runs once none is being taken. While the stores are there.
  void stop(UniqueFunction<void()> done);
  // Whether look() has anything to do.
  bool any() const { return any_.load(); }

 private:
  enum class Work : std::uint8_t { None, Runs, Done, Failed };
  // A client, until it comes back or ends; shared with the worker that writes its record.
  struct Client {
    explicit Client(state::LifePtr of) : life(std::move(of)) {}
    const state::LifePtr life;
    // Its record was removed, so that it cannot claim after a restart what it has lost.
    std::atomic<bool> unrecorded{false};
    // What becomes of the locks of `batch`, which nobody changes while it runs.
    std::atomic<Work> work{Work::None};
    std::vector<state::FileKey> batch;
    std::vector<state::FileKey> due;  // the files behind these
  };
  using ClientPtr = std::shared_ptr<Client>;
  using LeasePtr = std::shared_ptr<vfs::Lease>;
  struct File {
    std::vector<ClientPtr> clients;
    LeasePtr lease;       // null while it is being taken, and where there is none
    bool taking = false;  // the lease
    bool due = false;     // each of the clients has it among its batch or those behind
    int tries = 0;        // in which there was no lease for the moment
  };
  // `lease` null: there is none, for the moment or at all.
  struct Taken {
    LeasePtr lease;
    bool for_the_moment = false;
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
  class Errand;
  static Task<void> watch_all(std::shared_ptr<Mailbox> mailbox, Loop& home, ClientPtr client,
                              std::vector<state::FileKey> keys);
  static Task<void> try_again(std::shared_ptr<Mailbox> mailbox, Loop& home,
                              std::vector<state::FileKey> keys);
  static Task<void> take(const std::shared_ptr<Mailbox>& mailbox, Loop& home,
                         const state::FileKey& key);
  static Task<Taken> take_lease(const std::shared_ptr<Mailbox>& mailbox, Loop& home,
                                const state::FileKey& key);
  bool watch(const ClientPtr& client, const state::FileKey& key);
  void taken(const state::FileKey& key, Taken taken) noexcept;
  vfs::LeaseWanted wanted(const state::FileKey& key) const;
  void give_up(const state::FileKey& key) noexcept;
  void start(const ClientPtr& client);
  void finish(const ClientPtr& client) noexcept;
  bool lost(const state::Life& life, const state::FileKey& key) const;
  void look_at_files();
  bool came_back(const ClientPtr& client) noexcept;
  bool record_again(const ClientPtr& client);
  void note();

  SharedState& shared_;
  Loop& home_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::atomic<bool> any_{false};
  std::size_t takers_ = 0;  // Tasks that take leases
  bool trying_again_ = false;
  bool stopping_ = false;
  UniqueFunction<void()> stopped_;
  std::vector<ClientPtr> clients_;
  std::unordered_map<state::FileKey, File, KeyHash> files_;
};

}  // namespace stag::nfs::nfs4
