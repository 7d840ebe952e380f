// Preflight: as much of a successor's start (--take-over) as can be tried while its predecessor
// serves (docs/decisions/0056-handing-over.md). What is wrong is said before anybody has to go.
#pragma once

#include <vector>

#include "cli/serve/export_set.h"
#include "cli/serve/hand_over.h"
#include "cli/serve/options.h"
#include "cli/serve/served_sockets.h"

namespace stag::cli {

// Makes the listening sockets that `sockets` lacks. Leaves alone what one process at a time may
// have: the state directory, a mount of CephFS, the listeners of RDMA devices. Blocking.
Result<Ok, ExportSet::Trouble> preflight(const ServeOptions& options,
                                         const std::vector<ExportLine>& lines, StoreWatch& stores,
                                         ServedSockets& sockets, const TakeOver& predecessor);

}  // namespace stag::cli
