// The service manager that started `stag serve`, where one did (systemd, or another that has its
// protocol): it is told when the server is ready, reloads, ends, and that it is alive. Nothing
// happens without $NOTIFY_SOCKET. sd_notify(3).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/unique_fd.h"

namespace stag::cli {

// Thread: any.
class ServiceManager {
 public:
  // As the environment names it, whose variables are removed, so that no child speaks for the
  // server. Before other threads run.
  static ServiceManager from_environment();
  // For tests: no environment.
  ServiceManager(std::string socket, std::optional<Duration> watchdog);

  // The time within which it expects alive(); nullopt: it does not.
  std::optional<Duration> watchdog() const { return watchdog_; }

  // `status` is one line for administrators.
  void ready(std::string_view status);
  void reloading();
  // `limit`: how long the end may take.
  void stopping(std::string_view status, Duration limit);
  void alive();
  // Has it keep these listening sockets until it starts the next server, where the unit allows that
  // (FileDescriptorStoreMax=); those kept before are forgotten.
  void keep(const std::vector<UniqueFd>& sockets);

 private:
  void tell(std::string_view text, const std::vector<UniqueFd>& sockets = {},
            unsigned patience_seconds = kPatienceSeconds);

  // For a manager that is behind: what it does not hear would have it give the server up.
  static constexpr unsigned kPatienceSeconds = 3;

  std::string socket_;
  // Not connected: the manager may begin anew at the same name. Kept, so that it hears from a
  // server that has no descriptor left.
  UniqueFd sending_;
  std::optional<Duration> watchdog_;
};

}  // namespace stag::cli
