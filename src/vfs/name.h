// Which names a request may use (RFC 1813 3.2). Every store asks here, so all answer alike.
#pragma once

#include <optional>
#include <string_view>

#include "vfs/status.h"

namespace stag::vfs {

// For lookup, where "." and ".." have a meaning.
std::optional<Status> fault_of_name(std::string_view name, std::size_t max_name);
// For a name that is to be made: "." and ".." always exist.
std::optional<Status> fault_of_new_name(std::string_view name, std::size_t max_name);
// For a name that is to be removed or renamed.
std::optional<Status> fault_of_old_name(std::string_view name, std::size_t max_name);

// For an extended attribute, whose name the system prefixes with "user.".
std::optional<Status> fault_of_xattr_name(std::string_view name);

inline bool is_dot_or_dot_dot(std::string_view name) {
  return name == "." || name == "..";
}

}  // namespace stag::vfs
