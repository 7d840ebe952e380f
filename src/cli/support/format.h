// Figures and attributes in readable form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nfs/client/protocol/types.h"

namespace stag::cli {

// "4.0 KiB"
std::string human_size(double bytes);
// "4.0K", rounded up, as du(1) and ls(1) write sizes: sort -h orders them, which takes a blank for
// the end of the number.
std::string short_size(std::uint64_t bytes);
// "drwxr-x--t"
std::string mode_text(const nfs::client::Attributes& attributes);
// "directory"
std::string_view type_name(nfs::client::FileType type);
// "2024-05-01 12:00:00" in the local time zone
std::string time_text(const nfs::client::Time& time);
// For standard output: escaped (cli/support/escape.h) where that is a terminal or the journal, else
// byte for byte.
std::string shown(std::string_view name);

}  // namespace stag::cli
