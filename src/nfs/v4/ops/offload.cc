// OFFLOAD_STATUS and OFFLOAD_CANCEL (RFC 7862 15.8, 15.9): of copies to the current file.
#include "nfs/v4/ops/offloads.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

v4::OFFLOAD_STATUS4res offload_status(Compound& compound, v4::OFFLOAD_STATUS4args& args) {
  const Offloads* const offloads = compound.shared().offloads.load(std::memory_order_acquire);
  if (offloads == nullptr) return {v4::NFS4ERR_BAD_STATEID, {}};
  const auto progress = offloads->status(compound.object().key(), to_stateid(args.osa_stateid),
                                         compound.life()->clientid);
  if (!progress) return {v4::NFS4ERR_BAD_STATEID, {}};
  v4::OFFLOAD_STATUS4res results;
  v4::OFFLOAD_STATUS4resok& ok = results.osr_resok4();
  ok.osr_count = progress->count;
  if (progress->complete) ok.osr_complete.push_back(*progress->complete);
  return results;
}

v4::OFFLOAD_CANCEL4res offload_cancel(Compound& compound, v4::OFFLOAD_CANCEL4args& args) {
  Offloads* const offloads = compound.shared().offloads.load(std::memory_order_acquire);
  const bool cancelled =
      offloads != nullptr && offloads->cancel(compound.object().key(), to_stateid(args.oca_stateid),
                                              compound.life()->clientid);
  return {cancelled ? v4::NFS4_OK : v4::NFS4ERR_BAD_STATEID};
}

}  // namespace stag::nfs::nfs4
