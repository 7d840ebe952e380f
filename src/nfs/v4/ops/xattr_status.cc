#include "nfs/v4/ops/xattr_status.h"

#include "nfs/v4/compound/status.h"

namespace stag::nfs::nfs4 {

Task<v4::nfsstat4> xattr_status(const ExportObject& object, vfs::Status refusal) {
  if (refusal == vfs::Status::NoEntry) co_return v4::NFS4ERR_NOXATTR;
  if (refusal == vfs::Status::FileTooBig) co_return v4::NFS4ERR_XATTR2BIG;
  if (refusal == vfs::Status::NotSupported && object.store().limits().xattrs) {
    const auto attributes = co_await attributes_now(object);
    const bool can_have = attributes && (attributes->type == vfs::FileType::Regular ||
                                         attributes->type == vfs::FileType::Directory);
    if (attributes && !can_have) co_return v4::NFS4ERR_WRONG_TYPE;
  }
  co_return to_nfsstat4(refusal);
}

}  // namespace stag::nfs::nfs4
