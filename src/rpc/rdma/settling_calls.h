// Calls that have ended and whose memory is not free yet, the oldest first. They are linked: one
// that ends gets its place here even where memory has run out.
#pragma once

#include "rpc/rdma/pending_call.h"

namespace stag::rpc::rdma {

class SettlingCalls {
 public:
  bool empty() const { return first_ == nullptr; }
  PendingCall* oldest() const { return first_; }
  void push(PendingCall& call) {
    call.next_settling = nullptr;
    (first_ == nullptr ? first_ : last_->next_settling) = &call;
    last_ = &call;
  }
  // Null when there is none.
  PendingCall* pop() {
    PendingCall* const call = first_;
    if (call != nullptr) first_ = call->next_settling;
    return call;
  }
  void remove(PendingCall& call) {
    PendingCall* before = nullptr;
    for (PendingCall* at = first_; at != &call; at = at->next_settling) before = at;
    (before == nullptr ? first_ : before->next_settling) = call.next_settling;
    if (last_ == &call) last_ = before;
  }
  // The Call whose revocation of `handle` is complete; null when it was none of these.
  PendingCall* on_revoked(std::uint32_t handle) {
    PendingCall* call = first_;
    while (call != nullptr && !call->registrations().on_revoked(handle)) call = call->next_settling;
    return call;
  }

 private:
  PendingCall* first_ = nullptr;
  PendingCall* last_ = nullptr;
};

}  // namespace stag::rpc::rdma
