// The control socket of `stag serve`, with the commands that this server has.
#pragma once

#include <memory>
#include <string>

#include "cli/control/capture_commands.h"
#include "cli/control/clients_commands.h"
#include "cli/control/status_commands.h"
#include "cli/serve/adoption.h"
#include "cli/support/arguments.h"

namespace stag::cli {

class HandOver;
class Services;

struct ControlSettings {
  std::string path;   // empty: in the state directory; "none": no socket
  std::string group;  // empty: no group

  void declare(Arguments& arguments);
  // What of it can be known before it is opened. The error is one sentence.
  Result<Ok, std::string> check() const;
};

class Control {
 public:
  // The socket's path.
  static std::string path_of(const ControlSettings& settings, const std::string& state);
  // Null without a socket: none is wanted, or the one in the state directory cannot be made, which
  // is logged. The error, of one that was asked for, is a sentence. `services`
  // and `hand_over` outlive it. `tap`: of the RDMA connections.
  static Result<std::unique_ptr<Control>, std::string> open(
      const ControlSettings& settings, const std::string& state, Services& services,
      HandOver& hand_over, std::shared_ptr<fabric::capture::Tap> tap);

 private:
  Control(const std::string& state, Services& services, HandOver& hand_over,
          std::shared_ptr<fabric::capture::Tap> tap);

  ClientsCommands clients_;
  StatusCommands status_;
  Adoption adoption_;
  CaptureCommands capture_;
  ControlCommands commands_;
  std::unique_ptr<ControlSocket> socket_;  // declared last: ends first
};

}  // namespace stag::cli
