// SETXATTR (RFC 8276 8.4.2).
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"
#include "nfs/v4/ops/xattr_status.h"

namespace stag::nfs::nfs4 {

namespace {

// The orders are the same.
vfs::XattrMode to_mode(v4::setxattr_option4 option) {
  static_assert(v4::SETXATTR4_EITHER == 0 && v4::SETXATTR4_CREATE == 1 &&
                v4::SETXATTR4_REPLACE == 2);
  return static_cast<vfs::XattrMode>(option);
}

}  // namespace

Task<v4::SETXATTR4res> setxattr(Compound& compound, v4::SETXATTR4args& args) {
  const ExportObject object = compound.object();
  if (object.read_only()) co_return v4::SETXATTR4res{v4::NFS4ERR_ROFS, {}};
  if (args.sxa_value.size() > vfs::kLargestXattr)
    co_return v4::SETXATTR4res{v4::NFS4ERR_XATTR2BIG, {}};
  const auto permitted = co_await pass_gate(compound, object, kToSetXattr);
  if (!permitted) co_return v4::SETXATTR4res{permitted.error(), {}};
  const Buffer value = args.sxa_value.flatten();
  const auto changed =
      co_await object.store().set_xattr(object.caller(), object.handle, args.sxa_key,
                                        text_of(value.bytes()), to_mode(args.sxa_option));
  if (!changed) co_return v4::SETXATTR4res{co_await xattr_status(object, changed.error()), {}};
  v4::SETXATTR4res results;
  results.sxr_info() = to_change_info4(*changed);
  co_return results;
}

}  // namespace stag::nfs::nfs4
