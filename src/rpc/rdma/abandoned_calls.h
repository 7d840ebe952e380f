// Calls that were given up while the peer may still work on them: what it may name of them until it
// has answered. Where the fabric discards what is written there, the memory is gone already; where
// it does not, it is kept here, unless it is the caller's.
#pragma once

#include <vector>

#include "rpc/rdma/pending_call.h"

namespace stag::rpc::rdma {

class AbandonedCalls {
 public:
  // Takes over what `call` exposes. What still waits for its revocation stays with the call.
  void add(PendingCall& call, fabric::Connection& connection);
  // The peer has answered the Call with this XID.
  void release(std::uint32_t xid, fabric::Connection& connection);
  // A revocation is complete; false when it was none of these.
  bool on_revoked(std::uint32_t handle);
  // The connection is gone.
  void clear() { calls_.clear(); }
  bool empty() const { return calls_.empty(); }

 private:
  struct Abandoned {
    std::uint32_t xid = 0;
    InlineVector<std::uint32_t, 4> handles{};
    ExposedMemory memory{};  // kept here
    bool revoking = false;   // answered; free when the handles are
  };
  std::vector<Abandoned> calls_;
};

}  // namespace stag::rpc::rdma
