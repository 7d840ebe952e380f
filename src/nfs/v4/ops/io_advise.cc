// IO_ADVISE (RFC 7862 15.5). The advice is not followed, and the client is told so.
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/ranges.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

Task<v4::IO_ADVISE4res> io_advise(Compound& compound, v4::IO_ADVISE4args& args) {
  const ExportObject file = compound.object();
  const auto permitted = check_stateid(compound, file, args.iaa_stateid, state::Touch::Look);
  // No holder has to make way for an advice.
  if (!permitted && !is_delayed(permitted)) co_return v4::IO_ADVISE4res{permitted.error(), {}};
  const auto attributes = co_await file.store().attributes(file.caller(), file.handle);
  if (!attributes) co_return v4::IO_ADVISE4res{co_await range_status(file, attributes.error()), {}};
  if (attributes->type != vfs::FileType::Regular)
    co_return v4::IO_ADVISE4res{v4::NFS4ERR_WRONG_TYPE, {}};
  v4::IO_ADVISE4res results;
  results.resok4().ior_hints = {1u << v4::IO_ADVISE4_NORMAL};
  co_return results;
}

}  // namespace stag::nfs::nfs4
