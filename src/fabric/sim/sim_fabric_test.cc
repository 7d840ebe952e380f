#include "fabric/sim/sim_fabric.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/fabric_contract/harness.h"
#include "testing/sim_harness.h"

namespace stag::testing {
namespace {

using fabric::Faults;
using fabric::kNoToken;
using fabric::Revocation;
using fabric::SimOptions;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class SimFabricTest : public FabricTest {
 protected:
  SimFabricTest() : FabricTest(std::make_unique<SimHarness>()) {}
  void use(const SimOptions& sim_options) { harness = std::make_unique<SimHarness>(sim_options); }
  fabric::SimFabric& sim() { return static_cast<SimHarness&>(*harness).sim(); }
};

// A conversation that takes every kind of step: both sides speak, memory is written and read, a
// handle is invalidated, the connection is closed. What it does depends on nothing but the fabric.
class Conversation : public FabricTest {
 public:
  Conversation(const SimOptions& sim_options, std::optional<std::uint64_t> shuffle)
      : FabricTest(std::make_unique<SimHarness>(sim_options, shuffle)) {
    options.timeout = seconds(1);
  }
  void TestBody() override {}
  fabric::SimFabric& sim() { return static_cast<SimHarness&>(*harness).sim(); }

  void hold() {
    listen();
    auto outcome = connect(listener->local_address());
    connected = outcome && outcome->ok();
    settle();
    if (!acceptor.arrived.empty()) {
      passive.take(std::move(acceptor.arrived.front()));
      passive.start();
    }
    if (connected) {
      active.take(std::move(**outcome));
      active.start();
      talk();
    }
    settle();
  }

  using FabricTest::active;
  using FabricTest::loop;
  using FabricTest::passive;
  bool connected = false;
  const std::vector<std::byte> data = pattern(100'000, 1);
  std::vector<std::byte> written = std::vector<std::byte>(100'000);
  std::vector<std::byte> fetched = std::vector<std::byte>(100'000);
  bool reply_came = false;

 private:
  void talk() {
    const auto source = active->expose_source(data);
    const auto sink = active->expose_sink(written);
    if (!source || !sink) return active->close(Reason::Shutdown);
    passive.when_received = [this, source = *source, sink = *sink] {
      passive->read(source, fetched, 1, 1);
      passive->write(Rope::borrow(data), sink, 2, 2);
      passive->send(Rope::borrow(bytes_of("reply")), sink.handle, 2, 3);
    };
    active.when_received = [this] {
      reply_came = true;
      EXPECT_EQ(written, data) << "a Send overtook its Write";
      active->close(Reason::Shutdown);
    };
    active->send(Rope::borrow(bytes_of("call")), std::nullopt, 0, 1);
  }
};

std::vector<std::string> story(std::uint64_t seed) {
  SimOptions options;
  options.seed = seed;
  options.faults.max_delay = milliseconds(5);
  options.faults.reorder_flows = true;
  options.faults.kill_permille = 100;
  Conversation conversation(options, seed);
  conversation.hold();
  std::vector<std::string> told = conversation.active.log;
  for (const std::string& event : conversation.passive.log) told.push_back("passive " + event);
  told.push_back(std::to_string(conversation.loop().now().time_since_epoch().count()));
  return told;
}

TEST(SimFabric, a_run_follows_from_its_seed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(story(seed), story(seed));
  EXPECT_NE(story(1), story(2));
}

std::uint64_t steps_without_faults() {
  Conversation conversation({}, std::nullopt);
  conversation.hold();
  EXPECT_TRUE(conversation.reply_came);
  EXPECT_EQ(conversation.active.disconnected, Reason::Shutdown);
  EXPECT_EQ(conversation.passive.outcome(1), Reason::None);
  return conversation.sim().steps();
}

// Whatever step a connection dies at, each operation ends once, and what is reported done is done.
TEST(SimFabric, a_connection_can_die_at_every_step_and_everything_posted_still_ends) {
  const std::uint64_t steps = steps_without_faults();
  ASSERT_GE(steps, 9u);
  int replies = 0;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    SCOPED_TRACE("killed at step " + std::to_string(step));
    SimOptions options;
    options.faults.kill_at_step = step;
    Conversation conversation(options, std::nullopt);
    conversation.hold();
    const Side& active = conversation.active;
    const Side& passive = conversation.passive;
    replies += conversation.reply_came;
    EXPECT_EQ(conversation.connected, step > 2);
    EXPECT_EQ(passive.connected(), step > 1);
    EXPECT_TRUE(!active.connected() || active.disconnected);
    EXPECT_TRUE(!passive.connected() || passive.disconnected);
    EXPECT_EQ(active.outcomes.size(), conversation.connected ? 1u : 0u);
    EXPECT_EQ(passive.outcomes.size(), passive.messages.empty() ? 0u : 3u);
    if (passive.outcome(1) == Reason::None) {
      EXPECT_EQ(conversation.fetched, conversation.data);
    }
    if (passive.outcome(2) == Reason::None) {
      EXPECT_EQ(conversation.written, conversation.data);
    }
  }
  EXPECT_GT(replies, 0);
  EXPECT_LT(replies, static_cast<int>(steps));
}

TEST_F(SimFabricTest, a_lost_acknowledgement_leaves_the_message_with_the_peer) {
  join_and_greet();
  settle();
  Faults faults;
  faults.lose_ack = 1;
  sim().set_faults(faults);
  active->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, 1);
  ASSERT_TRUE(ended());
  EXPECT_EQ(passive.messages.size(), 1u);
  EXPECT_EQ(active.outcome(1), Reason::ConnectionLost);
  EXPECT_EQ(active.disconnected, Reason::ConnectionLost);
}

TEST_F(SimFabricTest, the_nth_operation_of_a_kind_fails_and_ends_its_connection) {
  for (const fabric::Token failing : {1, 2, 3}) {
    active = Side();
    passive = Side();
    sim().set_faults({});
    join_and_greet();
    Faults faults;
    (failing == 1 ? faults.fail_send : failing == 2 ? faults.fail_write : faults.fail_read) = 2;
    sim().set_faults(faults);
    std::vector<std::byte> memory(8), local(8);
    const auto sink = passive->expose_sink(memory);
    const auto source = passive->expose_source(memory);
    for (fabric::Token round : {0, 10}) {
      active->send(Rope::borrow(local), std::nullopt, 1, round + 1);
      settle();
      active->write(Rope::borrow(local), *sink, 1, round + 2);
      settle();
      active->read(*source, local, 1, round + 3);
      settle();
    }
    ASSERT_TRUE(ended());
    for (const fabric::Token token : {1, 2, 3}) EXPECT_EQ(active.outcome(token), Reason::None);
    for (const fabric::Token token : {11, 12, 13})
      EXPECT_EQ(active.outcome(token) == Reason::None, token < 10 + failing) << token;
    active.destroy();
    passive.destroy();
  }
}

TEST_F(SimFabricTest, registrations_fail_on_demand_and_at_the_limit) {
  SimOptions limited;
  limited.max_registrations = 3;
  limited.faults.fail_expose = 2;
  use(limited);
  join();
  std::vector<std::byte> memory(8);
  EXPECT_TRUE(active->expose_sink(memory).ok());
  EXPECT_FALSE(active->expose_sink(memory).ok());
  EXPECT_TRUE(active->expose_source(memory).ok());
  const auto third = active->expose_sink(memory);
  ASSERT_TRUE(third.ok());
  const auto fourth = active->expose_sink(memory);
  ASSERT_FALSE(fourth.ok());
  EXPECT_EQ(fourth.error(), Reason::RegistrationsExhausted);
  EXPECT_EQ(active->revoke(third->handle), Revocation::Done);
  EXPECT_TRUE(active->expose_sink(memory).ok());
}

TEST_F(SimFabricTest, connects_are_refused_and_lost_as_often_as_planned) {
  Faults faults;
  faults.refuse_connects = 2;
  faults.lose_connects = 1;
  sim().set_faults(faults);
  options.timeout = seconds(3);
  listen();
  EXPECT_EQ(connect(listener->local_address())->error(), Reason::ConnectionRefused);
  EXPECT_EQ(connect(listener->local_address())->error(), Reason::ConnectionRefused);
  const TimePoint before = loop().now();
  EXPECT_EQ(connect(listener->local_address())->error(), Reason::TimedOut);
  EXPECT_EQ(loop().now() - before, seconds(3));
  EXPECT_TRUE(connect(listener->local_address())->ok());
}

TEST_F(SimFabricTest, all_connections_die_at_the_planned_time) {
  Faults faults;
  faults.kill_after = milliseconds(500);
  sim().set_faults(faults);
  join_and_greet();
  const TimePoint before = loop().now();
  ASSERT_TRUE(ended());
  EXPECT_GE(loop().now() - before, milliseconds(400));
  EXPECT_EQ(active.disconnected, Reason::ConnectionLost);
}

TEST_F(SimFabricTest, a_listener_refuses_connections_beyond_its_limit) {
  fabric::ListenOptions limited;
  limited.max_connections = 1;
  auto made = fabric().listen(harness->any_address(), limited, acceptor);
  listener = std::move(*made);
  join();
  EXPECT_FALSE(connect(listener->local_address())->ok());
  passive.destroy();
  EXPECT_TRUE(connect(listener->local_address())->ok());
}

TEST_F(SimFabricTest, bytes_changed_before_a_send_is_done_arrive_changed) {
  join_and_greet();
  auto bytes = byte_vector("before");
  active->send(Rope::borrow(bytes), std::nullopt, 0, 1);
  std::fill(bytes.begin(), bytes.end(), std::byte{'x'});
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 1; }));
  EXPECT_EQ(passive.messages[0].text, "xxxxxx");
}

TEST_F(SimFabricTest, a_small_message_waits_for_at_most_one_bulk_message_of_another_flow) {
  SimOptions slow;
  slow.time_per_mib = milliseconds(10);
  use(slow);
  join_and_greet();
  std::vector<std::byte> memory(1 << 20);
  const auto sink = active->expose_sink(memory);
  for (int i = 0; i < 8; ++i) passive->write(Rope::borrow(memory), *sink, 1, 1 + i);
  passive->send(Rope::borrow(bytes_of("bulk done")), std::nullopt, 1, kNoToken);
  passive->send(Rope::borrow(bytes_of("small")), std::nullopt, 2, kNoToken);
  ASSERT_TRUE(run_until([&] { return active.messages.size() == 1; }));
  EXPECT_EQ(active.messages[0].text, "small");
  EXPECT_LE(passive->traffic().writes_out, 2u);
  ASSERT_TRUE(run_until([&] { return active.messages.size() == 2; }));
}

TEST_F(SimFabricTest, flows_leave_in_any_order_when_asked_to) {
  std::vector<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Faults faults;
    faults.reorder_flows = true;
    SimOptions chosen;
    chosen.seed = seed;
    chosen.faults = faults;
    active = Side();
    passive = Side();
    use(chosen);
    join_and_greet();
    for (char c = 'a'; c <= 'j'; ++c)
      active->send(Rope::copy_of(bytes_of({&c, 1})), std::nullopt, static_cast<std::uint64_t>(c),
                   kNoToken);
    ASSERT_TRUE(run_until([&] { return passive.messages.size() == 10; }));
    std::string order;
    for (const auto& message : passive.messages) order += message.text;
    orders.push_back(order);
    active.destroy();
    passive.destroy();
    listener.reset();
  }
  EXPECT_NE(orders[0], "abcdefghij");
  EXPECT_NE(orders[0], orders[1]);
}

TEST_F(SimFabricTest, a_slow_revocation_denies_access_at_once_and_gives_memory_back_later) {
  Faults faults;
  faults.pending_revocation_permille = 1000;
  sim().set_faults(faults);
  join_and_greet();
  std::vector<std::byte> memory(8), local(8, std::byte{1});
  const auto sink = active->expose_sink(memory);
  EXPECT_EQ(active->revoke(sink->handle), Revocation::Pending);
  EXPECT_EQ(active->revoke(sink->handle), Revocation::Pending);
  passive->write(Rope::borrow(local), *sink, 0, 1);
  ASSERT_TRUE(ended());
  EXPECT_EQ(active.revoked, std::vector<std::uint32_t>{sink->handle});
  EXPECT_EQ(memory, std::vector<std::byte>(8));
}

TEST_F(SimFabricTest, an_abandoned_source_too_long_to_copy_ends_the_connection) {
  SimOptions small;
  small.max_private_copy = 1000;
  use(small);
  join_and_greet();
  auto memory = std::make_unique<std::vector<std::byte>>(1001);
  const auto source = active->expose_source(*memory);
  EXPECT_EQ(active->abandon(source->handle), Revocation::Done);
  memory.reset();
  ASSERT_TRUE(ended());
  EXPECT_EQ(active.disconnected, Reason::AbandonedMemoryTooLong);
}

TEST_F(SimFabricTest, a_read_fails_alone_when_the_peer_accepts_none) {
  options.inbound_reads = 0;
  join_and_greet();
  std::vector<std::byte> memory(8), local(8);
  const auto source = active->expose_source(memory);
  passive->read(*source, local, 0, 1);
  passive->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, 2);
  ASSERT_TRUE(done(passive, 1) && done(passive, 2));
  EXPECT_EQ(passive.outcome(1), Reason::ReadsUnavailable);
  EXPECT_EQ(passive.outcome(2), Reason::None);
}

TEST_F(SimFabricTest, a_read_that_failed_leaves_rubbish_in_its_sink) {
  join_and_greet();
  std::vector<std::byte> memory(8), local(8);
  const auto source = active->expose_source(memory);
  passive->read(*source, local, 0, 1);
  active->close(Reason::Shutdown);
  ASSERT_TRUE(ended());
  EXPECT_NE(local, memory);
}

TEST_F(SimFabricTest, offsets_have_high_bits_set) {
  join();
  std::vector<std::byte> memory(8);
  for (int i = 0; i < 10; ++i)
    EXPECT_GE(active->expose_sink(memory)->offset, std::uint64_t{1} << 63);
}

using SimFabricDeathTest = SimFabricTest;
TEST_F(SimFabricDeathTest, destroying_a_connection_inside_its_event_is_caught) {
  join_and_greet();
  passive.when_received = [&] { passive.destroy(); };
  active->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, kNoToken);
  EXPECT_DEATH(settle(), "delivering_");
}

}  // namespace
}  // namespace stag::testing
