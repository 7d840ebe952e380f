// COMMIT (RFC 8881 18.3).
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/ranges.h"

namespace stag::nfs::nfs4 {

Task<v4::COMMIT4res> commit(Compound& compound, v4::COMMIT4args& args) {
  v4::COMMIT4res results;
  const ExportObject object = compound.object();
  const auto committed =
      co_await object.store().commit(object.caller(), object.handle, args.offset, args.count);
  if (!committed) co_return v4::COMMIT4res{co_await read_status(object, committed.error()), {}};
  // Taken last: a loss that this commit found out about must show in it.
  store_be(results.resok4().writeverf.data(),
           compound.shared().server.write_verifier(object.store()));
  co_return results;
}

}  // namespace stag::nfs::nfs4
