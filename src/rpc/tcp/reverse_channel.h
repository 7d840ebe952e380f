// Calls to the client on its own connection. It does not come back when the connection is lost.
//
// They go ahead of Replies: a client on a slow link that reads much at a time would be asked to
// give a delegation back when the time for that is over.
#pragma once

#include <memory>
#include <string>

#include "rpc/channel.h"
#include "rpc/tcp/requester.h"
#include "rpc/tcp/stream.h"

namespace stag::rpc::tcp {

class ReverseChannel final : public Channel, private Requester::Owner {
 public:
  ReverseChannel(std::shared_ptr<RecordStream> stream, std::uint32_t xid_seed);

  // A record of type REPLY.
  void on_reply(Buffer record) { requester_.on_reply(std::move(record)); }
  bool awaits_reply() const { return requester_.waiting() > 0; }
  // Ends every call in progress, and each that comes later.
  void on_stream_closed();

  Task<Result<ReplyMessage, CallError>> call(CallMessage& message) override {
    return requester_.call(message);
  }
  Task<void> close() override;
  void serve_reverse(Service&) override { trace(Reason::RpcNoReverseDirection, where()); }
  std::optional<ChannelLimits> limits() const override {
    if (stream_ == nullptr) return std::nullopt;
    return ChannelLimits{.call_max = oncrpc::kLastFragment - 1, .reply_max = stream_->record_max()};
  }
  Loop& loop() override { return loop_; }
  TransportKind kind() const override { return TransportKind::Tcp; }
  std::string where() const override { return requester_.where(); }

 private:
  void on_stream_wanted() override {}
  // A client that does not answer may be slow, and calls on the same connection itself.
  void on_call_sent(const xdr::Stream&) noexcept override { stream_->on_reply_awaited(); }

  Loop& loop_;
  std::shared_ptr<RecordStream> stream_;
  Requester requester_;
};

}  // namespace stag::rpc::tcp
