// Ordinary Calls must cost no heap allocation in the core once it is warm.

#include <gtest/gtest.h>

#include "rpcrdma/connection.h"
#include "testing/counted_new.h"

namespace stag::rpcrdma {
namespace {

// Carries messages to the other end and answers every Call, without any memory of its own.
class Carrier final : public Sink {
 public:
  Carrier(const Settings& settings) : core(settings, *this) {}

  void post_receives(std::uint32_t) override {}
  void drop(Reason) override {}
  void send_error(Buffer, Reason) override {}
  void close(Reason) override {}
  Result<ExposedChunks, Reason> expose(OutgoingCall& call) override {
    ExposedChunks exposed;
    if (!call.plan().reduced.empty())
      exposed.arguments.push_back({{1, call.shape.items[0].length, 0}});
    for (std::uint32_t length : call.plan().write_chunks)
      exposed.results.push_back({{2, length, 0}});
    return exposed;
  }
  void send_call(OutgoingCall& call, Bytes header) override {
    carry(header, call.xid, CALL, call.plan().stream_length);
  }
  void deliver_reply(OutgoingCall&, const ReplyArrival&) override { ++replies; }
  void fail_call(OutgoingCall&, const CallFailure&) override {}
  std::unique_ptr<IncomingCall> make_call() override { return std::make_unique<IncomingCall>(); }
  void defer_call(IncomingCall&, Bytes) override {}
  bool start_reads(IncomingCall&, std::span<const ArrivedItem>) override { return true; }
  void read(IncomingCall& call, std::uint32_t, std::uint32_t, const Segment&) override {
    reading = &call;
  }
  Bytes long_call(IncomingCall&) override { return {}; }
  void deliver_call(IncomingCall& call, const CallArrival& arrival) override {
    xid = arrival.xid;
    core.on_reply(call, reply);
  }
  void send_reply(IncomingCall& call, Bytes header, const ReplyPlan& plan,
                  std::optional<std::uint32_t>) override {
    carry(header, xid, REPLY, plan.stream_length);
    writes += static_cast<int>(plan.writes.size());
    sent = &call;
  }
  void forget_call(IncomingCall&, Reason) override {}

  void carry(Bytes header, std::uint32_t own_xid, std::uint32_t direction, std::uint32_t length) {
    std::copy(header.begin(), header.end(), message.begin());
    store_be(message.data() + header.size(), own_xid);
    store_be(message.data() + header.size() + 4, direction);
    size = header.size() + length;
  }
  Bytes outgoing() const { return Bytes(message).first(size); }

  std::array<std::byte, 4096> message{};
  std::size_t size = 0;
  ReplyShape reply;
  std::uint32_t xid = 0;
  IncomingCall *sent = nullptr, *reading = nullptr;
  int replies = 0, writes = 0;
  Connection core;
};

// Allocations of `rounds` round trips of a Call with these shapes, after a few to warm up.
std::size_t count(const CallShape& shape, const ReplyBound& bound, const ReplyShape& reply) {
  Settings settings;
  settings.credits_granted = 8;
  Carrier client(settings), server(settings);
  server.reply = reply;
  OutgoingCall call;
  call.shape = shape;
  call.bound = bound;
  std::size_t before = 0;
  for (int i = 0; i < 1000; ++i) {
    if (i == 10) before = testing::heap_allocations;
    call.xid = static_cast<std::uint32_t>(i);
    client.core.on_call(call);
    server.core.on_receive(client.outgoing(), std::nullopt);
    if (!shape.items.empty()) server.core.on_read_done(*server.reading, Reason::None);
    client.core.on_receive(server.outgoing(), std::nullopt);
    server.core.on_sent(*server.sent);
  }
  const std::size_t after = testing::heap_allocations;
  EXPECT_EQ(client.replies, 1000);
  EXPECT_EQ(server.writes, reply.items.empty() ? 0 : 1000);
  client.core.on_disconnect(Reason::Shutdown);
  server.core.on_disconnect(Reason::Shutdown);
  return after - before;
}

TEST(Allocation, is_not_needed_for_a_NULL_Call) {
  EXPECT_EQ(count({.length = 40, .segments = 1, .items = {}}, {}, {.length = 24, .items = {}}), 0u);
}

TEST(Allocation, is_not_needed_for_a_WRITE_with_a_Read_chunk) {
  Item data;
  data.position = 112;
  data.length = 65536;
  EXPECT_EQ(count({.length = 112 + 65536, .segments = 1, .items = {data}}, {},
                  {.length = 160, .items = {}}),
            0u);
}

TEST(Allocation, is_not_needed_for_a_READ_with_a_Write_chunk) {
  ReplyBound bound;
  bound.payload_max = 128;
  ResultBound result;
  result.max_length = 65536;
  bound.results.push_back(result);
  Item data;
  data.position = 128;
  data.length = 65536;
  EXPECT_EQ(count({.length = 112, .segments = 1, .items = {}}, bound,
                  {.length = 128 + 65536, .items = {data}}),
            0u);
}

}  // namespace
}  // namespace stag::rpcrdma
