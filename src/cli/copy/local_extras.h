// Extended attributes and access control lists of files of this machine.
#pragma once

#include <string>

#include "cli/copy/copy_endpoint.h"

namespace stag::cli {

// Of the file or directory that is open, if only with O_PATH. `named`: its name in messages.
// Blocks.
Outcome<Extras> extras_of_local(int fd, const std::string& named, ExtraKinds kinds);
// Gives them to the open file or directory. Blocks.
Outcome<Ok> adopt_local(int fd, const std::string& named, const Extras& extras);

}  // namespace stag::cli
