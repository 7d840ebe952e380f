// Extended attributes of users, and access control lists, which the library keeps in such. It
// checks permissions of both.
#include <cerrno>

#include "vfs/acl_xattr.h"
#include "vfs/ceph/tree.h"
#include "vfs/name.h"
#include "vfs/user_xattr.h"

namespace stag::vfs::ceph {
namespace {

// What the metadata server keeps of one object at most, names and values together.
constexpr std::size_t kLargestList = 64 * 1024;

// As the kernel has it: in a sticky directory, which others write to, only its owner's attributes
// are safe.
bool is_kept_from(const Credentials& who, const Attributes& object) {
  constexpr std::uint32_t kSticky = 01000;
  return object.type == FileType::Directory && (object.mode & kSticky) != 0 && who.uid != 0 &&
         who.uid != object.uid;
}

std::optional<Status> acl_fault(const Attributes& object, const SetAcls& changes,
                                const Credentials& who) {
  if (object.type == FileType::Symlink) return Status::NotSupported;
  if (who.uid != 0 && who.uid != object.uid) return Status::Perm;
  if (changes.defaults && !changes.defaults->empty() && object.type != FileType::Directory)
    return Status::Access;
  return std::nullopt;
}

}  // namespace

Outcome<std::string> Tree::read_xattr(const Object& object, const char* name,
                                      const UserPerm* who) const {
  std::string value(kLargestXattr, '\0');
  const int size = mount_->call().getxattr(mount_->get(), object.inode.get(), name, value.data(),
                                           value.size(), who);
  if (size < 0) return Failure{status_of_xattr(-size)};
  value.resize(static_cast<std::size_t>(size));
  return value;
}

Outcome<Tree::Object> Tree::resolve_with_xattrs(const Handle& handle, std::string_view name) const {
  if (const auto fault = fault_of_xattr_name(name)) return Failure{*fault};
  auto object = resolve(handle);
  if (!object) return object;
  const FileType type = object->attributes.type;
  if (type != FileType::Regular && type != FileType::Directory)
    return Failure{Status::NotSupported};
  return object;
}

Outcome<std::string> Tree::xattr(const Credentials& who, const Handle& handle,
                                 std::string_view name) {
  const auto object = resolve_with_xattrs(handle, name);
  if (!object) return Failure{object.error()};
  return read_xattr(*object, full_xattr_name(name).c_str(), Permissions(*mount_, who).get());
}

// `apply` is given the inode, the full name and the user, and answers as the library does.
template <class Apply>
Outcome<Change> Tree::change_xattr(const Credentials& who, const Handle& handle,
                                   std::string_view name, Apply apply) {
  const auto object = resolve_with_xattrs(handle, name);
  if (!object) return Failure{object.error()};
  if (is_kept_from(who, object->attributes)) return Failure{Status::Perm};
  const Permissions permissions(*mount_, who);
  const int failed = apply(object->inode.get(), full_xattr_name(name).c_str(), permissions.get());
  if (failed < 0) return Failure{status_of_xattr(-failed)};
  if (const auto fault = sync_change(*object)) return Failure{*fault};
  return change_of(*object);
}

Outcome<Change> Tree::set_xattr(const Credentials& who, const Handle& object, std::string_view name,
                                std::string_view value, XattrMode mode) {
  if (value.size() > kLargestXattr) return Failure{Status::FileTooBig};
  const int flags = xattr_flags(mode);
  return change_xattr(who, object, name, [&](Inode* inode, const char* full, const UserPerm* as) {
    return mount_->call().setxattr(mount_->get(), inode, full, value.data(), value.size(), flags,
                                   as);
  });
}

Outcome<Change> Tree::remove_xattr(const Credentials& who, const Handle& object,
                                   std::string_view name) {
  return change_xattr(who, object, name, [&](Inode* inode, const char* full, const UserPerm* as) {
    return mount_->call().removexattr(mount_->get(), inode, full, as);
  });
}

Outcome<std::vector<std::string>> Tree::list_xattrs(const Handle& handle) {
  const auto object = resolve_with_xattrs(handle, "any");
  if (!object) return Failure{object.error()};
  std::string all(kLargestList, '\0');
  std::size_t size = 0;
  const int failed = mount_->call().listxattr(mount_->get(), object->inode.get(), all.data(),
                                              all.size(), &size, mount_->root());
  if (failed < 0) return Failure{status_of_xattr(-failed)};
  return user_xattrs_in(std::string_view(all).substr(0, size));
}

// The empty list when there is none.
Outcome<Acl> Tree::read_acl(const Object& object, const char* which) const {
  const auto value = read_xattr(object, which, mount_->root());
  if (!value && value.error() == Status::NoEntry) return Acl();
  if (!value) return Failure{value.error()};
  auto acl = acl_of_xattr(bytes_of(*value));
  if (!acl) return Failure{Status::Io};
  return *std::move(acl);
}

std::optional<Status> Tree::write_acl(const UserPerm* who, const Object& object, const char* which,
                                      const Acl& acl) {
  int failed = 0;
  if (acl.empty()) {
    failed = mount_->call().removexattr(mount_->get(), object.inode.get(), which, who);
    if (failed == -ENODATA) return std::nullopt;
  } else {
    const std::vector<std::byte> bytes = xattr_of_acl(acl);
    failed = mount_->call().setxattr(mount_->get(), object.inode.get(), which, bytes.data(),
                                     bytes.size(), 0, who);
  }
  return failed < 0 ? std::optional(status_of_xattr(-failed)) : std::nullopt;
}

// Both or none. The default list first: taking it back does not touch the mode.
std::optional<Status> Tree::write_acls(const UserPerm* who, const Object& object,
                                       const SetAcls& changes) {
  const bool with_defaults = changes.defaults && object.attributes.type == FileType::Directory;
  Outcome<Acl> before = Acl();
  if (with_defaults) {
    before = read_acl(object, kDefaultAcl);
    if (!before) return before.error();
    if (const auto fault = write_acl(who, object, kDefaultAcl, *changes.defaults)) return fault;
  }
  if (!changes.access) return std::nullopt;
  const auto fault = write_acl(who, object, kAccessAcl, *changes.access);
  if (fault && with_defaults && write_acl(who, object, kDefaultAcl, *before)) return Status::Io;
  return fault;
}

Outcome<ObjectAcls> Tree::acls(const Handle& handle) {
  const auto object = resolve(handle);
  if (!object) return Failure{object.error()};
  ObjectAcls result{{Acl::of_mode(object->attributes.mode), {}}, object->attributes};
  if (object->attributes.type == FileType::Symlink) return result;
  auto access = read_acl(*object, kAccessAcl);
  if (!access) return Failure{access.error()};
  if (!access->empty()) result.acls.access = *std::move(access);
  if (object->attributes.type != FileType::Directory) return result;
  auto defaults = read_acl(*object, kDefaultAcl);
  if (!defaults) return Failure{defaults.error()};
  result.acls.defaults = *std::move(defaults);
  return result;
}

Outcome<Change> Tree::set_acls(const Credentials& who, const Handle& handle,
                               const SetAcls& changes) {
  const auto object = resolve(handle);
  if (!object) return Failure{object.error()};
  if (const auto fault = acl_fault(object->attributes, changes, who)) return Failure{*fault};
  const Permissions permissions(*mount_, who);
  if (const auto fault = write_acls(permissions.get(), *object, changes)) return Failure{*fault};
  if (const auto fault = sync_change(*object)) return Failure{*fault};
  return change_of(*object);
}

}  // namespace stag::vfs::ceph
