// ALLOCATE and DEALLOCATE (RFC 7862 15.1, 15.4).
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/ranges.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

namespace {

using Reshape = vfs::Operation<vfs::Change> (vfs::FileSystem::*)(vfs::CallerContext,
                                                                 const vfs::Handle&, std::uint64_t,
                                                                 std::uint64_t);

Task<v4::nfsstat4> reshape(Compound& compound, const v4::stateid4& stateid, std::uint64_t offset,
                           std::uint64_t length, Reshape function) {
  const ExportObject file = compound.object();
  if (file.read_only()) co_return v4::NFS4ERR_ROFS;
  const auto permitted =
      co_await check_stateid_patiently(compound, file, stateid, state::Touch::Write);
  if (!permitted) co_return permitted.error();
  const auto changed =
      co_await (file.store().*function)(file.caller(), file.handle, offset, length);
  if (changed) co_return v4::NFS4_OK;
  co_return co_await range_status(file, changed.error());
}

}  // namespace

Task<v4::ALLOCATE4res> allocate(Compound& compound, v4::ALLOCATE4args& args) {
  co_return v4::ALLOCATE4res{co_await reshape(compound, args.aa_stateid, args.aa_offset,
                                              args.aa_length, &vfs::FileSystem::allocate)};
}

Task<v4::DEALLOCATE4res> deallocate(Compound& compound, v4::DEALLOCATE4args& args) {
  co_return v4::DEALLOCATE4res{co_await reshape(compound, args.da_stateid, args.da_offset,
                                                args.da_length, &vfs::FileSystem::deallocate)};
}

}  // namespace stag::nfs::nfs4
