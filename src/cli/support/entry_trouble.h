// Entries of a directory of a server that cannot be looked at, while those beside them can.
#pragma once

#include <optional>

#include "nfs/client/protocol/error.h"

namespace stag::cli {

// What a LOOKUP that failed says of the entry, for messages; nullopt where it is about more than
// this entry.
std::optional<nfs::client::Error> entry_trouble(const nfs::client::Error& error);

}  // namespace stag::cli
