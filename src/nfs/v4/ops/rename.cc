// RENAME (RFC 8881 18.26): from the saved directory to the current one.
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

Task<v4::RENAME4res> rename(Compound& compound, v4::RENAME4args& args) {
  for (const std::string& name : {std::cref(args.oldname), std::cref(args.newname)})
    if (const v4::nfsstat4 bad = check_name(name); bad != v4::NFS4_OK)
      co_return v4::RENAME4res{bad, {}};
  const ExportObject from = compound.saved_object();
  const ExportObject to = compound.object();
  if (const auto refused = refused_together(from, to))
    co_return v4::RENAME4res{to_nfsstat4(*refused), {}};
  // A client that holds a delegation of the file opens it by a name that it will not have any more;
  // a file of the new name is removed.
  v4::nfsstat4 recalled = co_await pass_gate_to_unlink(compound, from, args.oldname);
  if (recalled == v4::NFS4_OK) recalled = co_await pass_gate_to_unlink(compound, to, args.newname);
  if (recalled != v4::NFS4_OK) co_return v4::RENAME4res{recalled, {}};
  const auto renamed = co_await from.store().rename(from.caller(), from.handle, args.oldname,
                                                    to.handle, args.newname);
  if (!renamed) co_return v4::RENAME4res{to_nfsstat4(renamed.error()), {}};
  v4::RENAME4res results;
  results.resok4().source_cinfo = to_change_info4(renamed->from);
  results.resok4().target_cinfo = to_change_info4(renamed->to);
  co_return results;
}

}  // namespace stag::nfs::nfs4
