#include "cli/copy/local_extras.h"

#include <fmt/format.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/copy/local_tree.h"
#include "cli/support/local_file.h"
#include "nfs/client/acl.h"

namespace stag::cli {
namespace {

using nfs::client::AclEntry;
using nfs::client::Error;

constexpr std::string_view kUserSpace = "user.";
constexpr const char* kAccessList = "system.posix_acl_access";
constexpr const char* kDefaultList = "system.posix_acl_default";
// The kernel's form of a list: a version, then tag, permissions and id of each entry, in the byte
// order of x86.
constexpr std::uint32_t kListVersion = 2;
constexpr std::size_t kListEntry = 8;

// Asks again while the value grows.
template <class Ask>
std::optional<std::string> value_from(Ask ask) {
  std::string value;
  for (;;) {
    const ssize_t size = ask(nullptr, 0);
    if (size < 0) return std::nullopt;
    value.resize(static_cast<std::size_t>(size));
    const ssize_t got = ask(value.data(), value.size());
    if (got < 0 && errno == ERANGE) continue;
    if (got < 0) return std::nullopt;
    value.resize(static_cast<std::size_t>(got));
    return value;
  }
}

// A descriptor of O_PATH, which is all there is of a file that may not be read, takes no
// fgetxattr(2).
std::optional<std::string> xattr_of(int fd, const std::string& name) {
  return value_from([&](char* to, std::size_t size) {
    const ssize_t got = ::fgetxattr(fd, name.c_str(), to, size);
    if (got >= 0 || errno != EBADF) return got;
    return ::getxattr(name_of_open(fd).c_str(), name.c_str(), to, size);
  });
}
std::optional<std::string> xattr_names(int fd) {
  return value_from([fd](char* to, std::size_t size) {
    const ssize_t got = ::flistxattr(fd, to, size);
    if (got >= 0 || errno != EBADF) return got;
    return ::listxattr(name_of_open(fd).c_str(), to, size);
  });
}

std::uint32_t number_at(const std::string& bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = size; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}
void append_number(std::string& bytes, std::uint32_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
}

std::vector<AclEntry> entries_of(const std::string& list) {
  std::vector<AclEntry> entries;
  if (list.size() < 4 || number_at(list, 0, 4) != kListVersion) return entries;
  for (std::size_t at = 4; at + kListEntry <= list.size(); at += kListEntry) {
    AclEntry entry;
    entry.tag = number_at(list, at, 2);
    entry.permissions = number_at(list, at + 2, 2);
    const bool named = entry.tag == AclEntry::kUser || entry.tag == AclEntry::kGroup;
    entry.id = named ? number_at(list, at + 4, 4) : 0;
    entries.push_back(entry);
  }
  return entries;
}

std::string list_of(std::vector<AclEntry> entries) {
  // The order that the kernel wants.
  std::ranges::sort(entries, {}, [](const AclEntry& each) { return std::pair(each.tag, each.id); });
  std::string list;
  append_number(list, kListVersion, 4);
  for (const AclEntry& entry : entries) {
    const bool named = entry.tag == AclEntry::kUser || entry.tag == AclEntry::kGroup;
    append_number(list, entry.tag, 2);
    append_number(list, entry.permissions, 2);
    append_number(list, named ? entry.id : UINT32_MAX, 4);
  }
  return list;
}

Failure<Error> without(const std::string& what, const std::string& path, int error) {
  return Failure{Error::of_local(local_trouble(what, path, error))};
}

Outcome<std::vector<Extras::Xattr>> xattrs_of(int fd, const std::string& named) {
  std::vector<Extras::Xattr> found;
  const std::optional<std::string> names = xattr_names(fd);
  if (!names) return without("read the extended attributes of", named, errno);
  for (std::size_t at = 0; at < names->size();) {
    const std::string name = names->c_str() + at;
    at += name.size() + 1;
    if (!name.starts_with(kUserSpace)) continue;
    std::optional<std::string> value = xattr_of(fd, name);
    if (value) found.emplace_back(name.substr(kUserSpace.size()), *std::move(value));
  }
  return found;
}

}  // namespace

Outcome<Extras> extras_of_local(int fd, const std::string& named, ExtraKinds kinds) {
  Extras extras;
  if (kinds.xattrs) {
    auto xattrs = xattrs_of(fd, named);
    if (!xattrs) return Failure{xattrs.error()};
    extras.xattrs = *std::move(xattrs);
  }
  if (!kinds.acls) return extras;
  // A file system without lists has no such attributes.
  nfs::client::Acls acls;
  if (const auto list = xattr_of(fd, kAccessList)) acls.access = entries_of(*list);
  if (const auto list = xattr_of(fd, kDefaultList)) acls.defaults = entries_of(*list);
  if (acls.beyond_mode()) extras.acls = std::move(acls);
  return extras;
}

Outcome<Ok> adopt_local(int fd, const std::string& named, const Extras& extras) {
  for (const auto& [name, value] : extras.xattrs) {
    const std::string full = std::string(kUserSpace) + name;
    if (::fsetxattr(fd, full.c_str(), value.data(), value.size(), 0) != 0)
      return without("set the extended attributes of", named, errno);
  }
  std::optional<nfs::client::Acls> acls = extras.acls;
  if (extras.nfs4_acl) {
    acls = to_posix_acls(*extras.nfs4_acl, extras.of_directory);
    if (!acls)
      return Failure{Error::of_local(fmt::format(
          "the access control list of '{}' cannot be said in the way of this machine", named))};
  }
  if (!acls) return Ok{};
  const auto set = [fd](const char* name, const std::vector<AclEntry>& entries) {
    const std::string list = list_of(entries);
    return entries.empty() || ::fsetxattr(fd, name, list.data(), list.size(), 0) == 0;
  };
  if (!set(kAccessList, acls->access) || !set(kDefaultList, acls->defaults))
    return without("set the access control list of", named, errno);
  const bool bare = extras.of_directory && acls->defaults.empty();
  if (bare && ::fremovexattr(fd, kDefaultList) != 0 && errno != ENODATA && errno != EOPNOTSUPP)
    return without("set the access control list of", named, errno);
  return Ok{};
}

}  // namespace stag::cli
