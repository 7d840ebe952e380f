// Calls from the accepting end to the connecting one, on the connection that is there (RFC 8167).
// Nothing is made again: when the connection is gone its calls fail, and the client comes back on a
// new one if it wants.
#pragma once

#include <memory>

#include "rpc/channel.h"
#include "rpc/rdma/link.h"

namespace stag::rpc::rdma {

class ReverseChannel final : public rpc::Channel {
 public:
  ReverseChannel(const std::shared_ptr<Link>& link, std::uint32_t xid_seed);

  Task<Result<ReplyMessage, CallError>> call(CallMessage& message) override;
  // Ends nothing: the connection is the forward direction's.
  Task<void> close() override;
  // The forward direction's server is there already.
  void serve_reverse(Service& service) override;
  std::optional<ChannelLimits> limits() const override;
  Loop& loop() override { return loop_; }
  TransportKind kind() const override { return TransportKind::Rdma; }
  std::string where() const override { return where_; }

 private:
  std::weak_ptr<Link> link_;
  Loop& loop_;
  const std::string where_;
};

}  // namespace stag::rpc::rdma
