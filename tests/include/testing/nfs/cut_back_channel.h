// The reverse direction of a connection, which one of its calls ends (nfs4_client_world.h).
#pragma once

#include <functional>

#include "testing/nfs/nfs4_client_world.h"

namespace stag::testing {

class CutBackChannel final : public rpc::Channel {
 public:
  struct Plan {
    Accident accident = Accident::None;
    int at = 0;  // the call that it happens to, from 1
    int calls = 0;
    bool lost = false;  // every call
    std::function<void()> on_cut;
  };
  CutBackChannel(Loop& loop, rpc::Service& service, Plan& plan)
      : Channel(1), loop_(loop), inner_(loop, service), plan_(plan) {}
  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    const bool now = ++plan_.calls == plan_.at;
    if (plan_.lost) co_return Failure{rpc::CallError::transport(Reason::TimedOut, where())};
    if (!now || plan_.accident == Accident::None) co_return co_await inner_.call(message);
    if (plan_.accident == Accident::CutAfter) static_cast<void>(co_await inner_.call(message));
    if (plan_.on_cut) plan_.on_cut();
    co_return Failure{rpc::CallError::transport(Reason::RpcConnectionLost, where())};
  }
  Task<void> close() override { co_return; }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return loop_; }
  rpc::TransportKind kind() const override { return rpc::TransportKind::Memory; }
  std::string where() const override { return "memory"; }

 private:
  Loop& loop_;
  LoopbackChannel inner_;
  Plan& plan_;
};

}  // namespace stag::testing
