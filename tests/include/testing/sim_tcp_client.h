// A server's connection over TCP whose client, network and time are the test's.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>

#include "base/completion.h"
#include "base/task_group.h"
#include "fabric/sim/sim_loop.h"
#include "oncrpc/message.h"
#include "oncrpc/record.h"
#include "rpc/tcp/connection.h"
#include "testing/sim_wire.h"
#include "testing/store_program.h"

namespace stag::testing {

// Holds every Call until it is let go, then answers with `body`.
class Answering final : public rpc::Service {
 public:
  Task<std::optional<rpc::OutgoingReply>> serve(rpc::IncomingCall& call) override {
    ++started;
    origin = call.origin;
    if (hold) {
      Completion<Ok> wait;
      waiting.push_back(&wait);
      co_await wait;
    }
    ++answered;
    xdr::Encoder encoder;
    oncrpc::ReplyHeader header;
    header.xid = load_be<std::uint32_t>(call.payload.data());
    oncrpc::encode(encoder, header);
    encoder.fixed_opaque(body.bytes());
    rpc::OutgoingReply reply;
    reply.stream = std::move(encoder).finish();
    co_return reply;
  }
  bool let_one_go() {
    if (waiting.empty()) return false;
    Completion<Ok>* next = waiting.front();
    waiting.pop_front();
    next->complete(Ok{});
    return true;
  }
  void let_go() {
    while (let_one_go()) {
    }
  }
  std::optional<std::uint64_t> reply_max(const rpc::Origin&,
                                         const Buffer&) const noexcept override {
    return reply_bound;
  }
  rpc::Observer* observer() const noexcept override { return told; }
  std::size_t reply_size() const { return 4 + 24 + body.size(); }

  rpc::Observer* told = nullptr;
  bool hold = true;
  std::optional<std::uint64_t> reply_bound = 0;  // bytes of a Reply
  Buffer body = store::pattern(4096, 1).flatten();
  std::size_t started = 0;
  std::size_t answered = 0;
  std::deque<Completion<Ok>*> waiting;
  std::shared_ptr<const rpc::Origin> origin;
};

class SimClient : private rpc::tcp::ServerConnection::Owner {
 public:
  static constexpr std::size_t kLessThanAReply = 1000;
  static constexpr std::uint32_t kFirstReverseXid = 7000;

  // Without a budget it gets one of its own.
  explicit SimClient(std::size_t room, rpc::tcp::ServerOptions options = small(),
                     std::shared_ptr<rpc::tcp::ByteBudget> shared = nullptr,
                     rpc::Observer* observer = nullptr)
      : wire(loop, room), budget(std::move(shared)) {
    if (budget == nullptr) budget = std::make_shared<rpc::tcp::ByteBudget>(options.max_bytes_all);
    service.told = observer;
    connection_ = std::make_unique<rpc::tcp::ServerConnection>(
        static_cast<rpc::tcp::ServerConnection::Owner&>(*this), wire.end(), nullptr, service,
        options, budget, tasks, kFirstReverseXid);
    settle();
  }
  virtual ~SimClient() {
    if (connection_ != nullptr) connection_->close(Reason::Shutdown);
    service.let_go();
    loop.run_for(std::chrono::seconds(1));
    EXPECT_EQ(connection_, nullptr);
  }
  static rpc::tcp::ServerOptions small() {
    rpc::tcp::ServerOptions options;
    options.stream.queued = kLessThanAReply;
    return options;
  }
  void call(std::uint32_t count = 1) {
    Rope calls;
    for (; count > 0; --count) calls.append(framed_call(++calls_));
    wire.arrive(calls);
  }
  static Rope framed_call(std::uint32_t xid, std::uint32_t arguments = 0) {
    oncrpc::CallHeader header;
    header.xid = xid;
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header);
    encoder.fixed_opaque(store::pattern(arguments, 1).flatten().bytes());
    const Rope message = std::move(encoder).finish().rope();
    Rope record = Rope::copy_of(oncrpc::record_mark(static_cast<std::uint32_t>(message.size())));
    record.append(message);
    return record;
  }
  std::uint32_t calls() const { return calls_; }
  bool open() const { return connection_ != nullptr; }
  void finish() { connection_->finish(); }
  void close() { connection_->close(Reason::Shutdown); }
  // What is ready runs; no time passes.
  void settle() { loop.run_for(Duration::zero()); }

  fabric::SimLoop loop;
  Answering service;
  TaskGroup tasks;
  SimWire wire;
  std::shared_ptr<rpc::tcp::ByteBudget> budget;

 private:
  void on_connection_closed(rpc::tcp::ServerConnection&) override { connection_.reset(); }
  std::unique_ptr<rpc::tcp::ServerConnection> connection_;
  std::uint32_t calls_ = 0;
};

}  // namespace stag::testing
