// Extended attributes of users. The kernel checks permission, as the caller.
#include <sys/xattr.h>

#include <string>

#include "vfs/name.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/errors.h"
#include "vfs/posix/tree.h"
#include "vfs/user_xattr.h"

namespace stag::vfs::posix {
namespace {

// The system's largest list.
constexpr std::size_t kLargestList = 64 * 1024;

}  // namespace

Outcome<ObjectRef> Tree::resolve_with_xattrs(const Handle& handle, std::string_view name) {
  if (const auto fault = fault_of_xattr_name(name)) return Failure{*fault};
  auto resolved = resolve(handle);
  if (!resolved) return resolved;
  if (const auto alive = attributes_of(**resolved); !alive) return Failure{alive.error()};
  const FileType type = (*resolved)->type;
  if (type != FileType::Regular && type != FileType::Directory)
    return Failure{Status::NotSupported};
  return resolved;
}

Outcome<std::string> Tree::xattr(const Credentials& who, const Handle& object,
                                 std::string_view name) {
  const auto resolved = resolve_with_xattrs(object, name);
  if (!resolved) return Failure{resolved.error()};
  std::string value(kLargestXattr, '\0');
  const CredentialScope scope(who);
  if (!scope.ok()) return Failure{Status::Access};
  const ssize_t size = ::getxattr(ProcPath((*resolved)->path).text(), full_xattr_name(name).c_str(),
                                  value.data(), value.size());
  if (size < 0) return Failure{status_of_xattr(errno)};
  value.resize(static_cast<std::size_t>(size));
  return value;
}

// `apply` is given a path and the full name, and answers as a system call.
template <class Apply>
Outcome<Change> Tree::change_xattr(const Credentials& who, const Handle& object,
                                   std::string_view name, Apply apply) {
  const auto resolved = resolve_with_xattrs(object, name);
  if (!resolved) return Failure{resolved.error()};
  Observation observation(*this, *resolved);
  if (!observation.before()) return Failure{observation.before().error()};
  const auto prepared = prepare_sync(**resolved);
  if (!prepared) return Failure{prepared.error()};
  {
    const CredentialScope scope(who);
    if (!scope.ok()) return Failure{Status::Access};
    if (apply(ProcPath((*resolved)->path).text(), full_xattr_name(name).c_str()) != 0)
      return Failure{status_of_xattr(errno)};
  }
  return finish_durably(observation, *prepared);
}

Outcome<Change> Tree::set_xattr(const Credentials& who, const Handle& object, std::string_view name,
                                std::string_view value, XattrMode mode) {
  if (value.size() > kLargestXattr) return Failure{Status::FileTooBig};
  const int flags = xattr_flags(mode);
  return change_xattr(who, object, name, [&](const char* path, const char* full) {
    return ::setxattr(path, full, value.data(), value.size(), flags);
  });
}

Outcome<Change> Tree::remove_xattr(const Credentials& who, const Handle& object,
                                   std::string_view name) {
  return change_xattr(who, object, name,
                      [](const char* path, const char* full) { return ::removexattr(path, full); });
}

Outcome<std::vector<std::string>> Tree::list_xattrs(const Handle& object) {
  const auto resolved = resolve_with_xattrs(object, "any");
  if (!resolved) return Failure{resolved.error()};
  std::string all(kLargestList, '\0');
  const ssize_t size = ::listxattr(ProcPath((*resolved)->path).text(), all.data(), all.size());
  if (size < 0) return Failure{status_of_xattr(errno)};
  return user_xattrs_in(std::string_view(all).substr(0, static_cast<std::size_t>(size)));
}

}  // namespace stag::vfs::posix
