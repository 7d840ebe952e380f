// The way from an export's root to the directory that a client mounts. MOUNT names it by a path,
// and the path may go through symbolic links as it may on the server; none leads out of the export.
#pragma once

#include <string_view>

#include "nfs/export/admission.h"

namespace stag::nfs::mount {

// The directory at `rest`, a path relative to `root`. Errors: NoEntry for a link that leads out of
// the export or in circles, NotDirectory, and those of lookup().
Task<vfs::Outcome<vfs::Handle>> directory_at(const ExportObject& root, std::string_view rest);

}  // namespace stag::nfs::mount
