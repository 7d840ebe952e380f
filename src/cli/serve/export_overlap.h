// Exported folders and the state directory must not lie within each other: a client that can read
// the key in the state directory can make file handles of every exported object.
#pragma once

#include <string>

namespace stag::cli {

// A sentence when one of the two folders lies in the other or is the same, and an export shows it;
// empty otherwise. Symbolic links and bind mounts are seen through where the kernel tells. A file
// system that is mounted in between keeps them apart: exports do not cross mounts. Blocks.
std::string state_overlap(const std::string& folder, const std::string& state_directory);

}  // namespace stag::cli
