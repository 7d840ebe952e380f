// Where `stag conform` works when the user names no folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/support/remote.h"

namespace stag::cli {

// The first folder, by name, from the root of version 4 of the server `url` down through what is of
// the root's file system (RFC 8881 section 7: a server's pseudo file system leads to its exports),
// in which a folder called `label` can be made, which is removed again: the names on the way to it.
// nullopt: there is none.
Task<Outcome<std::optional<std::vector<std::string>>>> place_to_work(Run& run, std::string url,
                                                                     const RemoteOptions& options,
                                                                     std::string label);

}  // namespace stag::cli
