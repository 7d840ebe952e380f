// The end of children of this process, and of what they say.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace stag::cli {

// What is written to a pipe until nobody has its other end any more.
std::string read_to_end(int fd);
// Waits for the child's end. Its exit code or, as the end of a sentence about it, how else it
// ended: "was ended by signal 9 (Killed)".
Result<int, std::string> end_of_child(pid_t child);

}  // namespace stag::cli
