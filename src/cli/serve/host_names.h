// The names of hosts and the netgroups of this machine's name service (nsswitch.conf).
#pragma once

#include <memory>
#include <string>

#include "nfs/export/client_names.h"

namespace stag::cli {

// With workers of their own, which start when they are first asked.
std::shared_ptr<nfs::ClientNames> system_client_names();

// Yields an empty text, or a sentence where there is no such netgroup (yet), or nobody answers for
// some seconds. Fails with one where any host belongs to it. Blocks.
Result<std::string, std::string> check_system_netgroup(const std::string& netgroup);

}  // namespace stag::cli
