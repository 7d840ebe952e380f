// REMOVEXATTR (RFC 8276 8.4.4).
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"
#include "nfs/v4/ops/xattr_status.h"

namespace stag::nfs::nfs4 {

Task<v4::REMOVEXATTR4res> removexattr(Compound& compound, v4::REMOVEXATTR4args& args) {
  const ExportObject object = compound.object();
  if (object.read_only()) co_return v4::REMOVEXATTR4res{v4::NFS4ERR_ROFS, {}};
  const auto permitted = co_await pass_gate(compound, object, kToSetXattr);
  if (!permitted) co_return v4::REMOVEXATTR4res{permitted.error(), {}};
  const auto changed =
      co_await object.store().remove_xattr(object.caller(), object.handle, args.rxa_name);
  if (!changed) co_return v4::REMOVEXATTR4res{co_await xattr_status(object, changed.error()), {}};
  v4::REMOVEXATTR4res results;
  results.rxr_info() = to_change_info4(*changed);
  co_return results;
}

}  // namespace stag::nfs::nfs4
