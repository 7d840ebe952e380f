// TEST_STATEID and FREE_STATEID (RFC 8881 18.48, 18.38).
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

v4::TEST_STATEID4res test_stateid(Compound& compound, v4::TEST_STATEID4args& args) {
  v4::TEST_STATEID4res results;
  auto& codes = results.tsr_resok4().tsr_status_codes;
  codes.reserve(args.ts_stateids.size());
  for (const v4::stateid4& stateid : args.ts_stateids)
    codes.push_back(
        to_nfsstat4(compound.shared().files.test_stateid(to_stateid(stateid), *compound.life())));
  return results;
}

v4::FREE_STATEID4res free_stateid(Compound& compound, v4::FREE_STATEID4args& args) {
  const auto meant = compound.meant(args.fsa_stateid);
  if (!meant) return {meant.error()};
  return {to_nfsstat4(compound.shared().files.free_stateid(to_stateid(*meant), *compound.life()))};
}

}  // namespace stag::nfs::nfs4
