// LOOKUP and LOOKUPP (RFC 8881 18.13, 18.14). Both cross the borders between the pseudo file system
// and the exports (7.5).
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/crossing.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

namespace {

using Entered = Result<Object, v4::nfsstat4>;

Entered lookup_in_folder(const Compound& compound, const PseudoFs::Node& folder,
                         std::string_view name) {
  const PseudoFs::Node* child = folder.child(name);
  if (child == nullptr) return Failure{v4::NFS4ERR_NOENT};
  return compound.enter(*child);
}

// 18.13.3: a symlink in the way has a status of its own.
v4::nfsstat4 status_of_lookup(vfs::Status status, const std::optional<vfs::Attributes>& directory) {
  const bool symlink = directory && directory->type == vfs::FileType::Symlink;
  return status == vfs::Status::NotDirectory && symlink ? v4::NFS4ERR_SYMLINK : to_nfsstat4(status);
}

}  // namespace

Task<v4::LOOKUP4res> lookup(Compound& compound, v4::LOOKUP4args& args) {
  if (const v4::nfsstat4 bad = check_name(args.objname); bad != v4::NFS4_OK)
    co_return v4::LOOKUP4res{bad};
  if (const auto* folder = std::get_if<const PseudoFs::Node*>(&compound.current())) {
    const Entered entered = lookup_in_folder(compound, **folder, args.objname);
    if (!entered) co_return v4::LOOKUP4res{entered.error()};
    compound.set_current(*entered);
    co_return v4::LOOKUP4res{v4::NFS4_OK};
  }
  const ExportObject directory = compound.object();
  const PseudoFs::Node* child = nullptr;
  if (compound.has_nested_exports()) {
    const PseudoFs::Node* here = co_await node_at(compound, directory, args.objname);
    if (here != nullptr) child = here->child(args.objname);
  }
  if (child != nullptr && child->mounted != nullptr) {
    const Entered entered = compound.enter(*child);
    if (!entered) co_return v4::LOOKUP4res{entered.error()};
    compound.set_current(*entered);
    co_return v4::LOOKUP4res{v4::NFS4_OK};
  }
  if (directory.wrong_security) co_return v4::LOOKUP4res{v4::NFS4ERR_WRONGSEC};
  const auto found =
      co_await directory.store().lookup(directory.caller(), directory.handle, args.objname);
  if (!found && found.error() == vfs::Status::NoEntry && child != nullptr) {
    // Only the exports' names speak of this folder.
    compound.set_current(child);
    co_return v4::LOOKUP4res{v4::NFS4_OK};
  }
  if (!found) {
    std::optional<vfs::Attributes> now;
    if (found.error() == vfs::Status::NotDirectory) now = co_await attributes_now(directory);
    co_return v4::LOOKUP4res{status_of_lookup(found.error(), now)};
  }
  ExportObject object = directory;
  object.handle = found->node.handle;
  compound.set_current(object);
  co_return v4::LOOKUP4res{v4::NFS4_OK};
}

Task<v4::LOOKUPP4res> lookupp(Compound& compound) {
  if (const PseudoFs::Node* const here = node_here(compound)) {
    // 18.14.3: nothing is above the root.
    if (here->parent == nullptr) co_return v4::LOOKUPP4res{v4::NFS4ERR_NOENT};
    const Entered above = co_await parent_of_root(compound, *here);
    if (!above) co_return v4::LOOKUPP4res{above.error()};
    compound.set_current(*above);
    co_return v4::LOOKUPP4res{v4::NFS4_OK};
  }
  const ExportObject directory = compound.object();
  if (directory.wrong_security) co_return v4::LOOKUPP4res{v4::NFS4ERR_WRONGSEC};
  const auto found = co_await directory.store().lookup(directory.caller(), directory.handle, "..");
  if (!found) co_return v4::LOOKUPP4res{to_nfsstat4(found.error())};
  ExportObject object = directory;
  object.handle = found->node.handle;
  compound.set_current(object);
  co_return v4::LOOKUPP4res{v4::NFS4_OK};
}

}  // namespace stag::nfs::nfs4
