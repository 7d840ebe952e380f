// Peers and devices that fail.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "testing/verbs_fixture.h"

namespace stag::testing {
namespace {

using fabric::kNoToken;

TEST_F(VerbsTest, a_peer_that_vanishes_ends_the_connection_at_the_next_operation) {
  join_and_greet();
  std::vector<std::byte> memory(5000), sink(5000);
  const auto source = passive->expose_source(memory);
  stub().hold();
  active->read(*source, sink, 0, 1);
  stub().lose_packets(true);
  stub().release();
  ASSERT_TRUE(run_until([&] { return active.disconnected.has_value(); }));
  EXPECT_EQ(active.outcome(1), Reason::ConnectionLost);
  stub().lose_packets(false);
}

TEST_F(VerbsTest, a_peer_that_vanishes_with_reads_pending_ends_each_of_them_once) {
  join_and_greet();
  std::vector<std::byte> memory(100'000), sink(100'000);
  const auto source = passive->expose_source(memory);
  stub().hold();
  // Through a block, and registered where they lie.
  for (fabric::Token token = 1; token <= 6; ++token)
    active->read(*source, MutableBytes(sink).first(token % 2 == 0 ? 100'000 : 5000), 0, token);
  stub().lose_packets(true);
  stub().release();
  ASSERT_TRUE(run_until([&] { return active.disconnected.has_value(); }));
  ASSERT_EQ(active.outcomes.size(), 6u);
  for (const auto& [token, reason] : active.outcomes) EXPECT_EQ(reason, Reason::ConnectionLost);
  EXPECT_EQ(active.log.back(), "disconnect");
  stub().lose_packets(false);
}

// Its device tells of what was posted behind a Read first.
TEST_F(SiwVerbsTest, a_peer_that_vanishes_with_reads_pending_ends_each_of_them_once) {
  join_and_greet();
  std::vector<std::byte> memory(100'000), sink(100'000);
  const auto source = passive->expose_source(memory);
  stub().hold_reads(true);
  for (fabric::Token token = 1; token <= 6; ++token) active->read(*source, sink, 0, token);
  active->send(Rope::borrow(bytes_of("behind")), std::nullopt, 0, 7);
  ASSERT_TRUE(done(active, 7));
  passive.destroy();
  ASSERT_TRUE(run_until([&] { return active.disconnected.has_value(); }));
  ASSERT_EQ(active.outcomes.size(), 7u);
  for (fabric::Token token = 1; token <= 6; ++token) EXPECT_NE(active.outcome(token), Reason::None);
  EXPECT_EQ(stub().remote_handles(), 0u);
  stub().hold_reads(false);
}

TEST_F(VerbsTest, a_peer_that_takes_nothing_for_the_stall_limit_loses_the_connection) {
  options.stall_limit = std::chrono::milliseconds(1);
  join_and_greet();
  stub().hold();
  active->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, 1);
  ASSERT_TRUE(run_until([&] { return active.disconnected.has_value(); }));
  EXPECT_EQ(active.disconnected, Reason::PeerStalled);
  stub().release();
}

// A peer that sends a message each time that its last one has arrived.
template <class Fixture>
class TalkingPeer : public Fixture {
 protected:
  void SetUp() override {
    this->options.stall_limit = std::chrono::milliseconds(50);
    this->join_and_greet();
    this->active.when_received = [this] {
      this->active->add_receive_credit({1, 4096});
      this->passive->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, kNoToken);
    };
  }
  std::optional<Reason> end_of_active() {
    this->passive->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, kNoToken);
    EXPECT_TRUE(this->run_until([this] { return this->active.disconnected.has_value(); }));
    return this->active.disconnected;
  }
};
using TalkingPeerOnRoce = TalkingPeer<VerbsTest>;
using TalkingPeerOnIwarp = TalkingPeer<SiwVerbsTest>;

TEST_F(TalkingPeerOnRoce, that_takes_nothing_for_the_stall_limit_loses_the_connection) {
  stub().starve_first_queue_pair();
  active->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, 1);
  EXPECT_EQ(end_of_active(), Reason::PeerStalled);
}

TEST_F(TalkingPeerOnIwarp, that_answers_no_read_for_the_stall_limit_loses_the_connection) {
  std::vector<std::byte> memory(5000), sink(5000);
  const auto source = passive->expose_source(memory);
  stub().hold_reads(true);
  active->read(*source, sink, 0, 1);
  EXPECT_EQ(end_of_active(), Reason::PeerStalled);
}

// Its device tells of what was posted behind a Read first.
TEST_F(TalkingPeerOnIwarp, that_takes_all_and_answers_no_read_loses_the_connection) {
  std::vector<std::byte> memory(5000), sink(5000);
  const auto source = passive->expose_source(memory);
  stub().hold_reads(true);
  active->read(*source, sink, 0, 1);
  passive.when_received = [this] { passive->add_receive_credit({1, 4096}); };
  active.when_done = [this](fabric::Token token, Reason outcome) {
    if (token == 2 && outcome == Reason::None)
      active->send(Rope::borrow(bytes_of("y")), std::nullopt, 0, 2);
  };
  active->send(Rope::borrow(bytes_of("y")), std::nullopt, 0, 2);
  EXPECT_EQ(end_of_active(), Reason::PeerStalled);
}

TEST_F(VerbsTest, what_does_not_fit_the_send_queue_waits_and_all_of_it_leaves) {
  options.sends_max = 4;
  acceptor.answer.receive.count = acceptor.answer.receives_max = 100;
  join_and_greet();
  stub().hold();
  for (int i = 0; i < 50; ++i)
    active->send(Rope::copy_of(bytes_of(std::to_string(i))), std::nullopt, 0, kNoToken);
  active->send(Rope::borrow(bytes_of("last")), std::nullopt, 0, 1);
  stub().release();
  ASSERT_TRUE(done(active, 1));
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 51; }));
  EXPECT_EQ(passive.messages[49].text, "49");
}

TEST_F(VerbsTest, a_peer_that_takes_more_than_its_share_of_receives_loses_the_connection) {
  join();
  active.start();
  // It is not started, so nothing is delivered and nothing posted again.
  for (int i = 0; i < 9; ++i)
    active->send(Rope::borrow(bytes_of("flood")), std::nullopt, 0, kNoToken);
  settle();
  (*active).send(Rope::borrow(bytes_of("flood")), std::nullopt, 0, kNoToken);
  passive.start();
  ASSERT_TRUE(run_until([&] { return passive.disconnected.has_value(); }));
  EXPECT_EQ(passive.disconnected, Reason::ReceiveOverflow);
}

TEST_F(VerbsTest, more_completions_than_one_turn_takes_are_all_delivered) {
  options.receives_max = acceptor.answer.receives_max = 2000;
  options.receive.count = acceptor.answer.receive.count = 2000;
  options.sends_max = 2000;
  join_and_greet();
  stub().hold();
  for (int i = 0; i < 1500; ++i)
    active->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, kNoToken);
  stub().release();
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 1500; }));
}

TEST_F(VerbsTest, a_port_that_goes_down_ends_no_connection_by_itself) {
  join_and_greet();
  stub().set_port(false);
  settle();
  stub().set_port(true);
  active->send(Rope::borrow(bytes_of("after")), std::nullopt, 0, 1);
  ASSERT_TRUE(done(active, 1));
  EXPECT_EQ(active.outcome(1), Reason::None);
}

TEST_F(VerbsTest, an_error_of_one_queue_pair_ends_its_connection) {
  join_and_greet();
  stub().tell_of_first_queue_pair(IBV_EVENT_QP_FATAL);
  ASSERT_TRUE(run_until([&] { return active.disconnected && passive.disconnected; }));
  EXPECT_EQ(active.disconnected, Reason::VerbsFailed);
  EXPECT_EQ(passive.disconnected, Reason::ConnectionClosed);
}

TEST_F(VerbsTest, an_error_of_a_completion_queue_ends_the_connections_of_the_device) {
  join_and_greet();
  stub().tell_of_device(IBV_EVENT_CQ_ERR);
  ASSERT_TRUE(run_until([&] { return active.disconnected && passive.disconnected; }));
  EXPECT_EQ(active.disconnected, Reason::VerbsFailed);
  EXPECT_EQ(passive.disconnected, Reason::VerbsFailed);
}

TEST_F(VerbsTest, an_error_of_a_shared_receive_queue_ends_the_connections_of_the_device) {
  join_and_greet();
  stub().tell_of_device(IBV_EVENT_SRQ_ERR);
  ASSERT_TRUE(run_until([&] { return active.disconnected && passive.disconnected; }));
  EXPECT_EQ(active.disconnected, Reason::VerbsFailed);
}

TEST_F(VerbsTest, events_that_change_nothing_end_no_connection) {
  join_and_greet();
  stub().tell_of_first_queue_pair(IBV_EVENT_COMM_EST);
  stub().tell_of_device(IBV_EVENT_CLIENT_REREGISTER);
  stub().tell_ids(RDMA_CM_EVENT_TIMEWAIT_EXIT);
  stub().tell_ids(RDMA_CM_EVENT_ADDR_CHANGE);
  settle();
  active->send(Rope::borrow(bytes_of("after")), std::nullopt, 0, 1);
  ASSERT_TRUE(done(active, 1));
  EXPECT_EQ(active.outcome(1), Reason::None);
}

// A driver gives all receives of a queue pair back, and nothing else tells that it has failed.
ibv_qp* noted_queue_pair = nullptr;
decltype(fabric::VerbsFunctions::create_qp) create_unnoted_qp;

int create_noted_qp(rdma_cm_id* id, ibv_pd* domain, ibv_qp_init_attr* wishes) {
  const int made = create_unnoted_qp(id, domain, wishes);
  noted_queue_pair = id->qp;
  return made;
}

fabric::stub::StubOptions without_shared_queues() {
  fabric::stub::StubOptions device = fabric::stub::rxe_like();
  device.attributes.max_srq = 0;
  return device;
}

class FlushedReceives : public FabricTest {
 protected:
  FlushedReceives()
      : FabricTest(std::make_unique<VerbsHarness>(
            without_shared_queues(), "127.0.0.1", [](fabric::VerbsFunctions& functions) {
              create_unnoted_qp = std::exchange(functions.create_qp, create_noted_qp);
            })) {}
};

TEST_F(FlushedReceives, end_the_connection_where_nothing_else_does) {
  join_and_greet();
  ibv_qp_attr failed{};
  failed.qp_state = IBV_QPS_ERR;
  const auto functions = static_cast<VerbsHarness&>(*harness).stub().functions();
  ASSERT_EQ(functions->modify_qp(noted_queue_pair, &failed, IBV_QP_STATE), 0);
  // The queue pair of the passive side was made last.
  ASSERT_TRUE(run_until([&] { return passive.disconnected.has_value(); }));
  EXPECT_EQ(passive.disconnected, Reason::ConnectionLost);
}

TEST_F(VerbsTest, the_end_of_time_wait_after_a_connection_has_ended_is_told_to_nobody) {
  join_and_greet();
  active->close(Reason::Shutdown);
  ASSERT_TRUE(run_until([&] { return active.disconnected && passive.disconnected; }));
  stub().tell_ids(RDMA_CM_EVENT_TIMEWAIT_EXIT);
  settle();
}

// A connection with everything in it, one call of the device failing: it ends or it goes on, and
// nothing is left behind (the harness looks).
void everything_once(fabric::stub::StubOptions device, std::uint64_t failing, bool& more) {
  class Scenario final : public VerbsTest {
   public:
    explicit Scenario(fabric::stub::StubOptions its) : VerbsTest(std::move(its)) {}
    void TestBody() override {}
    void run(std::uint64_t n, bool& reached) {
      stub().fail_call(n);
      all();
      reached = !stub().failed_call().empty();
      SCOPED_TRACE(stub().failed_call());
      stub().fail_call(0);
    }
    void all() {
      auto made = fabric().listen(harness->any_address(), {}, acceptor);
      if (!made) return;
      listener = std::move(*made);
      options.timeout = std::chrono::milliseconds(20);
      options.receive = acceptor.answer.receive = {2, 4096};
      options.receives_max = acceptor.answer.receives_max = 2;
      auto outcome = connect(listener->local_address());
      if (!outcome || !outcome->ok()) return;
      active.take(std::move(**outcome));
      if (!run_until([&] { return !acceptor.arrived.empty(); })) return;
      passive.take(std::move(acceptor.arrived.front()));
      active.start();
      passive.start();
      traffic();
    }
    void traffic() {
      std::vector<std::byte> memory(100'000), other(100'000);
      // Posted together.
      passive.when_received = [&] {
        static_cast<void>(passive->expose_source(other));
        static_cast<void>(passive->expose_sink(other));
        passive->send(Rope::borrow(bytes_of("answer")), std::nullopt, 0, kNoToken);
      };
      const auto ended_or = [this](Side& side, fabric::Token token) {
        return run_until([&] { return side.outcome(token) || side.disconnected; });
      };
      active->send(Rope::borrow(bytes_of("hello")), std::nullopt, 0, 1);
      EXPECT_TRUE(ended_or(active, 1));
      EXPECT_TRUE(run_until([&] { return !active.messages.empty() || active.disconnected; }));
      const auto sink = active->expose_sink(memory);
      const auto source = active->expose_source(memory);
      if (sink) passive->write(Rope::borrow(other), *sink, 0, 2);
      EXPECT_TRUE(!sink || ended_or(passive, 2));
      if (source) passive->read(*source, other, 0, 3);
      EXPECT_TRUE(!source || ended_or(passive, 3));
      if (sink && active->revoke(sink->handle) == fabric::Revocation::Pending) {
        EXPECT_TRUE(run_until([&] { return !active.revoked.empty() || active.disconnected; }));
      }
      active->close(Reason::Shutdown);
      EXPECT_TRUE(run_until([&] { return active.disconnected && passive.disconnected; }));
    }
  };
  Scenario(std::move(device)).run(failing, more);
}

TEST(VerbsFaults, each_call_of_a_device_with_windows_may_fail_once) {
  bool more = true;
  for (std::uint64_t n = 1; more; ++n) everything_once(fabric::stub::rxe_like(), n, more);
}

TEST(VerbsFaults, each_call_of_a_device_without_windows_may_fail_once) {
  bool more = true;
  for (std::uint64_t n = 1; more; ++n) everything_once(fabric::stub::siw_like(), n, more);
}

TEST(VerbsFaults, each_call_of_a_device_with_a_queue_for_each_connection_may_fail_once) {
  fabric::stub::StubOptions device = fabric::stub::siw_like();
  device.attributes.max_cqe = 8;
  bool more = true;
  for (std::uint64_t n = 1; more; ++n) everything_once(device, n, more);
}

}  // namespace
}  // namespace stag::testing
