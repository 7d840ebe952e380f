// Handing over from one `stag serve` to the next (docs/decisions/0056-handing-over.md): the
// successor asks at the control socket of the server that runs, gets its listening sockets, and
// waits for the lock of the state directory; the predecessor finishes its calls and ends.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/control/control_socket.h"
#include "cli/serve/served_sockets.h"

namespace stag::cli {

// The predecessor's side: the command "take-over" of its control socket.
class HandOver {
 public:
  // `sockets` outlives it. `asked` is called on the control socket's thread, when a successor has
  // the sockets. `limit`: how long the server may take to end after that.
  HandOver(const ServedSockets& sockets, Duration limit, std::function<void()> asked)
      : sockets_(sockets), limit_(limit), asked_(std::move(asked)) {}
  void add_to(ControlCommands& commands);

 private:
  Task<std::string> give(ControlReply& reply, const ControlPeer& peer);

  const ServedSockets& sockets_;
  const Duration limit_;
  const std::function<void()> asked_;
};

// The successor's side.
struct TakenOver {
  std::vector<net::UniqueFd> sockets;
  Duration limit{};  // within which the predecessor is gone
};
// nullopt: no server runs there. The error is one sentence. Blocking, before other threads run.
Result<std::optional<TakenOver>, std::string> take_over(const std::string& control_path);

}  // namespace stag::cli
