// REMOVE (RFC 8881 18.25), of files and of empty directories.
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

Task<v4::REMOVE4res> remove(Compound& compound, v4::REMOVE4args& args) {
  if (const v4::nfsstat4 bad = check_name(args.target); bad != v4::NFS4_OK)
    co_return v4::REMOVE4res{bad, {}};
  const ExportObject directory = compound.object();
  if (directory.read_only()) co_return v4::REMOVE4res{v4::NFS4ERR_ROFS, {}};
  const v4::nfsstat4 recalled = co_await pass_gate_to_unlink(compound, directory, args.target);
  if (recalled != v4::NFS4_OK) co_return v4::REMOVE4res{recalled, {}};
  vfs::FileSystem& store = directory.store();
  auto removed = co_await store.remove(directory.caller(), directory.handle, args.target);
  if (!removed && removed.error() == vfs::Status::IsDirectory)
    removed = co_await store.rmdir(directory.caller(), directory.handle, args.target);
  if (!removed) co_return v4::REMOVE4res{to_nfsstat4(removed.error()), {}};
  v4::REMOVE4res results;
  results.resok4().cinfo = to_change_info4(*removed);
  co_return results;
}

}  // namespace stag::nfs::nfs4
