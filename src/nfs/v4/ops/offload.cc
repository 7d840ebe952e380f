// OFFLOAD_STATUS and OFFLOAD_CANCEL (RFC 7862 15.8, 15.9): of copies to the current file; and of
// leave to copy it to another server, which OFFLOAD_CANCEL takes back.
#include "nfs/v4/ops/offloads.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {
namespace {

// How long OFFLOAD_CANCEL waits for a piece before it is to come again.
constexpr Duration kPiecePatience = std::chrono::seconds(1);

}  // namespace

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

// The client takes NFS4_OK for leave to write what the copy would overwrite: the piece that is
// being written is waited for.
Task<v4::OFFLOAD_CANCEL4res> offload_cancel(Compound& compound, v4::OFFLOAD_CANCEL4args& args) {
  Offloads* const offloads = compound.shared().offloads.load(std::memory_order_acquire);
  const state::FileKey file = compound.object().key();
  const state::Stateid stateid = to_stateid(args.oca_stateid);
  const state::Life& client = *compound.life();
  if (offloads == nullptr || !offloads->cancel(file, stateid, client.clientid)) {
    const bool noticed = compound.shared().copy_notices.cancel(file, stateid, client);
    co_return v4::OFFLOAD_CANCEL4res{noticed ? v4::NFS4_OK : v4::NFS4ERR_BAD_STATEID};
  }
  const bool over = co_await told_in_time(
      compound, compound.now() + kPiecePatience,
      [&](UniqueFunction<void()> done) { return offloads->wait(stateid, std::move(done)); });
  co_return v4::OFFLOAD_CANCEL4res{over ? v4::NFS4_OK : v4::NFS4ERR_DELAY};
}

}  // namespace stag::nfs::nfs4
