// What the parts of the Copier share.
#pragma once

#include <string>

#include "cli/copy/copy_endpoint.h"

namespace stag::cli {

// For messages.
std::string path_below(const CopyObject& directory, const std::string& name);
// Whether there is no room for more at the destination.
bool lacks_space(const nfs::client::Error& error);
// Whether every further file would fail for the same reason.
bool concerns_all(const nfs::client::Error& error);
Failure<nfs::client::Error> refusal(std::string sentence);

}  // namespace stag::cli
