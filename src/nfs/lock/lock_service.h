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
// State is in one LockTable, which is lost at a restart and rebuilt by the clients: a client's
// address is in the Records before the client gets its first lock, and after a restart every host
// in the records receives SM_NOTIFY and has a grace period to reclaim its locks, during which no
// new locks are granted. In the other direction, a client that notifies of its own restart loses
// its locks.
// A conflicting request blocks if the client wants: it is answered with NLM_BLOCKED, and
// NLM_GRANTED is sent to the client's own lock manager, found by Peers, when it has the lock.
// Locks exclude NFS clients and, where the store can (vfs/local.h), programs of this host. NLM does
// not authenticate: a lock owner is whatever the client's kernel claims. Threads: Calls arrive on
// any loop; this host's own Calls are made on the loop given to open().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  // Directory of the records; empty: nothing is kept over a restart.
  std::string state_directory;
  // Writes the records; null: the threads of the loops.
  std::shared_ptr<Executor> records_worker{};
  // The name of this host in SM_NOTIFY and in credentials.
  std::string host_name = "localhost";
  // How long clients may take to reclaim their locks after a restart, if there are any to do so.
  Duration grace = std::chrono::seconds(45);
  // The grace period shared with NFSv4; null: NLM's own.
  std::shared_ptr<state::GracePeriod> grace_period{};
  LockLimits limits{};
};

class LockService {
 public:
  // Reads the records and counts this start; the grace period begins if any host held locks.
  // Blocking. `server`, `loop` (for this host's own Calls) and `peers` outlive the service.
  static Result<std::unique_ptr<LockService>, StateError> open(const ServerContext& server,
                                                               const LockServiceOptions& options,
                                                               Loop& loop, Peers& peers);
  // After stop(), and after the last Call has ended.
  ~LockService();

  // NLM 1, 3 and 4 and NSM, on every transport but RDMA (RFC 8267 5.1).
  void add_programs(rpc::Server& server);
  // Sends SM_NOTIFY to the clients of the previous run; called once the server listens. Any thread.
  void start();
  // Adopts the hosts of a server that has ended and cannot begin meanwhile, by its state directory:
  // they are told to reclaim here, and have until `grace_end`. Yields how many. Blocking.
  Result<std::size_t, StateError> adopt(const std::string& state_directory, TimePoint grace_end);
  // Ends the Calls to clients. On the loop.
  Task<void> stop();
  // Drops the records of hosts that have no lock and wait for none, so that nobody waits for them
  // after the next start. While the service runs it does so by itself, two minutes after a host has
  // locked something last, or within a minute of its last unlock. After the last Call has ended.
  // Blocking.
  void remove_idle_records();

  // Locks, shares, blocked requests and unacknowledged grants.
  std::size_t size() const;

  // For an administrator; any thread. As the functions of LockManager.
  std::map<Client, std::size_t> clients() const;
  std::vector<FileKey> files() const;
  std::vector<Held> held(const FileKey& file) const;
  // The client's locks are free at once; it is not told, for NLM has no words for that. False when
  // it had nothing.
  bool release(const Client& client);
  // A name of one lock, by all that it is; a lock that changes has another one. Good while the
  // process runs.
  using LockId = std::uint64_t;
  static LockId id_of(const FileKey& file, const Held& held);
  // The same for one lock. nullopt when there is none of this name; else whose it was.
  std::optional<Client> release(LockId id);
  // The same for all locks of a file, also for those that requests get then which wait. Yields how
  // many.
  std::size_t release(const FileKey& file);

 private:
  struct Parts;
  explicit LockService(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace stag::nfs::lock
