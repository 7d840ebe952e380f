// A file of this machine while it is written, and how it gets owner, mode and times.
#pragma once

#include <memory>
#include <string>

#include "cli/copy/copy_endpoint.h"
#include "cli/copy/local_tree.h"

namespace stag::cli {

// Sets the attributes `finish` of the open file or directory, or of one that was opened with
// O_PATH; at no moment does a wrong owner have one of kOwnersBits. `named`: its name in messages.
// Blocks.
Outcome<Ok> finish_local(int fd, const std::string& named, const Finish& finish);

// Owner and times of a symbolic link that was opened with O_PATH, as far as they can be given.
// Blocks.
void finish_local_symlink(int fd, const Finish& finish);

// The file that is to be at `place`, which is `path` in messages; `existing`: the one that is
// there, open for writing, where `plan` overwrites it. Blocks.
Outcome<std::unique_ptr<TempFile>> open_local_temp_file(Run& run, Progress& progress,
                                                        LocalPlace place, std::string path,
                                                        UniqueFd existing, TempFilePlan plan);

}  // namespace stag::cli
