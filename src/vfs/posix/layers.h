// Overlays whose layers lie on several file systems.
#pragma once

#include <string>

namespace stag::vfs::posix {

// A file below `folder` that is not served, because its device is not that of its directory: so are
// all files of an overlay over several file systems, unless it was mounted with xino=on. Empty
// where none was found among the first thousand names, or where the folder is no overlay. Blocks.
std::string file_of_another_device(const std::string& folder);

}  // namespace stag::vfs::posix
