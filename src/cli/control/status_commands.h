// The commands of the control socket for `stag status` and `stag top`: "status" is one row with the
// server's sums; "connections", "procedures", "stores", "mounts", "slow" and "limits" list. Counts
// go on from the start of the server; who wants rates asks twice.
#pragma once

#include "cli/control/control_socket.h"
#include "cli/observe/gauges.h"
#include "cli/observe/observation.h"

namespace stag::cli {

// Outlives the ControlSocket that has its commands. On the loop of that.
class StatusCommands {
 public:
  // `observation`, and what `sources` are of, outlive it.
  StatusCommands(const Observation& observation, const GaugeSources& sources)
      : observation_(observation), sources_(sources) {}
  void add_to(ControlCommands& commands) const;

 private:
  void status(ControlReply& reply) const;
  void list_connections(ControlReply& reply) const;
  void list_procedures(ControlReply& reply) const;
  void list_stores(ControlReply& reply) const;
  void list_mounts(ControlReply& reply) const;
  void list_slow(ControlReply& reply) const;
  void list_limits(ControlReply& reply) const;

  const Observation& observation_;
  const GaugeSources sources_;
};

}  // namespace stag::cli
