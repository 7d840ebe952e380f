// nfs/lock: file locks for clients of NFS versions 2 and 3, which have none themselves. Two
// services beside NFS: NLM, the lock manager (versions 1 and 3: X/Open XNFS chapter 10; version 4:
// RFC 1813 section 6), and NSM, the status monitor (XNFS chapter 11), by which lock managers learn
// that the other side restarted.
//
//   auto locks = nfs::lock::LockService::open(nfs.context(), options, loop, peers);
//   (*locks)->add_programs(server);
//   ... listen ...
//   (*locks)->start();
//   ... serve ...
//   endpoint::wait_on(loop, [&] { return (*locks)->stop(); });
//
// State is in one LockTable. What keeps it true over a restart are two promises: a client's address
// is in the Records before the client gets its first lock, and after a restart everybody in the
// records is told (SM_NOTIFY) and has a grace period to claim again what it had, in which nobody
// else gets anything. The other way round, a client that says it restarted loses what it held.
//
// A lock that cannot be had at once is waited for if the client wants: it hears NLM_BLOCKED now and
// is called back with NLM_GRANTED when it has the lock. These calls go to the client's own lock
// manager, found by Peers.
//
// Locks are kept among NFS clients; processes of this host do not see them. Nobody is
// authenticated: a lock is as good as the word of the client's kernel.
//
// Threads: Calls come on any loop; what this host says by itself, it says on a loop of its choice.
#pragma once

#include <memory>

#include "nfs/export/state/durable_file.h"
#include "nfs/lock/lock_table.h"
#include "nfs/lock/peers.h"
#include "nfs/state/grace_period.h"

namespace stag::rpc {
class Server;
}
namespace stag::nfs {
struct ServerContext;
}

namespace stag::nfs::lock {

struct LockServiceOptions {
  // Where the records are; empty: nothing is remembered over a restart.
  std::string state_directory;
  // Who writes them; null: the threads of the loops.
  std::shared_ptr<Executor> records_worker{};
  // What this host calls itself to others.
  std::string host_name = "localhost";
  // How long clients may take to reclaim their locks after a restart, if there are any to do so.
  Duration grace = std::chrono::seconds(45);
  // Shared with NFSv4; null: NLM's own.
  std::shared_ptr<state::GracePeriod> grace_period{};
  LockLimits limits{};
};

class LockService {
 public:
  // Reads the records and counts this start; if there is anybody to reclaim locks, the grace period
  // begins. Blocking. `server`, `loop` (where this host speaks by itself) and `peers` outlive the
  // service.
  static Result<std::unique_ptr<LockService>, StateError> open(const ServerContext& server,
                                                               const LockServiceOptions& options,
                                                               Loop& loop, Peers& peers);
  // After stop(), and after the last Call has ended.
  ~LockService();

  // NLM 1, 3 and 4 and NSM, on every transport but RDMA (RFC 8267 5.1).
  void add_programs(rpc::Server& server);
  // Tells the clients of the time before: once they can call. Any thread.
  void start();
  // Says nothing more. On the loop.
  Task<void> stop();

  // Locks, shares, waiters and grants that are not acknowledged.
  std::size_t size() const;

 private:
  struct Parts;
  explicit LockService(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace stag::nfs::lock
