#include "rpc/proxy_channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/completion.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "testing/direct_channel.h"
#include "testing/manual_loop.h"
#include "testing/store_service.h"

namespace stag::rpc {
namespace {

using namespace testing::store;
using namespace std::chrono_literals;
using testing::ManualLoop;

// What the test knows of a LendingChannel, and has it do.
struct Far {
  ManualLoop loop;
  State state;
  Server server;
  bool holds = false;  // calls, until they are cancelled or the channel is closed
  int begun = 0;
  std::uint32_t xid = 0;
  std::optional<TimePoint> deadline;
  bool cancellable = false;
  bool connected = true;
  std::uint64_t lost = 0;
  int unclosed = 0;

  Far() { server.add(make_program(state)); }
};

// Lends the Reply as a transport may: what was lent is overwritten when the caller has suspended.
class LendingChannel final : public Channel {
 public:
  explicit LendingChannel(Far& far)
      : Channel(7000), far_(far), direct_(far.loop, far.server, true) {
    ++far_.unclosed;
  }
  ~LendingChannel() override { --far_.unclosed; }
  Task<Result<ReplyMessage, CallError>> call(CallMessage& message) override {
    ++far_.begun;
    far_.xid = message.xid;
    far_.deadline = message.deadline;
    far_.cancellable = message.cancel.has_source();
    ++active_;
    Result<ReplyMessage, CallError> result = Failure{CallError::transport(Reason::None, where())};
    if (far_.holds)
      result = co_await held(message);
    else
      result = co_await direct_.call(message);
    --active_;
    if (result) lend(*result, message);
    co_return result;
  }
  Task<void> close() override {
    while (!waiting_.empty()) end(*waiting_.front(), Reason::Shutdown);
    while (active_ > 0) co_await resume_on(far_.loop);
  }
  void serve_reverse(Service&) override {}
  std::optional<ChannelLimits> limits() const override {
    if (!far_.connected) return std::nullopt;
    return ChannelLimits{.calls = static_cast<std::uint32_t>(10 + far_.begun)};
  }
  std::uint64_t connections_lost() const override { return far_.lost; }
  Loop& loop() override { return far_.loop; }
  TransportKind kind() const override { return TransportKind::Udp; }
  std::string where() const override { return "far away"; }

 private:
  using End = Completion<Reason>;
  void end(End& which, Reason reason) {
    std::erase(waiting_, &which);
    which.complete(reason);
  }
  Task<Result<ReplyMessage, CallError>> held(CallMessage& message) {
    End over;
    waiting_.push_back(&over);
    const CancelCallback cancelled(message.cancel, [this, &over] { end(over, Reason::Cancelled); });
    const Reason reason = co_await over;
    co_return Failure{CallError::transport(reason, where())};
  }
  void lend(ReplyMessage& reply, const CallMessage& message) {
    payload_ = bytes_of(Rope(reply.payload));
    reply.payload = Buffer::borrow(payload_);
    ReducedItems lent;
    for (std::size_t i = 0; i < reply.items.size(); ++i) {
      const Rope& bytes = reply.items.bytes(i);
      const bool placed = !message.result_buffers.empty();
      item_ = bytes_of(bytes);
      if (placed) bytes.copy_to(message.result_buffers.front().memory);
      lent.add_written(
          Rope::borrow(placed ? Bytes(message.result_buffers.front().memory).first(bytes.size())
                              : Bytes(item_)));
    }
    lent.allow(message.eligible_results);
    reply.items = std::move(lent);
    far_.loop.post([this] {
      std::ranges::fill(payload_, std::byte{0xee});
      std::ranges::fill(item_, std::byte{0xee});
    });
  }
  static std::vector<std::byte> bytes_of(const Rope& rope) {
    std::vector<std::byte> bytes(rope.size());
    rope.copy_to(bytes);
    return bytes;
  }

  Far& far_;
  testing::DirectChannel direct_;
  std::vector<End*> waiting_;
  int active_ = 0;
  std::vector<std::byte> payload_, item_;
};

class LendingConnector final : public Connector {
 public:
  explicit LendingConnector(Far& far) : far_(far) {}
  Loop& loop() override { return far_.loop; }
  Task<Result<std::unique_ptr<Channel>, CallError>> connect(Address server,
                                                            CancelToken cancel) override {
    while (server.host == "silent" && !cancel.cancelled()) co_await resume_on(far_.loop);
    if (cancel.cancelled()) co_return Failure{CallError::transport(Reason::Cancelled, "silent")};
    co_return std::unique_ptr<Channel>(std::make_unique<LendingChannel>(far_));
  }

 private:
  Far& far_;
};

class ProxyChannelTest : public ::testing::Test {
 protected:
  ProxyChannelTest() {
    auto connected = run(connector_.connect({"server", 1}, {}));
    channel_ = *std::move(*connected);
    client_.emplace(*channel_, kBinding);
  }
  ~ProxyChannelTest() override {
    run(closed());
    channel_.reset();
    EXPECT_EQ(far_.unclosed, 0);
  }
  Task<Ok> closed() {
    co_await channel_->close();
    co_return Ok{};
  }
  using Ended = std::optional<CallResult<std::uint32_t>>;
  Task<Ok> closed_behind(const Ended& call) {
    co_await channel_->close();
    EXPECT_TRUE(call.has_value());
    co_return Ok{};
  }
  void turn() {
    near_.drain();
    far_.loop.drain();
  }
  template <class T>
  std::optional<T> run(Task<T> task) {
    std::optional<T> result;
    detach(store(std::move(task), result));
    for (int i = 0; i < 100 && !result; ++i) turn();
    return result;
  }
  template <class T>
  static Task<void> store(Task<T> task, std::optional<T>& to) {
    T value = co_await std::move(task);
    to.emplace(std::move(value));
  }
  // Begins a call of INCREMENT that is held.
  std::unique_ptr<std::optional<CallResult<std::uint32_t>>> held_call(CancelToken cancel = {}) {
    far_.holds = true;
    auto result = std::make_unique<std::optional<CallResult<std::uint32_t>>>();
    CallOptions options;
    options.cancel = cancel;
    detach(held_increment(*client_, options, *result));
    return result;
  }
  static Task<void> held_increment(Client& client, CallOptions options,
                                   std::optional<CallResult<std::uint32_t>>& to) {
    to.emplace(co_await client.call<INCREMENT>(1, options));
  }

  ManualLoop near_;
  Far far_;
  LendingConnector far_connector_{far_};
  ProxyConnector connector_{near_, far_connector_};
  std::unique_ptr<Channel> channel_;
  std::optional<Client> client_;
};

TEST_F(ProxyChannelTest, calls_by_the_channel_of_another_loop_under_its_XIDs) {
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto result = run(client_->call<INCREMENT>(41));
    ASSERT_TRUE(result && result->ok());
    EXPECT_EQ(**result, 42u);
    EXPECT_EQ(far_.xid, 7000 + i);
  }
  EXPECT_EQ(channel_->where(), "far away");
  EXPECT_EQ(channel_->kind(), TransportKind::Udp);
  EXPECT_EQ(&channel_->loop(), &near_);
}

TEST_F(ProxyChannelTest, keeps_what_the_transport_lends_of_a_Reply) {
  const Rope data = pattern(10'000, 3);
  const PutArgs put{.slot = 1, .data = data, .checksum = checksum(data)};
  ASSERT_TRUE(run(client_->call<PUT>(put))->ok());
  const auto back = run(client_->call<GET>(GetArgs{.slot = 1, .count = 10'000}));
  ASSERT_TRUE(back && back->ok());
  EXPECT_EQ((*back)->data, data);
}

TEST_F(ProxyChannelTest, copies_nothing_that_lies_in_ResultBuffers) {
  const Rope data = pattern(10'000, 3);
  const PutArgs put{.slot = 1, .data = data, .checksum = checksum(data)};
  ASSERT_TRUE(run(client_->call<PUT>(put))->ok());
  std::vector<std::byte> memory(10'000);
  const std::array<ResultBuffer, 1> buffers{ResultBuffer{item::get_data, memory}};
  CallOptions options;
  options.result_buffers = buffers;
  const auto back = run(client_->call<GET>(GetArgs{.slot = 1, .count = 10'000}, options));
  ASSERT_TRUE(back && back->ok());
  ASSERT_EQ((*back)->data.pieces().size(), 1u);
  EXPECT_EQ((*back)->data.pieces()[0].data(), memory.data());
  EXPECT_EQ((*back)->data, data);
}

TEST_F(ProxyChannelTest, gives_far_as_long_as_is_left_by_the_clock_of_near) {
  far_.loop.pass(50h);
  CallOptions options;
  options.timeout = 3s;
  ASSERT_TRUE(run(client_->call<INCREMENT>(1, options))->ok());
  ASSERT_TRUE(far_.deadline);
  EXPECT_EQ(*far_.deadline, far_.loop.now() + 3s);
}

TEST_F(ProxyChannelTest, gives_the_message_back_as_it_was) {
  far_.loop.pass(50h);
  CancelSource source;
  CallMessage message;
  message.xid = channel_->next_xid();
  xdr::Encoder encoder;
  for (int word = 0; word < 6; ++word) encoder.u32(0);
  message.stream = std::move(encoder).finish();
  message.deadline = near_.now() + 5s;
  message.cancel = source;
  ASSERT_TRUE(run(channel_->call(message)));
  EXPECT_TRUE(far_.cancellable);
  EXPECT_EQ(*message.deadline, near_.now() + 5s);
  source.cancel();
  EXPECT_TRUE(message.cancel.cancelled());
}

TEST_F(ProxyChannelTest, has_far_know_that_a_call_cannot_be_cancelled) {
  CallOptions options;
  options.timeout = 0s;
  ASSERT_TRUE(run(client_->call<INCREMENT>(1, options))->ok());
  EXPECT_FALSE(far_.cancellable);
  EXPECT_FALSE(far_.deadline);
}

TEST_F(ProxyChannelTest, ends_a_cancelled_call_when_far_has_ended_it) {
  CancelSource source;
  const auto result = held_call(source);
  turn();
  EXPECT_EQ(far_.begun, 1);
  source.cancel();
  near_.drain();
  EXPECT_FALSE(result->has_value());
  turn();
  turn();
  ASSERT_TRUE(result->has_value());
  EXPECT_EQ((*result)->error().reason, Reason::Cancelled);
  EXPECT_EQ((*result)->error().where, "far away");
}

TEST_F(ProxyChannelTest, refuses_calls_that_a_mechanism_signs) {
  struct Signer final : CallSigner {
    Result<Ok, Reason> sign(CallMessage&) override { return Ok{}; }
  } signer;
  CallMessage message;
  message.signer = &signer;
  const auto result = run(channel_->call(message));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->error().reason, Reason::RpcProtectionFailed);
  EXPECT_EQ(far_.begun, 0);
}

TEST_F(ProxyChannelTest, knows_the_limits_that_far_had_when_the_Reply_came_and_losses_at_once) {
  ASSERT_TRUE(channel_->limits());
  EXPECT_EQ(channel_->limits()->calls, 10u);
  far_.lost = 3;
  EXPECT_EQ(channel_->connections_lost(), 3u);
  ASSERT_TRUE(run(client_->call<INCREMENT>(1))->ok());
  EXPECT_EQ(channel_->connections_lost(), 3u);
  EXPECT_EQ(channel_->limits()->calls, 11u);
}

TEST_F(ProxyChannelTest, has_no_limits_from_the_call_on_that_found_no_connection) {
  far_.connected = false;
  EXPECT_TRUE(channel_->limits());
  CancelSource source;
  const auto result = held_call(source);
  turn();
  EXPECT_FALSE(channel_->limits());
  source.cancel();
  turn();
  turn();
  ASSERT_TRUE(result->has_value());
  EXPECT_FALSE(channel_->limits());
  far_.connected = true;
  far_.holds = false;
  ASSERT_TRUE(run(client_->call<INCREMENT>(1))->ok());
  EXPECT_TRUE(channel_->limits());
}

TEST_F(ProxyChannelTest, ends_calls_in_progress_when_it_is_closed) {
  CancelSource source;
  const auto one = held_call(source);
  const auto two = held_call();
  turn();
  ASSERT_EQ(far_.begun, 2);
  const auto late = held_call();
  std::optional<Ok> done;
  detach(store(closed_behind(*one), done));
  source.cancel();  // on its way behind the end
  for (int i = 0; i < 10; ++i) turn();
  ASSERT_TRUE(done);
  for (const auto* result : {&one, &two, &late}) {
    ASSERT_TRUE((*result)->has_value());
    EXPECT_EQ((**result)->error().reason, Reason::Shutdown);
  }
  EXPECT_EQ(run(client_->call<INCREMENT>(1))->error().reason, Reason::Shutdown);
  EXPECT_EQ(far_.unclosed, 0) << "destroyed on far, too";
}

TEST_F(ProxyChannelTest, cancels_connecting) {
  CancelSource source;
  std::optional<Result<std::unique_ptr<Channel>, CallError>> result;
  detach(store(connector_.connect({"silent", 1}, source), result));
  near_.drain();
  source.cancel();
  far_.loop.drain();
  near_.drain();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->error().reason, Reason::Cancelled);
}

}  // namespace
}  // namespace stag::rpc
