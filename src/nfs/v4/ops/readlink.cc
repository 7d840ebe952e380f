// READLINK (RFC 8881 18.24).
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

Task<v4::READLINK4res> readlink(Compound& compound) {
  v4::READLINK4res results;
  const ExportObject object = compound.object();
  auto found = co_await object.store().readlink(object.caller(), object.handle);
  if (!found) co_return v4::READLINK4res{to_nfsstat4(found.error()), {}};
  results.resok4().link = Rope::copy_of(bytes_of(found->target));
  co_return results;
}

}  // namespace stag::nfs::nfs4
