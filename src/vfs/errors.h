// errno as a Status, for stores whose operations end in numbers of it.
#pragma once

#include "vfs/status.h"

namespace stag::vfs {

Status status_of(int error);

}  // namespace stag::vfs
