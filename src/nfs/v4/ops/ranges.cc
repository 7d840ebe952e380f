#include "nfs/v4/ops/ranges.h"

#include "nfs/v4/compound/status.h"

namespace stag::nfs::nfs4 {

Task<v4::nfsstat4> range_status(const ExportObject& file, vfs::Status refusal) {
  if (refusal == vfs::Status::Invalid || refusal == vfs::Status::IsDirectory) {
    const auto attributes = co_await attributes_now(file);
    if (attributes && attributes->type != vfs::FileType::Regular) co_return v4::NFS4ERR_WRONG_TYPE;
  }
  co_return to_nfsstat4(refusal);
}

Task<v4::nfsstat4> read_status(const ExportObject& file, vfs::Status refusal) {
  if (refusal == vfs::Status::Invalid) {
    const auto attributes = co_await attributes_now(file);
    if (attributes && attributes->type == vfs::FileType::Symlink) co_return v4::NFS4ERR_SYMLINK;
    if (attributes && attributes->type != vfs::FileType::Regular) co_return v4::NFS4ERR_WRONG_TYPE;
  }
  co_return to_nfsstat4(refusal);
}

}  // namespace stag::nfs::nfs4
