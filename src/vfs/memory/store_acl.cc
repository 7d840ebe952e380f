// Access control lists: acls, set_acls, and the lists that a new object inherits.
#include "vfs/memory/store.h"

namespace stag::vfs::memory {
namespace {

std::optional<Status> acl_fault(const Inode* inode, const Credentials& who,
                                const SetAcls& changes) {
  if (inode == nullptr) return Status::Stale;
  if (inode->type == FileType::Symlink) return Status::NotSupported;
  if (!owns(*inode, who)) return Status::Perm;
  if (changes.defaults && !changes.defaults->empty() && !inode->is_directory())
    return Status::Access;
  return std::nullopt;
}

// The lists to keep; null if a mode says as much.
std::unique_ptr<Acls> kept_acls(Acls acls) {
  if (acls.access.minimal()) acls.access = {};
  if (acls.access.empty() && acls.defaults.empty()) return nullptr;
  return std::make_unique<Acls>(std::move(acls));
}

}  // namespace

std::uint64_t Store::charge_of(const Acls* acls) {
  if (acls == nullptr) return 0;
  const std::size_t entries = acls->access.entries().size() + acls->defaults.entries().size();
  return sizeof(Acls) + entries * sizeof(AclEntry);
}

Outcome<ObjectAcls> Store::acls(const Handle& object) {
  const auto id = id_of(object);
  if (!id) return Failure{id.error()};
  Locked lock(*this, *id);
  const Inode* inode = find(*id);
  if (inode == nullptr) return Failure{Status::Stale};
  ObjectAcls result{{}, attributes_of(*inode)};
  if (inode->acls != nullptr) result.acls = *inode->acls;
  if (!inode->has_access_acl()) result.acls.access = Acl::of_mode(inode->mode);
  return result;
}

Outcome<Change> Store::set_acls(const Credentials& who, const Handle& object,
                                const SetAcls& changes) {
  const auto id = id_of(object);
  if (!id) return Failure{id.error()};
  Locked lock(*this, *id);
  Inode* inode = find(*id);
  if (const auto fault = acl_fault(inode, who, changes)) return Failure{*fault};
  const BeforeChange before = before_of(attributes_of(*inode));
  Acls wanted = inode->acls != nullptr ? *inode->acls : Acls{};
  if (changes.access) wanted.access = *changes.access;
  if (changes.defaults) wanted.defaults = *changes.defaults;
  std::unique_ptr<Acls> next = kept_acls(std::move(wanted));
  if (!charge(charge_of(next.get()))) return Failure{Status::NoSpace};
  refund(charge_of(inode->acls.get()));
  inode->acls = std::move(next);
  if (changes.access && !changes.access->empty()) {
    inode->mode = (inode->mode & ~0777u) | changes.access->mode();
    if (!is_root(who) && !who.in_group(inode->gid)) inode->mode &= ~kSetGid;
  }
  inode->touch(now_());
  return changed(before, *inode);
}

// The default list of the directory takes the place that a umask has elsewhere.
void Store::inherit_acls(const Inode& directory, Inode& made) {
  if (directory.acls == nullptr || directory.acls->defaults.empty()) return;
  if (made.type == FileType::Symlink) return;
  Acls acls;
  acls.access = directory.acls->defaults.inherited(made.mode);
  made.mode = (made.mode & ~0777u) | acls.access.mode();
  if (made.is_directory()) acls.defaults = directory.acls->defaults;
  made.acls = kept_acls(std::move(acls));
}

}  // namespace stag::vfs::memory
