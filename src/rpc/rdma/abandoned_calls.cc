#include "rpc/rdma/abandoned_calls.h"

#include <algorithm>

namespace stag::rpc::rdma {

// Memory that only its owner can keep from being written to stays exposed until the Reply; what is
// the caller's is cut off, at the price of the connection if the peer still wants it.
void AbandonedCalls::add(PendingCall& call, fabric::Connection& connection) {
  Abandoned& left = calls_.emplace_back();
  left.xid = call.xid;
  if (connection.parameters().discards) {
    left.handles = call.registrations().abandon(connection);
  } else if (call.owns_memory()) {
    left.handles = call.registrations().hand_over();
    left.memory = call.take_memory();
  } else {
    call.registrations().revoke(connection);
  }
  if (left.handles.empty()) calls_.pop_back();
}

void AbandonedCalls::release(std::uint32_t xid, fabric::Connection& connection) {
  const auto found = std::find_if(calls_.begin(), calls_.end(), [xid](const Abandoned& call) {
    return call.xid == xid && !call.revoking;
  });
  if (found == calls_.end()) return;
  const bool keeps_memory = !connection.parameters().discards;
  for (std::size_t i = 0; i < found->handles.size();) {
    const fabric::Revocation revocation = connection.revoke(found->handles[i]);
    if (keeps_memory && revocation == fabric::Revocation::Pending) {
      ++i;
    } else {
      found->handles[i] = found->handles.back();
      found->handles.pop_back();
    }
  }
  found->revoking = true;
  if (found->handles.empty()) calls_.erase(found);
}

bool AbandonedCalls::on_revoked(std::uint32_t handle) {
  for (auto call = calls_.begin(); call != calls_.end(); ++call) {
    if (!call->revoking) continue;
    const auto found = std::find(call->handles.begin(), call->handles.end(), handle);
    if (found == call->handles.end()) continue;
    *found = call->handles.back();
    call->handles.pop_back();
    if (call->handles.empty()) calls_.erase(call);
    return true;
  }
  return false;
}

}  // namespace stag::rpc::rdma
