// Exported folders and the state directory must not lie within each other: a client that can read
// the key in the state directory can make file handles of every exported object.
#pragma once

#include <string>

namespace stag::vfs::posix {

// An error sentence when one of the two folders contains the other, or is the same, and an export
// makes it visible; empty otherwise. Symbolic links and bind mounts are resolved as far as the
// kernel reports them. A file system mounted in between separates the folders, because exports do
// not cross mounts. Blocks.
std::string state_overlap(const std::string& folder, const std::string& state_directory);

}  // namespace stag::vfs::posix
