// What the parts of the Copier share.
#pragma once

#include <string>

#include "cli/copy/copy_endpoint.h"

namespace stag::cli {

// For messages.
std::string path_below(const CopyObject& directory, const std::string& name);
// That a path is in: "." for "x", "/" for "/x".
std::string directory_of(const std::string& path);
// Whether a name from the other side may be one here, and is no path.
bool is_usable_name(const std::string& name);
// Whether there is no room for more at the destination.
bool lacks_space(const nfs::client::Error& error);
// Whether every further file would fail for the same reason.
bool concerns_all(const nfs::client::Error& error);
Failure<nfs::client::Error> refusal(std::string sentence);
// That the destination takes a name for `other`.
Failure<nfs::client::Error> one_name(const std::string& other);

}  // namespace stag::cli
