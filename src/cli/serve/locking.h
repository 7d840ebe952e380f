// Locking: the file locks of `stag serve`: the service of nfs/lock, a thread for its Calls to
// clients, and connections to clients through their rpcbind.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/serve/recovery.h"

namespace stag::rpc {
class Server;
}
namespace stag::nfs {
class NfsServer;
}
namespace stag::nfs::lock {
class LockService;
}

namespace stag::cli {

class Locking {
 public:
  // Fails with one sentence. `nfs` and `stores` outlive it.
  static Result<std::unique_ptr<Locking>, std::string> open(const nfs::NfsServer& nfs,
                                                            const std::string& state,
                                                            const Recovery& recovery,
                                                            StoreWatch& stores);
  // After the last Call has ended.
  ~Locking();

  void add_programs(rpc::Server& server);
  // Called once the server listens.
  void start();
  nfs::lock::LockService& service();
  // The loop of its Calls to clients.
  Loop& loop();

 private:
  struct State;
  explicit Locking(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stag::cli
