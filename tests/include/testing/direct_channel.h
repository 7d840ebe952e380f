// A Channel without a transport: hands each Call to a Service on the same loop. With `reduce` set
// it moves eligible items apart from the message the way chunks do, so that everything above a
// transport meets reduced and unreduced messages alike.
#pragma once

#include "rpc/channel.h"
#include "rpc/service.h"

namespace stag::testing {

class DirectChannel final : public rpc::Channel {
 public:
  DirectChannel(Loop& loop, rpc::Service& service, bool reduce = false)
      : Channel(1), loop_(loop), service_(service), reduce_(reduce) {
    auto origin = std::make_shared<rpc::Origin>();
    origin->peer = {"192.0.2.7", 700};
    origin->local = {"192.0.2.1", 2049};
    origin->transport = rpc::TransportKind::Memory;
    origin->loop = &loop;
    origin_ = std::move(origin);
  }

  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    const Result<Ok, Reason> made = message.begin_transmission();
    if (!made) co_return Failure{rpc::CallError::transport(made.error(), where())};
    last_bound = message.reply;
    last_call = message.stream;
    rpc::IncomingCall incoming;
    incoming.origin = origin_;
    incoming.reply_room = reply_room;
    const Moved moved = split(message.stream, message.eligible_arguments);
    incoming.payload = moved.payload;
    for (std::uint32_t index : moved.items)
      incoming.items.add(message.stream.items()[index].position, message.stream.item_bytes(index));
    std::optional<rpc::OutgoingReply> reply = co_await service_.serve(incoming);
    if (!reply) co_return Failure{rpc::CallError::transport(Reason::TimedOut, where())};
    last_reply = reply->stream;
    rpc::ReplyMessage answer;
    const Moved results = split(reply->stream, message.eligible_results);
    answer.payload = results.payload;
    answer.items.allow(message.eligible_results);
    for (std::uint32_t index : results.items)
      answer.items.add_written(reply->stream.item_bytes(index));
    co_return answer;
  }
  Task<void> close() override { co_return; }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return loop_; }
  rpc::TransportKind kind() const override { return rpc::TransportKind::Memory; }
  std::string where() const override { return "direct"; }

  // Calls come on this connection from now on.
  void come_on(std::shared_ptr<rpc::Connection> connection) {
    auto origin = std::make_shared<rpc::Origin>(*origin_);
    origin->connection = std::move(connection);
    origin_ = std::move(origin);
  }

  // The same of another host.
  void come_from(std::string host) {
    auto origin = std::make_shared<rpc::Origin>(*origin_);
    origin->peer.host = std::move(host);
    origin_ = std::move(origin);
  }

  rpc::ReplyRoom reply_room;
  rpc::ReplyBound last_bound;
  xdr::Stream last_call;
  xdr::Stream last_reply;

 private:
  struct Moved {
    Buffer payload;
    InlineVector<std::uint32_t, 2> items;
  };
  Moved split(const xdr::Stream& stream, std::span<const xdr::ItemId> eligible) const {
    Moved moved;
    for (std::uint32_t i = 0; reduce_ && i < stream.items().size(); ++i)
      for (xdr::ItemId id : eligible)
        if (stream.items()[i].id == id) moved.items.push_back(i);
    moved.payload =
        Buffer::copy_of(stream.without({moved.items.data(), moved.items.size()}).flatten().bytes());
    return moved;
  }

  Loop& loop_;
  rpc::Service& service_;
  bool reduce_;
  std::shared_ptr<const rpc::Origin> origin_;
};

}  // namespace stag::testing
