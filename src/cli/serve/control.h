// The control socket of `stag serve`, with the commands that this server has.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/loop.h"
#include "cli/control/capture_commands.h"
#include "cli/control/clients_commands.h"
#include "cli/control/status_commands.h"
#include "cli/serve/adoption.h"
#include "cli/serve/exports_commands.h"
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
  // The same while a server runs with `running`. Does not wait for a name service that is silent
  // for `patience`, nor once `stop` is requested, and asks nothing where the group is the same.
  Result<Ok, std::string> check_beside(const ControlSettings& running, Duration patience,
                                       const std::stop_token& stop) const;
};

class Control {
 public:
  // Where a server with this state directory may have its socket, whatever its settings are, and at
  // last where one with these settings would have it.
  static std::vector<std::string> places(const ControlSettings& settings, const std::string& state);
  // Whether open() could make the socket that is asked for, if one is, when those that listen at
  // `own` have gone. `makes`: by making it, and removing it. The error is a sentence. Blocking.
  static Result<Ok, std::string> rehearse(const ControlSettings& settings,
                                          const std::vector<std::string>& own, bool makes);
  // Null without a socket: none is wanted, or the one in the state directory cannot be made, which
  // is logged. The error, of one that was asked for, is a sentence. `services`
  // and `hand_over` outlive it. `tap`: of the RDMA connections.
  static Result<std::unique_ptr<Control>, std::string> open(
      const ControlSettings& settings, const std::string& state, Services& services,
      HandOver& hand_over, std::shared_ptr<fabric::capture::Tap> tap);

  // The server answers no request any more, and what was asked for has ended, but for an adoption:
  // that may wait for a directory that does not answer, and ends before the Control does.
  void stop();

 private:
  Control(const std::string& state, Services& services, HandOver& hand_over,
          std::shared_ptr<fabric::capture::Tap> tap);

  // In the state directory, to a socket that is elsewhere: the server that takes over may have
  // other settings.
  class Link {
   public:
    // No other server has the state directory. No link where `to` is empty.
    Link(const std::string& state, const std::string& to);
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;
    ~Link();

   private:
    const std::string at_;
  };

  ClientsCommands clients_;
  StatusCommands status_;
  ExportsCommands exports_;
  Adoption adoption_;
  CaptureCommands capture_;
  ControlCommands commands_;
  std::optional<Link> link_;
  std::unique_ptr<ControlSocket> socket_;  // declared last: ends first
};

}  // namespace stag::cli
