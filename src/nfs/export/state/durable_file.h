// Small files that must be there after a power failure: read whole, replaced whole. Blocking.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "nfs/export/state/state_error.h"

namespace stag::nfs {

// Reads at most 64 bytes; holds nullopt when there is no such file.
Result<std::optional<std::string>, StateError> read_small_file(const std::string& path);
// The new content is there as a whole or not at all. `directory`/`name`.new is used on the way.
Result<Ok, StateError> replace_file(const std::string& directory, const std::string& name,
                                    std::string_view content);
// Removes durably; a file that is not there is no error.
Result<Ok, StateError> remove_file(const std::string& directory, const std::string& name);
// The same for many: for all that can be removed, though one cannot.
Result<Ok, StateError> remove_files(const std::string& directory,
                                    const std::vector<std::string>& names);
// Whether so many bytes can be written in the directory, and synced; nothing of it stays. Where it
// is not there, in the nearest one above it.
Result<Ok, StateError> try_to_write(const std::string& directory, std::size_t bytes);
// Makes the directory and the missing ones above it.
Result<Ok, StateError> make_directories(const std::string& path);

}  // namespace stag::nfs
