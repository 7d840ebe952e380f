// The names of hosts and the netgroups of this machine's name service (nsswitch.conf).
#pragma once

#include <memory>
#include <string>

#include "nfs/export/client_names.h"

namespace stag::cli {

// With workers of their own, which start when they are first asked.
std::shared_ptr<nfs::ClientNames> system_client_names();

// Fails with a sentence where there is no such netgroup, or any host belongs to it, or nobody
// answers for some seconds. Blocks.
Result<Ok, std::string> check_system_netgroup(const std::string& netgroup);

}  // namespace stag::cli
