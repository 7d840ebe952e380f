// What libfuse leaves out of its answer to the kernel's FUSE_INIT.
#pragma once

#include "base/bytes.h"

namespace stag::fuse {

// Has the kernel ask for names of one directory, and list it, side by side (FUSE_PARALLEL_DIROPS,
// linux/fuse.h): without it one LOOKUP that a server does not answer holds up every program in that
// directory. libfuse 3.14.0 leaves the flag out, whatever is agreed. `answer` is a fuse_init_out,
// at any address; one of a kernel so old that it has no flags stays as it is.
void allow_parallel_directories(MutableBytes answer);

}  // namespace stag::fuse
