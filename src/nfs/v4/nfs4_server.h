// nfs/v4: NFS versions 4.0, 4.1 and 4.2 (RFC 7530, 8881, 7862) over the same exports as the other
// versions.
//
//   nfs::nfs4::Nfs4Server nfs4(nfs_server.context(), {});
//   nfs4.add_program(rpc_server);
//
// A COMPOUND is one coroutine (interpreter.h) that runs its operations (operation.h, ops/) over
// vfs; what clients hold is in nfs/state. Version 4 and the others share exports, file handles and
// admission, and never call each other.
//
// Threads: as NfsServer. Outlives the rpc::Server; the context outlives it.
#pragma once

#include <memory>

#include "base/unique_function.h"
#include "nfs/v4/compound/shared_state.h"

namespace stag::rpc {
class Connector;
class Server;
}  // namespace stag::rpc

namespace stag::nfs::nfs4 {

class Administration;
class OperationObserver;
class SourceServers;

class Nfs4Server {
 public:
  Nfs4Server(const ServerContext& context, const Nfs4Options& options);
  ~Nfs4Server();

  // For an administrator (nfs/v4/administration.h). Any thread.
  Administration administration();
  // Registers program 100003 version 4. `observer`, which outlives the rpc::Server, is told of
  // every operation; null: nobody is.
  void add_program(rpc::Server& server, OperationObserver* observer = nullptr);

  // Takes on courtesy_seconds, copies, copies_of_client, callback_networks, and of `clients` and
  // `states` what Clients::change_limits() and Files::change_limits() do; nothing else of `now`
  // means anything. Any thread.
  void change(const Nfs4Options& now);
  // From now on leases run out though no client calls, by a timer of `home`, which outlives the
  // call of stop_callbacks(). Before the first Call; on the thread of home.
  void watch_leases(Loop& home);
  // From now on copies may go on after they were answered, and clients are called on the
  // connections that they made (RFC 8167), and get delegations. `home` decides what is sent to
  // whom; it outlives the calls of stop_callbacks(). `connector`, on home, makes the connections to
  // clients of version 4.0, which listen for callbacks; without it they get no delegations.
  // `sources` is asked for what clients want copied from other servers; null: nothing is. Before
  // the first Call; on the thread of home.
  void start_callbacks(Loop& home, rpc::Connector* connector = nullptr,
                       SourceServers* sources = nullptr);
  // Ends copies from other servers, for which nobody else waits then; no more begins. On home.
  void stop_copies_from_servers();
  // No lease runs out any more, either. After the last connection is gone; on the thread of home.
  void stop_callbacks();
  // Ends the copies that go on, what is done about locks of lapsed clients, and the connections
  // made to clients; `done` runs on home when none is left, and stores have answered what nobody
  // waits for. While connections and stores are there.
  void wind_up(UniqueFunction<void()> done);
  // The last thing of an orderly end, once all that waits for the Recovery is written: the next
  // start waits for nobody who holds nothing now. After the last Call has ended. Blocking.
  void remove_idle_records() { shared_->remove_idle_records(); }

 private:
  void wind_up_copies(UniqueFunction<void()> done);

  std::unique_ptr<SharedState> shared_;
  std::unique_ptr<LeaseTimer> lease_timer_;
  std::unique_ptr<Callbacks> callbacks_;
  std::unique_ptr<Offloads> offloads_;
};

}  // namespace stag::nfs::nfs4
