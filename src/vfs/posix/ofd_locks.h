// Byte-range locks of an open file description (fcntl(2) F_OFD_SETLK), which programs of this
// machine see and which see theirs, made by fcntl() or lockf(); on Linux not those of flock().
#pragma once

#include <memory>

#include "base/executor.h"
#include "vfs/local.h"
#include "vfs/posix/object.h"

namespace stag::vfs::posix {

// On a file system of this machine: elsewhere a lock may wait for another machine. Closed on
// `workers`; null: wherever it is destroyed.
std::unique_ptr<LocalLocks> make_ofd_locks(ObjectRef object, SharedDescriptor descriptor,
                                           std::shared_ptr<Executor> workers);

}  // namespace stag::vfs::posix
