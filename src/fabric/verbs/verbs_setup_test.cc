// Why connections do not come up, in one clear sentence each; and what is there when they do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "testing/verbs_fixture.h"

namespace stag::testing {
namespace {

using fabric::stub::rxe_like;
using fabric::stub::StubOptions;

TEST_F(VerbsTest, an_address_without_a_route_is_unreachable) {
  EXPECT_EQ(connect_reason({"192.0.2.1", 20049}), Reason::HostUnreachable);
}

TEST_F(VerbsTest, an_address_of_no_device_cannot_be_listened_on) {
  EXPECT_EQ(listen_reason({"192.0.2.1", 0}), Reason::VerbsAddressUnserved);
}

TEST_F(VerbsTest, an_address_that_no_GID_table_has_is_named) {
  listen();
  stub().lack_gids(true);
  EXPECT_EQ(connect_reason(listener->local_address()), Reason::VerbsAddressUnserved);
  EXPECT_EQ(listen_reason({"127.0.0.1", 0}), Reason::VerbsAddressUnserved);
}

TEST_F(VerbsTest, a_port_that_is_down_is_named) {
  listen();
  stub().set_port(false);
  EXPECT_EQ(connect_reason(listener->local_address()), Reason::VerbsPortDown);
}

TEST_F(VerbsTest, devices_that_may_not_be_opened_are_named) {
  stub().forbid(true);
  EXPECT_EQ(connect_reason({"127.0.0.1", 1}), Reason::VerbsNotPermitted);
  EXPECT_EQ(listen_reason({"127.0.0.1", 0}), Reason::VerbsNotPermitted);
}

TEST_F(VerbsTest, a_request_that_nobody_answers_times_out) {
  listen();
  stub().lose_packets(true);
  options.timeout = std::chrono::milliseconds(1);
  EXPECT_EQ(connect_reason(listener->local_address()), Reason::ConnectTimedOut);
}

TEST_F(VerbsTest, a_device_that_is_removed_ends_its_connections) {
  join_and_greet();
  stub().remove_devices();
  ASSERT_TRUE(ended());
  EXPECT_EQ(active.disconnected, Reason::VerbsDeviceRemoved);
}

TEST_F(VerbsTest, reads_are_limited_by_the_device) {
  options.outbound_reads = acceptor.answer.inbound_reads = 1000;
  join();
  EXPECT_EQ(active->parameters().outbound_reads, 128u);
}

// What the provider asks RDMA-CM for.
struct Asked {
  std::vector<ibv_qp_type> queue_pairs;
  std::vector<rdma_port_space> ids;
};
Asked asked;
decltype(fabric::VerbsFunctions::create_qp) create_qp;
decltype(fabric::VerbsFunctions::create_id) create_id;

int noted_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* wishes) {
  asked.queue_pairs.push_back(wishes->qp_type);
  return create_qp(id, pd, wishes);
}
int noted_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* user,
                    rdma_port_space space) {
  asked.ids.push_back(space);
  return create_id(channel, id, user, space);
}
void note(fabric::VerbsFunctions& functions) {
  asked = {};
  create_qp = std::exchange(functions.create_qp, noted_create_qp);
  create_id = std::exchange(functions.create_id, noted_create_id);
}

class NotedVerbsTest : public FabricTest {
 protected:
  NotedVerbsTest() : FabricTest(std::make_unique<VerbsHarness>(rxe_like(), "127.0.0.1", note)) {}
};

TEST_F(NotedVerbsTest, queue_pairs_are_reliable_connected_ones) {
  PROVES("R8797-7-a");
  join_and_greet();
  EXPECT_EQ(asked.queue_pairs, std::vector(2, IBV_QPT_RC));
}

// RDMA_PS_TCP is the service that maps addresses and ports of IP to InfiniBand's service names.
TEST_F(NotedVerbsTest, address_and_port_of_IP_reach_the_listener_by_the_IP_service_of_RDMA_CM) {
  PROVES("R8166-5-b");
  join_and_greet();
  EXPECT_EQ(asked.ids, std::vector(2, RDMA_PS_TCP)) << "the listener's, and who asks";
  EXPECT_EQ(active->peer_address(), listener->local_address());
}

// Where RDMA-CM's choice of a port is one that TCP uses (iWARP): so many times.
int ports_taken = 0;
decltype(fabric::VerbsFunctions::connect) free_port_connect;

int connect_from_taken_port(rdma_cm_id* id, rdma_conn_param* wishes) {
  if (ports_taken == 0) return free_port_connect(id, wishes);
  --ports_taken;
  errno = EADDRINUSE;
  return -1;
}

class TakenPortsTest : public FabricTest {
 protected:
  TakenPortsTest()
      : FabricTest(std::make_unique<VerbsHarness>(
            fabric::stub::siw_like(), "127.0.0.1", [](fabric::VerbsFunctions& functions) {
              free_port_connect = std::exchange(functions.connect, connect_from_taken_port);
            })) {}
};

TEST_F(TakenPortsTest, are_left_for_others) {
  ports_taken = 3;
  join_and_greet();
  EXPECT_EQ(ports_taken, 0);
}

TEST_F(TakenPortsTest, are_not_tried_for_ever) {
  listen();
  ports_taken = 1000;
  const auto outcome = connect(listener->local_address());
  ASSERT_TRUE(outcome && !outcome->ok());
  EXPECT_EQ(outcome->error(), Reason::AddressInUse);
  EXPECT_GT(ports_taken, 900);
  ports_taken = 0;
}

TEST_F(VerbsTest, a_peer_that_speaks_is_known_to_be_connected) {
  listen();
  stub().lose_ready_to_use(true);
  auto outcome = connect(listener->local_address());
  ASSERT_TRUE(outcome && outcome->ok());
  active.take(std::move(**outcome));
  active.start();
  settle();
  EXPECT_TRUE(acceptor.arrived.empty());
  active->send(Rope::borrow(bytes_of("call")), std::nullopt, 0, fabric::kNoToken);
  ASSERT_TRUE(run_until([&] { return !acceptor.arrived.empty(); }));
  passive.take(std::move(acceptor.arrived.front()));
  acceptor.arrived.clear();
  passive.start();
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 1; }));
  EXPECT_EQ(passive.messages[0].text, "call");
}

// Where a line of the log says that a connection was not set up.
std::string unfinished_at;

TEST_F(VerbsTest, a_connection_that_is_not_set_up_in_time_is_logged_with_its_peers_address) {
  set_trace_sink([](Reason reason, std::string_view where, std::string_view) {
    if (reason == Reason::SetupUnfinished) unfinished_at = where;
  });
  unfinished_at.clear();
  fabric::ListenOptions hasty;
  hasty.setup_timeout = std::chrono::milliseconds(1);
  auto made = fabric().listen(harness->any_address(), hasty, acceptor);
  ASSERT_TRUE(made.ok());
  stub().lose_ready_to_use(true);
  auto outcome = connect((*made)->local_address());
  ASSERT_TRUE(outcome && outcome->ok());
  EXPECT_TRUE(run_until([] { return !unfinished_at.empty(); }));
  set_trace_sink(nullptr);
  EXPECT_NE(unfinished_at.find("127.0.0.1"), std::string::npos) << unfinished_at;
  active.take(std::move(**outcome));
}

TEST_F(VerbsTest, a_peer_with_a_connection_from_before_a_crash_is_asked_again) {
  listen();
  stub().find_stale_connections(4);
  EXPECT_EQ(connect_reason(listener->local_address()), Reason::None);
  EXPECT_EQ(acceptor.requests, 1);
}

TEST_F(VerbsTest, a_peer_that_keeps_a_connection_from_before_a_crash_is_not_asked_for_ever) {
  listen();
  stub().find_stale_connections(5);
  EXPECT_EQ(connect_reason(listener->local_address()), Reason::VerbsConnectionStale);
}

Task<void> connect_cancelled(fabric::Fabric* fabric, Address at, CancelSource* source,
                             std::optional<Reason>* reason) {
  const auto outcome = co_await fabric->connect(std::move(at), {}, *source);
  *reason = outcome.ok() ? Reason::None : outcome.error();
}

// The stub turns each request down at once: what is left of the time is the pause between two.
TEST_F(VerbsTest, who_cancels_does_not_wait_until_a_peer_is_asked_again) {
  listen();
  stub().find_stale_connections(1000);
  CancelSource source;
  std::optional<Reason> reason;
  detach(connect_cancelled(&fabric(), listener->local_address(), &source, &reason));
  settle();
  const std::uint64_t before = stub().calls();
  source.cancel();
  ASSERT_TRUE(run_until([&] { return reason.has_value(); }));
  EXPECT_EQ(reason, Reason::Cancelled);
  EXPECT_EQ(stub().calls(), before) << "it was asked again";
}

class NoDeviceTest : public ::testing::Test {};

TEST_F(NoDeviceTest, is_named) {
  fabric::stub::StubNetwork network(std::vector<StubOptions>{});
  net::EpollLoop loop;
  fabric::VerbsFabric fabric(loop, over(network));
  TestAcceptor acceptor;
  const auto listener = fabric.listen({"127.0.0.1", 0}, {}, acceptor);
  ASSERT_FALSE(listener.ok());
  EXPECT_EQ(listener.error(), Reason::VerbsDeviceMissing);
}

StubOptions with_little_memory() {
  StubOptions device = rxe_like();
  device.memlock = 8 * 4096;
  return device;
}

class LittleMemoryTest : public VerbsTest {
 protected:
  LittleMemoryTest() : VerbsTest(with_little_memory()) {}
};

TEST_F(LittleMemoryTest, is_named_with_the_limit_to_raise) {
  listen();
  EXPECT_EQ(connect_reason(listener->local_address()), Reason::VerbsMemlockTooLow);
  EXPECT_NE(info(Reason::VerbsMemlockTooLow).text.find("RLIMIT_MEMLOCK"), std::string_view::npos);
}

TEST_F(VerbsTest, accepted_connections_belong_to_the_loops_they_are_spread_over) {
  // The other loop has a thread of its own and ends before the devices do.
  struct Elsewhere final : fabric::Acceptor, fabric::Events {
    Result<fabric::ConnectOptions, Reason> on_connect_request(
        const fabric::ConnectRequest&) override {
      fabric::ConnectOptions answer;
      answer.receive = {8, 4096};
      answer.receives_max = 8;
      return answer;
    }
    void on_connection(std::unique_ptr<fabric::Connection> made) override {
      EXPECT_TRUE(made->loop().on_thread());
      connection = std::move(made);
      connection->start(*this);
    }
    void on_receive(Buffer message, std::optional<std::uint32_t>) override {
      connection->send(Rope(Buffer::copy_of(message.bytes())), std::nullopt, 0, fabric::kNoToken);
    }
    void on_done(fabric::Token, Reason) override {}
    void on_revoked(std::uint32_t) override {}
    void on_disconnect(Reason) override {}
    std::unique_ptr<fabric::Connection> connection;
  };
  Elsewhere there;
  {
    auto thread = std::make_unique<net::LoopThread>();
    net::EpollLoop& here = static_cast<VerbsHarness&>(*harness).loop();
    fabric::VerbsFabric spread(here, over(stub()), {&thread->loop()});
    auto made = spread.listen(harness->any_address(), {}, there);
    ASSERT_TRUE(made.ok());
    auto outcome = connect((*made)->local_address());
    ASSERT_TRUE(outcome && outcome->ok());
    active.take(std::move(**outcome));
    active.start();
    active->send(Rope::borrow(bytes_of("far")), std::nullopt, 0, fabric::kNoToken);
    ASSERT_TRUE(run_until([&] { return active.messages.size() == 1; }));
    EXPECT_EQ(active.messages[0].text, "far");
    made->reset();
    thread->loop().post([&there] { there.connection.reset(); });
    ASSERT_TRUE(run_until([&] { return active.disconnected.has_value(); }));
  }
}

// How many events RDMA-CM has handed out.
int events_taken = 0;
decltype(fabric::VerbsFunctions::get_cm_event) get_cm_event;

int counted_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  const int result = get_cm_event(channel, event);
  if (result == 0) ++events_taken;
  return result;
}

class FloodedVerbsTest : public FabricTest {
 protected:
  FloodedVerbsTest()
      : FabricTest(std::make_unique<VerbsHarness>(
            rxe_like(), "127.0.0.1", [](fabric::VerbsFunctions& functions) {
              get_cm_event = std::exchange(functions.get_cm_event, counted_get_cm_event);
            })) {}

  // Posts itself until `all` events have been taken, and so runs once in each turn.
  void watch_turns(int all) {
    most_in_a_turn = std::max(most_in_a_turn, events_taken - events_before);
    events_before = events_taken;
    if (events_taken < all) loop().post([this, all] { watch_turns(all); });
  }

  int events_before = 0, most_in_a_turn = 0;
};

TEST_F(FloodedVerbsTest, takes_a_few_connection_events_in_each_turn_of_a_loop) {
  listen();
  constexpr int kEvents = 200;
  events_taken = 0;
  for (int i = 0; i < kEvents; ++i)
    static_cast<VerbsHarness&>(*harness).stub().tell_ids(RDMA_CM_EVENT_ADDR_CHANGE);
  watch_turns(kEvents);
  ASSERT_TRUE(run_until([] { return events_taken == kEvents; }));
  EXPECT_LE(most_in_a_turn, 16);
}

// Has no more completion channels for any thread but the test's.
decltype(fabric::VerbsFunctions::create_comp_channel) create_comp_channel;
std::thread::id thread_with_channels;

ibv_comp_channel* create_comp_channel_for_one_thread(ibv_context* context) {
  if (std::this_thread::get_id() == thread_with_channels) return create_comp_channel(context);
  errno = ENOMEM;
  return nullptr;
}

// The loop that the request was for uses RDMA-CM for nothing else: the stub says when an event
// channel goes before its ids.
TEST_F(VerbsTest, a_request_for_a_loop_that_cannot_use_the_device_ends_before_its_event_channel) {
  thread_with_channels = std::this_thread::get_id();
  const auto thread = std::make_unique<net::LoopThread>();
  net::EpollLoop& here = static_cast<VerbsHarness&>(*harness).loop();
  fabric::VerbsFabric spread(here,
                             over(stub(),
                                  [](fabric::VerbsFunctions& functions) {
                                    create_comp_channel =
                                        std::exchange(functions.create_comp_channel,
                                                      create_comp_channel_for_one_thread);
                                  }),
                             {&thread->loop()});
  const auto made = spread.listen(harness->any_address(), {}, acceptor);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(connect_reason((*made)->local_address()), Reason::ConnectionRefused);
  EXPECT_TRUE(acceptor.arrived.empty());
}

}  // namespace
}  // namespace stag::testing
