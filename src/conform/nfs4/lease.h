// What cases do that wait for a lease to run out.
#pragma once

#include <optional>

#include "conform/nfs4/script.h"

namespace stag::conform::nfs4 {

// The server's lease_time; nullopt: it does not say, or more than a case waits for.
Task<std::optional<std::chrono::seconds>> lease_time(Scene& scene);

// Asks once a second, for twice a lease and a little more at most, until `ask` says that it is
// over, and tells the user how long that may still take. False: the time is over, or the user does
// not want to wait any longer.
Task<bool> wait_for_lease(Scene& scene, std::chrono::seconds lease,
                          std::function<Task<bool>()> ask);

// sr_status_flags of a SEQUENCE; nullopt: it failed.
Task<std::optional<std::uint32_t>> status_flags(Client& client);

}  // namespace stag::conform::nfs4
