// An Observer that remembers which Calls came whole and which Replies left, or did not.
#pragma once

#include <vector>

#include "rpc/observer.h"

namespace stag::testing {

class FollowingObserver final : public rpc::Observer {
 public:
  explicit FollowingObserver(bool follows = true) { trace_calls(follows); }

  void on_connected(const rpc::Origin&) noexcept override {}
  void on_disconnected(const rpc::Origin&, Reason) noexcept override {}
  void on_call_arrived(const rpc::Origin&, const rpc::ArrivedCall&) noexcept override {}
  void on_call_begun(const rpc::BegunCall&) noexcept override {}
  void on_call_ended(const rpc::EndedCall&) noexcept override {}
  void on_reply_sent(const rpc::Origin&, const rpc::SentReply&) noexcept override {}
  void on_whole_call(const rpc::Origin&, const rpc::WholeCall& call) noexcept override {
    arrived.push_back(call);
  }
  void on_whole_reply(const rpc::Origin&, const rpc::WholeReply& reply) noexcept override {
    answered.push_back(reply);
  }

  std::vector<rpc::WholeCall> arrived;
  std::vector<rpc::WholeReply> answered;
};

}  // namespace stag::testing
