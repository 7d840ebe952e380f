// Extended attributes of users as Linux has them (xattr(7)): under names that begin with "user.".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfs/status.h"
#include "vfs/vfs.h"

namespace stag::vfs {

// "user.NAME"
std::string full_xattr_name(std::string_view name);
// The names in a list as listxattr(2) returns it, without "user."; those of others are left out.
std::vector<std::string> user_xattrs_in(std::string_view list);
// For setxattr(2).
int xattr_flags(XattrMode mode);
Status status_of_xattr(int error);

}  // namespace stag::vfs
