// The command "adopt" of the control socket: this server takes over the clients of version 4, and
// the hosts with locks by NLM, of another one that is lost
// (docs/decisions/0065-adopting-clients.md, 0069-adopting-hosts.md), which then reclaim here what
// they held there.
#pragma once

#include <atomic>
#include <string>

#include "cli/control/control_socket.h"
#include "cli/serve/recovery.h"

namespace stag::nfs::lock {
class LockService;
}

namespace stag::cli {

// Outlives the ControlSocket that has its command. On the loop of that.
class Adoption {
 public:
  // `recovery`, `locks` and `stores` outlive it. `state` is the state directory of this server.
  Adoption(Recovery& recovery, nfs::lock::LockService& locks, StoreWatch& stores, std::string state)
      : recovery_(recovery), locks_(locks), stores_(stores), state_(std::move(state)) {}
  void add_to(ControlCommands& commands);
  bool is_under_way() const { return running_.load(); }  // any thread

 private:
  Task<std::string> adopt(const ControlRequest& request, ControlReply& reply,
                          const ControlPeer& peer);
  // On a thread of its own: where the directory does not answer nobody else waits for it.
  Task<Result<Recovery::Adopted, std::string>> adopt_apart(const std::string& from, Loop& loop);
  Result<Recovery::Adopted, std::string> adopt(const std::string& from);
  Result<Recovery::Adopted, std::string> adopt_directory(const std::string& directory);
  Result<Recovery::Adopted, std::string> adopt_all(const std::string& directory);

  Recovery& recovery_;
  nfs::lock::LockService& locks_;
  StoreWatch& stores_;
  const std::string state_;
  std::string under_way_;  // the directory, or the place; one at a time
  std::atomic<bool> running_{false};
};

}  // namespace stag::cli
