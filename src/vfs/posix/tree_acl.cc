// Access control lists. The kernel keeps and honours them; here they are only read and replaced.
#include <sys/xattr.h>

#include "vfs/acl_xattr.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/errors.h"
#include "vfs/posix/tree.h"

namespace stag::vfs::posix {
namespace {

constexpr std::size_t kLargestXattr = 64 << 10;

// The empty list when there is none.
Outcome<Acl> read_acl(const Object& object, const char* which) {
  std::vector<std::byte> bytes(kLargestXattr);
  const ssize_t size = ::getxattr(ProcPath(object.path).text(), which, bytes.data(), bytes.size());
  if (size < 0 && errno == ENODATA) return Acl();
  if (size < 0) return last_error();
  auto acl = acl_of_xattr(Bytes(bytes).first(static_cast<std::size_t>(size)));
  if (!acl) return Failure{Status::Io};
  return *std::move(acl);
}

// As the thread's current user.
std::optional<Status> write_acl(const Object& object, const char* which, const Acl& acl) {
  const ProcPath path(object.path);
  if (acl.empty()) {
    if (::removexattr(path.text(), which) == 0 || errno == ENODATA) return std::nullopt;
    return status_of(errno);
  }
  const std::vector<std::byte> bytes = xattr_of_acl(acl);
  if (::setxattr(path.text(), which, bytes.data(), bytes.size(), 0) == 0) return std::nullopt;
  return status_of(errno);
}

std::optional<Status> acl_fault(const Object& object, const SetAcls& changes) {
  if (object.type == FileType::Symlink) return Status::NotSupported;
  if (changes.defaults && !changes.defaults->empty() && object.type != FileType::Directory)
    return Status::Access;
  return std::nullopt;
}

// Both or none. The default list first: taking it back does not touch the mode.
std::optional<Status> write_acls(const Object& object, const SetAcls& changes) {
  const bool with_defaults = changes.defaults && object.type == FileType::Directory;
  Outcome<Acl> before = Acl();
  if (with_defaults) {
    before = read_acl(object, kDefaultAcl);
    if (!before) return before.error();
    if (const auto fault = write_acl(object, kDefaultAcl, *changes.defaults)) return fault;
  }
  if (!changes.access) return std::nullopt;
  const auto fault = write_acl(object, kAccessAcl, *changes.access);
  if (fault && with_defaults && write_acl(object, kDefaultAcl, *before)) return Status::Io;
  return fault;
}

}  // namespace

Outcome<ObjectAcls> Tree::acls(const Handle& object) {
  const auto resolved = resolve(object);
  if (!resolved) return Failure{resolved.error()};
  const auto attributes = attributes_of(**resolved);
  if (!attributes) return Failure{attributes.error()};
  ObjectAcls result{{Acl::of_mode(attributes->mode), {}}, *attributes};
  if ((*resolved)->type == FileType::Symlink) return result;
  auto access = read_acl(**resolved, kAccessAcl);
  if (!access) return Failure{access.error()};
  if (!access->empty()) result.acls.access = *std::move(access);
  if ((*resolved)->type != FileType::Directory) return result;
  auto defaults = read_acl(**resolved, kDefaultAcl);
  if (!defaults) return Failure{defaults.error()};
  result.acls.defaults = *std::move(defaults);
  return result;
}

Outcome<Change> Tree::set_acls(const Credentials& who, const Handle& object,
                               const SetAcls& changes) {
  const auto resolved = resolve(object);
  if (!resolved) return Failure{resolved.error()};
  Observation observation(*this, *resolved);
  if (!observation.before()) return Failure{observation.before().error()};
  if (const auto fault = acl_fault(**resolved, changes)) return Failure{*fault};
  const auto prepared = prepare_sync(**resolved);
  if (!prepared) return Failure{prepared.error()};
  {
    const CredentialScope scope(who);
    if (!scope.ok()) return Failure{Status::Access};
    if (const auto fault = write_acls(**resolved, changes)) return Failure{*fault};
  }
  (*resolved)->reconsider_writer();
  if (const auto fault = sync(**resolved, *prepared)) return Failure{*fault};
  return observation.finish();
}

}  // namespace stag::vfs::posix
