// Mount points of this machine, of which an export may depend (`mp` of exports(5)).
#pragma once

#include <string>

#include "base/loop.h"
#include "base/result.h"

namespace stag::cli {

// Whether something is mounted at `folder`; false where there is no such folder. Fails with a
// phrase: a file system on the way there has not answered within `patience`, or nobody could ask.
// Blocks for so long; any thread.
Result<bool, std::string> is_mount_point(const std::string& folder, Duration patience);

}  // namespace stag::cli
