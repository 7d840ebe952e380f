// Extended attributes and access control lists of files of this machine.
#pragma once

#include <string>

#include "cli/copy/copy_endpoint.h"

namespace stag::cli {

// Symbolic links are not followed. Blocks.
Outcome<Extras> extras_of_local(const std::string& path, ExtraKinds kinds);
// Gives them to the open file or directory, whose name is `named` in messages. Blocks.
Outcome<Ok> adopt_local(int fd, const std::string& named, const Extras& extras);

}  // namespace stag::cli
