// LINK (RFC 8881 18.9): the saved file gets a name in the current directory.
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

Task<v4::LINK4res> link(Compound& compound, v4::LINK4args& args) {
  if (const v4::nfsstat4 bad = check_name(args.newname); bad != v4::NFS4_OK)
    co_return v4::LINK4res{bad, {}};
  const ExportObject file = compound.saved_object();
  const ExportObject directory = compound.object();
  if (const auto refused = refused_together(file, directory))
    co_return v4::LINK4res{to_nfsstat4(*refused), {}};
  const Intent intent{.touch = state::Touch::Attributes, .directory = &directory};
  const auto permitted = co_await pass_gate(compound, file, intent);
  if (!permitted) co_return v4::LINK4res{permitted.error(), {}};
  const auto linked = co_await directory.store().link(directory.caller(), file.handle,
                                                      directory.handle, args.newname);
  if (!linked) co_return v4::LINK4res{to_nfsstat4(linked.error()), {}};
  v4::LINK4res results;
  results.resok4().cinfo = to_change_info4(linked->directory);
  co_return results;
}

}  // namespace stag::nfs::nfs4
