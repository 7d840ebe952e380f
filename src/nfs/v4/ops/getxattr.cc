// GETXATTR (RFC 8276 8.4.1).
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/xattr_status.h"

namespace stag::nfs::nfs4 {

Task<v4::GETXATTR4res> getxattr(Compound& compound, v4::GETXATTR4args& args) {
  const ExportObject object = compound.object();
  const auto found = co_await object.store().xattr(object.caller(), object.handle, args.gxa_name);
  if (!found) co_return v4::GETXATTR4res{co_await xattr_status(object, found.error()), {}};
  // A value is answered in one piece; one that is too long the interpreter takes back.
  v4::GETXATTR4res results;
  results.gxr_value() = Rope::copy_of(bytes_of(*found));
  co_return results;
}

}  // namespace stag::nfs::nfs4
