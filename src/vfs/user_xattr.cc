#include "vfs/user_xattr.h"

#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>

#include "vfs/errors.h"

namespace stag::vfs {
namespace {

constexpr std::string_view kOfUsers = "user.";

}  // namespace

std::string full_xattr_name(std::string_view name) {
  return std::string(kOfUsers) + std::string(name);
}

std::vector<std::string> user_xattrs_in(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::string_view name = list.substr(0, list.find('\0'));
    if (name.starts_with(kOfUsers)) names.emplace_back(name.substr(kOfUsers.size()));
    list.remove_prefix(std::min(name.size() + 1, list.size()));
  }
  return names;
}

int xattr_flags(XattrMode mode) {
  switch (mode) {
    case XattrMode::Create:
      return XATTR_CREATE;
    case XattrMode::Replace:
      return XATTR_REPLACE;
    default:
      return 0;
  }
}

Status status_of_xattr(int error) {
  if (error == ENODATA) return Status::NoEntry;
  if (error == E2BIG || error == ERANGE) return Status::FileTooBig;
  return status_of(error);
}

}  // namespace stag::vfs
