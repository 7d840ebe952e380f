// SEEK (RFC 7862 15.11).
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/ranges.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

Task<v4::SEEK4res> seek(Compound& compound, v4::SEEK4args& args) {
  const ExportObject file = compound.object();
  const auto permitted =
      co_await check_stateid_patiently(compound, file, args.sa_stateid, state::Touch::Read);
  if (!permitted) co_return v4::SEEK4res{permitted.error(), {}};
  const vfs::SeekTo what =
      args.sa_what == v4::NFS4_CONTENT_DATA ? vfs::SeekTo::Data : vfs::SeekTo::Hole;
  const auto found = co_await file.store().seek(file.caller(), file.handle, args.sa_offset, what);
  if (!found) {
    const v4::nfsstat4 status = co_await read_status(file, found.error());
    // Nothing else of a regular file is invalid but an offset beyond its end.
    co_return v4::SEEK4res{status == v4::NFS4ERR_INVAL ? v4::NFS4ERR_NXIO : status, {}};
  }
  v4::SEEK4res results;
  results.resok4() = {found->eof, found->offset};
  co_return results;
}

}  // namespace stag::nfs::nfs4
