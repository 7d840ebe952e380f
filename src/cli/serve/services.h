// The services of `stag serve`: its exports, the programs that clients call, and what these need.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/serve/export_set.h"
#include "cli/serve/id_mapping.h"
#include "cli/serve/locking.h"
#include "cli/serve/observing.h"
#include "cli/serve/options.h"
#include "cli/serve/recovery.h"
#include "nfs/server/server.h"
#include "nfs/v4/nfs4_server.h"
#include "rpc/server.h"

namespace stag::cli {

class Services {
 public:
  // Blocking. `options` and `stores` outlive it.
  static Result<std::unique_ptr<Services>, ExportSet::Trouble> open(ServeOptions& options,
                                                                    StoreWatch& stores,
                                                                    std::vector<ExportLine> lines);

  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;
  ~Services();

  ExportSet& exports() { return exports_; }
  const nfs::NfsServer& nfs() const { return nfs_; }
  nfs::nfs4::Nfs4Server& nfs4() { return *nfs4_; }
  Locking& locking() { return *locking_; }
  Recovery& recovery() { return *recovery_; }
  Observing& observing() { return *observing_; }
  rpc::Server& server() { return server_; }
  StoreWatch& stores() { return stores_; }
  // Has version 4 do as `now` says, as far as a server that runs can (Nfs4Server::change()); any
  // thread.
  void change(const ServeOptions& now);
  // Calls of version 2 wait for nobody any more (nfs/export/deferred_calls.h).
  void end_waits();
  // After the last Call has ended: the next start waits for nobody who holds nothing. Blocking.
  void remove_idle_records();
  // That of all stores.
  void close_unused();
  // What the name service has said of users' groups; any thread.
  void forget_groups() {
    if (users_.groups != nullptr) users_.groups->forget();
  }

 private:
  Services(const nfs::ServerState& state, StoreWatch& stores, const std::string& state_directory)
      : stores_(stores), nfs_(state), exports_(nfs_, stores, state_directory) {}
  // Empty: all is there.
  std::string add_programs(ServeOptions& options);

  StoreWatch& stores_;
  nfs::NfsServer nfs_;
  ExportSet exports_;
  std::unique_ptr<Recovery> recovery_;
  KnownUsers users_;
  std::optional<nfs::nfs4::Nfs4Server> nfs4_;
  std::unique_ptr<Locking> locking_;
  const ProcessUsageSource process_;
  std::optional<Observing> observing_;
  rpc::Server server_;  // declared last: ends first
};

}  // namespace stag::cli
