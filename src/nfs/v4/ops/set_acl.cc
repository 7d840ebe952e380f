#include "nfs/v4/ops/set_acl.h"

#include "nfs/v4/compound/status.h"

namespace stag::nfs::nfs4 {

Task<v4::nfsstat4> set_acl(const ExportObject& object, const Aces& aces) {
  const auto attributes = co_await object.store().attributes(object.caller(), object.handle);
  if (!attributes) co_return to_nfsstat4(attributes.error());
  const auto changes = from_aces(aces, attributes->type == vfs::FileType::Directory);
  if (!changes) co_return changes.error();
  const auto changed = co_await object.store().set_acls(object.caller(), object.handle, *changes);
  if (changed) co_return v4::NFS4_OK;
  if (changed.error() == vfs::Status::NotSupported) co_return v4::NFS4ERR_ATTRNOTSUPP;
  co_return to_nfsstat4(changed.error());
}

}  // namespace stag::nfs::nfs4
