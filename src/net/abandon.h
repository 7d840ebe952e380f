// For a process that is about to end although one of its threads waits in the kernel, where nothing
// ends it: until that thread comes back, the process keeps all of its descriptors.
#pragma once

namespace stag::net {

// Closes every socket of the process, whichever thread uses it: peers see their connections end,
// and the addresses are free. Nothing but the end of the process may follow.
void abandon_sockets();

}  // namespace stag::net
