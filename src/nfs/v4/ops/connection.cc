#include "nfs/v4/ops/connection.h"

namespace stag::nfs::nfs4 {

state::CallbackConnection callbacks_of(const Compound& compound) {
  const rpc::CallContext& call = compound.admission().call();
  const SharedState& shared = compound.shared();
  if (shared.callbacks.load(std::memory_order_acquire) == nullptr) return {};
  if (!shared.options.rdma_callbacks && call.origin().transport == rpc::TransportKind::Rdma)
    return {};
  return call.reverse_channel();
}

}  // namespace stag::nfs::nfs4
