// Which process a thread of this machine is of: the kernel says of a request by FUSE which thread
// makes it, and people know processes.
#pragma once

#include <sys/types.h>

#include <optional>

namespace stag::cli {

// nullopt: the thread has ended, or is not to be seen.
std::optional<pid_t> process_of_thread(pid_t thread);

}  // namespace stag::cli
