#include "nfs/v4/ops/connection.h"

namespace stag::nfs::nfs4 {

state::ConnectionId connection_of(const Compound& compound) {
  const auto& connection = compound.admission().call().connection();
  return connection == nullptr ? 0 : connection->id();
}

state::CallbackConnection callbacks_of(const Compound& compound) {
  if (compound.shared().callbacks.load(std::memory_order_acquire) == nullptr) return {};
  return compound.admission().call().reverse_channel();
}

}  // namespace stag::nfs::nfs4
