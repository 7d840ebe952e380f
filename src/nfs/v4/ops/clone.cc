// CLONE (RFC 7862 15.13): from the saved file to the current one, which share their storage then.
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/ranges.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

Task<v4::CLONE4res> clone(Compound& compound, v4::CLONE4args& args) {
  const ExportObject from = compound.saved_object();
  const ExportObject to = compound.object();
  if (const auto refused = refused_together(from, to))
    co_return v4::CLONE4res{to_nfsstat4(*refused)};
  const auto read =
      co_await check_stateid_patiently(compound, from, args.cl_src_stateid, state::Touch::Read);
  if (!read) co_return v4::CLONE4res{read.error()};
  const auto permitted =
      co_await check_stateid_patiently(compound, to, args.cl_dst_stateid, state::Touch::Write);
  if (!permitted) co_return v4::CLONE4res{permitted.error()};
  const auto cloned = co_await to.store().clone(
      to.caller(), from.handle, to.handle, {args.cl_src_offset, args.cl_dst_offset, args.cl_count});
  if (cloned) co_return v4::CLONE4res{v4::NFS4_OK};
  const v4::nfsstat4 status = co_await range_status(from, cloned.error());
  if (status == v4::NFS4ERR_WRONG_TYPE) co_return v4::CLONE4res{status};
  co_return v4::CLONE4res{co_await range_status(to, cloned.error())};
}

}  // namespace stag::nfs::nfs4
