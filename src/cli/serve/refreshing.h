// Refreshing: what a running `stag serve` learns again: its files when SIGHUP asks for it, and the
// addresses of hosts that the name service did not know.
#pragma once

#include <functional>
#include <set>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "cli/serve/copy_from.h"
#include "cli/serve/late_hosts.h"
#include "cli/serve/options.h"
#include "cli/serve/reload.h"
#include "cli/serve/reloads.h"
#include "cli/serve/services.h"
#include "net/loop.h"

namespace stag::cli {

// On the loop's thread.
class Refreshing {
 public:
  struct Server {
    Services& services;
    CopyFromHosts& copy_hosts;
    std::function<void()> begin;  // of a reload; on another thread
    // Takes on what Listeners::change() and Nfs4Limits::change() do, `drain` and `copy_from`. On
    // another thread.
    std::function<void(const ServeOptions&)> take_on;
    // With what came of the reload; not after end().
    std::function<void(const Result<Ok, std::string>&)> done;
  };
  // All outlive it. The server runs with `options`.
  Refreshing(net::EpollLoop& loop, const ServeOptions& options, Server server);

  // Reads the files again, once more if it does so already.
  void ask() { reloads_.ask(); }
  // Takes no further request, and a reload in progress changes nothing more.
  void end();
  // Runs the loop until no reload uses the server. After end().
  void wait();

 private:
  void reload();
  std::set<std::string> late_hosts() const;
  void take(const HostAnswers& answers);

  net::EpollLoop& loop_;
  const Server server_;
  std::stop_source ending_;
  Reload again_;
  Result<Ok, std::string> last_ = Ok{};
  bool ended_ = false;
  Reloads reloads_;
  const LateHosts late_;
};

}  // namespace stag::cli
