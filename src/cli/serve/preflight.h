// Preflight: as much of a start as can be tried while another server runs, which is left alone.
// What is wrong is said before anybody has to go (docs/decisions/0056-handing-over.md).
#pragma once

#include <vector>

#include "cli/serve/device_ports.h"
#include "cli/serve/export_set.h"
#include "cli/serve/hand_over.h"
#include "cli/serve/options.h"
#include "cli/serve/served_sockets.h"

namespace stag::cli {

// Checks for `stag serve --check` the settings and exports, without asking for hosts by their
// names. A folder that does not answer is told of on standard error, and no failure: a reload
// leaves it as it is. Blocking.
Result<Ok, ExportSet::Trouble> check_configuration(const ServeOptions& options,
                                                   const std::vector<ExportLine>& lines,
                                                   StoreWatch& stores);

// What only a successor may try: for --check another server may have its addresses and files, and
// nothing is made.
struct Successor {
  ServedSockets& sockets;
  DevicePorts* ports;  // null: none
  const TakeOver& predecessor;
};

// Of a successor (--take-over). Makes the listening sockets that `sockets` lacks. Leaves alone what
// one process at a time may have: the state directory, a mount of CephFS, the ports of RDMA
// devices. Blocking.
Result<Ok, ExportSet::Trouble> preflight(const ServeOptions& options,
                                         const std::vector<ExportLine>& lines, StoreWatch& stores,
                                         const Successor& successor);

}  // namespace stag::cli
