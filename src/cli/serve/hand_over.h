// Handing over from one `stag serve` to the next (docs/decisions/0056-handing-over.md): the
// successor asks at the control socket of the server that runs, gets its listening sockets, and
// has it begin to end when nothing is in its own way any more, and waits for the lock of the state
// directory; the predecessor finishes its calls and ends.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/control/control_socket.h"
#include "cli/serve/observing.h"
#include "cli/serve/served_sockets.h"
#include "cli/support/json.h"

namespace stag::cli {

// The predecessor's side: the commands "take-over" and "make-way" of its control socket.
class HandOver {
 public:
  // `sockets` and `observing`, whose metrics start before there are sockets and stop after the
  // control socket, outlive it. `state` is the state directory, which is there. `asked` is called
  // on the control socket's thread, when a successor has the sockets and is ready. `limit` says
  // how long the server may take to end after that.
  HandOver(const ServedSockets& sockets, const Observing& observing, const std::string& state,
           std::function<Duration()> limit, std::function<void()> asked);
  void add_to(ControlCommands& commands);

 private:
  Task<std::string> give(const ControlRequest& request, ControlReply& reply,
                         const ControlPeer& peer);
  std::string make_way(const ControlPeer& peer);

  const ServedSockets& sockets_;
  const Observing& observing_;
  const std::string state_;
  const std::function<Duration()> limit_;
  const std::function<void()> asked_;
  std::optional<pid_t> successor_;  // which has the sockets
};

// The successor's side.
class TakeOver {
 public:
  // Gets the sockets of the server of the state directory `state`. nullopt: no server runs there.
  // The error is one sentence. Blocking, before other threads run.
  static Result<std::optional<TakeOver>, std::string> ask(const std::string& control_path,
                                                          const std::string& state);
  // Once.
  std::vector<UniqueFd> take_sockets() { return std::move(sockets_); }
  // Where it has been asked.
  const std::string& control_path() const { return control_path_; }
  // The numeric address of its metrics, port 0 where it has none. nullopt: it does not say, as
  // older ones.
  const std::optional<Address>& metrics_at() const { return metrics_at_; }
  // Has the predecessor end, unless it has already. It is gone within this time. The TakeOver stays
  // as long as that is waited for.
  Duration go();

 private:
  TakeOver(std::string control_path, std::string state, UniqueFd control,
           std::vector<UniqueFd> sockets, const JsonObject& said);
  bool send_go() const;

  std::string control_path_, state_;
  UniqueFd control_;
  std::vector<UniqueFd> sockets_;
  Duration limit_;
  std::optional<Address> metrics_at_;
};

}  // namespace stag::cli
