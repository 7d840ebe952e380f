// File locks as `stag serve` has them: the service of nfs/lock, a thread from which it calls
// clients, and the way to them by their rpcbind.
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

namespace stag::cli {

class Locking {
 public:
  // Fails with one sentence. `nfs` outlives it.
  static Result<std::unique_ptr<Locking>, std::string> open(const nfs::NfsServer& nfs,
                                                            const std::string& state,
                                                            const Recovery& recovery);
  // After the last Call has ended.
  ~Locking();

  void add_programs(rpc::Server& server);
  // Once clients can call.
  void start();

 private:
  struct State;
  explicit Locking(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stag::cli
