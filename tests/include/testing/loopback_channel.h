// A Channel that hands each Call straight to a Service: client and server in one thread, no
// transport. With `reduce` the eligible items travel beside the messages, as RPC-over-RDMA moves
// them in chunks: the inline parts hold neither their data nor their padding.
#pragma once

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "rpc/channel.h"
#include "rpc/service.h"

namespace stag::testing {

class LoopbackChannel final : public rpc::Channel {
 public:
  LoopbackChannel(Loop& loop, rpc::Service& service, Address peer = {"192.0.2.1", 700})
      : Channel(1), loop_(loop), service_(service), origin_(std::make_shared<rpc::Origin>()) {
    origin_->peer = std::move(peer);
    origin_->transport = rpc::TransportKind::Memory;
    origin_->netid = "memory";
    origin_->loop = &loop;
  }

  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    if (no_memory_for_call != 0 && --no_memory_for_call == 0) throw std::bad_alloc();
    const Result<Ok, Reason> made = message.begin_transmission();
    if (!made) co_return Failure{rpc::CallError::transport(made.error(), where())};
    if (lost) co_return Failure{rpc::CallError::transport(why_lost, where())};
    rpc::IncomingCall incoming;
    incoming.origin = origin_;
    incoming.reply_room = reply_room;
    const std::vector<std::uint32_t> moved = moved_of(message.stream, message.eligible_arguments);
    for (const std::uint32_t index : moved)
      incoming.items.add(message.stream.items()[index].position, message.stream.item_bytes(index));
    incoming.payload = message.stream.without(moved).flatten();
    last_call = incoming.payload;
    last_reply_max = message.reply.payload_max;
    auto outgoing = co_await service_.serve(incoming);
    if (!outgoing) co_return Failure{rpc::CallError::transport(Reason::None, where())};
    co_return reply_of(message, *outgoing);
  }
  Task<void> close() override { co_return; }
  void serve_reverse(rpc::Service&) override {}
  std::uint64_t connections_lost() const override { return lost_connections; }
  Loop& loop() override { return loop_; }
  rpc::TransportKind kind() const override { return origin_->transport; }
  std::string where() const override { return "memory"; }

  // Another transport, another peer: for servers that look at them.
  rpc::Origin& origin() { return *origin_; }

  bool reduce = false;
  bool lost = false;  // every Call
  Reason why_lost = Reason::TimedOut;
  int no_memory_for_call = 0;  // the how manieth from now on; 0: none
  std::uint64_t lost_connections = 0;
  rpc::ReplyRoom reply_room;
  // The inline part of the last Call and how long it expects its Reply to be at most, and the whole
  // stream of the last Reply.
  Buffer last_call;
  std::uint32_t last_reply_max = 0;
  xdr::Stream last_reply;

 private:
  std::vector<std::uint32_t> moved_of(const xdr::Stream& stream,
                                      std::span<const xdr::ItemId> eligible) const {
    std::vector<std::uint32_t> moved;
    for (std::uint32_t i = 0; reduce && i < stream.items().size(); ++i)
      if (std::find(eligible.begin(), eligible.end(), stream.items()[i].id) != eligible.end())
        moved.push_back(i);
    return moved;
  }

  rpc::ReplyMessage reply_of(const rpc::CallMessage& message, const rpc::OutgoingReply& outgoing) {
    last_reply = outgoing.stream;
    rpc::ReplyMessage reply;
    const auto moved = moved_of(outgoing.stream, message.eligible_results);
    for (const std::uint32_t index : moved)
      reply.items.add_written(outgoing.stream.item_bytes(index));
    reply.payload = outgoing.stream.without(moved).flatten();
    return reply;
  }

  Loop& loop_;
  rpc::Service& service_;
  std::shared_ptr<rpc::Origin> origin_;
};

}  // namespace stag::testing
