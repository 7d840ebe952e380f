// Completion queues: another one when one is full, each in its turn, and nothing lost at an end.
#include <gtest/gtest.h>

#include "testing/raw_verbs_peer.h"
#include "testing/verbs_fixture.h"

namespace stag::testing {
namespace {

using fabric::kNoToken;

// More than a turn of the loop takes.
constexpr std::uint32_t kReceives = 600, kSends = 600;
// Of one queue pair: a receive more than the peer may fill, and its sends.
constexpr std::uint32_t kOfOne = kReceives + 1 + kSends;

int queues_made = 0;
bool queues_are_silent = false;  // no event says that something has completed
int events_asked_for = 0;
decltype(fabric::VerbsFunctions::create_cq) create_cq;
decltype(fabric::VerbsFunctions::get_cq_event) get_cq_event;

int counted_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** user) {
  ++events_asked_for;
  return get_cq_event(channel, queue, user);
}

ibv_cq* counted_create_cq(ibv_context* context, int entries, void* user, ibv_comp_channel* channel,
                          int vector) {
  ++queues_made;
  return create_cq(context, entries, user, queues_are_silent ? nullptr : channel, vector);
}
void count_queues(fabric::VerbsFunctions& functions) {
  queues_made = 0;
  queues_are_silent = false;
  create_cq = std::exchange(functions.create_cq, counted_create_cq);
  get_cq_event = std::exchange(functions.get_cq_event, counted_get_cq_event);
}

fabric::stub::StubOptions with_queues_of(int entries, fabric::stub::StubOptions device) {
  device.attributes.max_cqe = entries;
  return device;
}

class QueuesTest : public FabricTest {
 protected:
  explicit QueuesTest(fabric::stub::StubOptions device)
      : FabricTest(std::make_unique<VerbsHarness>(std::move(device), "127.0.0.1", count_queues)) {
    options.receive = acceptor.answer.receive = {kReceives, 64};
    options.receives_max = acceptor.answer.receives_max = kReceives;
    options.sends_max = acceptor.answer.sends_max = kSends;
  }
  fabric::stub::StubNetwork& stub() { return static_cast<VerbsHarness&>(*harness).stub(); }
  // Keeps the pair that was joined last, so that another one can be.
  void keep() {
    kept_.push_back(std::make_unique<Side>(std::move(active)));
    kept_.push_back(std::make_unique<Side>(std::move(passive)));
    active = Side();
    passive = Side();
    kept_.back()->start();
    kept_[kept_.size() - 2]->start();
  }
  Side& kept(std::size_t i) { return *kept_[i]; }
  void TearDown() override {
    for (const auto& side : kept_)
      if (side->connected()) side->destroy();
  }
  static void send_many(Side& from, int count) {
    for (int i = 0; i < count; ++i)
      from->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, kNoToken);
  }

 private:
  std::vector<std::unique_ptr<Side>> kept_;
};

// Each queue pair fills a queue.
struct SmallQueuesTest : QueuesTest {
  SmallQueuesTest() : QueuesTest(with_queues_of(kOfOne, fabric::stub::siw_like())) {}
};
struct LargeQueuesTest : QueuesTest {
  LargeQueuesTest() : QueuesTest(fabric::stub::siw_like()) {
    options.sends_max = acceptor.answer.sends_max = 32;
  }
};

TEST_F(LargeQueuesTest, a_few_connections_share_one) {
  for (int i = 0; i < 3; ++i) {
    join();
    keep();
  }
  EXPECT_EQ(queues_made, 1);
}

TEST_F(LargeQueuesTest, a_connection_that_fills_one_has_another_made) {
  for (std::size_t i = 0; i < 26; ++i) {
    EXPECT_EQ(queues_made, i == 0 ? 0 : 1);
    join();
    keep();
    kept(2 * i)->send(Rope::borrow(bytes_of("hello")), std::nullopt, 0, 1);
    ASSERT_TRUE(done(kept(2 * i), 1));
  }
  EXPECT_EQ(queues_made, 2) << "of 32768 entries each";
}

TEST_F(SmallQueuesTest, are_as_many_as_it_takes_on_a_device_that_has_only_short_ones) {
  for (int i = 0; i < 5; ++i) {
    join();
    keep();
  }
  EXPECT_EQ(queues_made, 10);
  for (std::size_t i = 0; i < 10; i += 2)
    kept(i)->send(Rope::borrow(bytes_of("hello")), std::nullopt, 0, kNoToken);
  ASSERT_TRUE(run_until([&] { return kept(9).messages.size() == 1; }));
  kept(0).destroy();
  kept(1).destroy();
  join();
  EXPECT_EQ(queues_made, 10) << "there is room in those that were left";
}

TEST_F(SmallQueuesTest, wait_for_no_other_ones_end) {
  for (int i = 0; i < 2; ++i) {
    join();
    keep();
  }
  std::size_t before = kReceives;
  kept(3).when_received = [&] { before = kept(1).messages.size(); };
  stub().hold();
  send_many(kept(0), kReceives);
  send_many(kept(2), 1);
  stub().release();
  ASSERT_TRUE(run_until([&] { return kept(1).messages.size() == kReceives; }));
  EXPECT_LE(before, 64u) << "a batch or two";
}

TEST_F(SmallQueuesTest, hand_over_all_that_came_before_the_end_of_a_connection) {
  queues_are_silent = true;
  listen();
  auto peer = std::make_unique<RawVerbsPeer>(
      stub().functions(), [this](const auto& predicate) { return run_until(predicate); });
  ASSERT_TRUE(peer->connect(listener->local_address().port, 7));
  ASSERT_TRUE(run_until([&] { return !acceptor.arrived.empty(); }));
  passive.take(std::move(acceptor.arrived.front()));
  acceptor.arrived.clear();
  passive.start();
  for (std::uint32_t i = 0; i < kReceives; ++i) ASSERT_EQ(peer->post(IBV_WR_SEND), IBV_WC_SUCCESS);
  EXPECT_TRUE(passive.messages.empty());
  peer.reset();
  ASSERT_TRUE(run_until([&] { return passive.disconnected.has_value(); }));
  EXPECT_EQ(passive.messages.size(), kReceives);
}

TEST_F(SmallQueuesTest, may_be_full_when_their_connections_go) {
  for (int i = 0; i < 2; ++i) {
    join();
    keep();
  }
  stub().hold();
  for (std::size_t i = 0; i < 4; ++i) send_many(kept(i), kReceives);
  stub().release();
  kept(0).destroy();
  kept(3).destroy();
  ASSERT_TRUE(run_until([&] { return kept(1).disconnected && kept(2).disconnected; }));
}

// Receives that are shared have a queue of their own.
struct SharedQueueTest : QueuesTest {
  SharedQueueTest() : QueuesTest(fabric::stub::rxe_like()) {}
};

TEST_F(SharedQueueTest, what_follows_is_found_without_an_event_as_long_as_something_comes) {
  join_and_greet();
  int left = 500, asked = 0;
  const auto answer = [&](Side& side) {
    return [&] {
      if (--left > 0) return send_many(side, 1);
      asked = events_asked_for;
    };
  };
  active.when_received = answer(active);
  passive.when_received = answer(passive);
  events_asked_for = 0;
  send_many(active, 1);
  ASSERT_TRUE(run_until([&] { return left == 0; }));
  EXPECT_LE(asked, 20);
}

TEST_F(SharedQueueTest, a_request_that_fails_hides_no_message_that_came_before) {
  join_and_greet();
  std::vector<std::byte> memory(64), sink(64);
  const auto source = active->expose_source(memory);
  active->revoke(source->handle);
  ASSERT_TRUE(run_until([&] { return active.revoked.size() == 1; }));
  send_many(active, 300);
  passive->read(*source, sink, 0, 1);
  ASSERT_TRUE(run_until([&] { return passive.disconnected.has_value(); }));
  EXPECT_EQ(passive.messages.size(), 300u);
  EXPECT_NE(passive.outcome(1), Reason::None);
  EXPECT_EQ(passive.log.back(), "disconnect");
}

TEST_F(SharedQueueTest, what_was_posted_with_a_request_that_fails_has_failed_too) {
  join_and_greet();
  std::vector<std::byte> memory(64);
  const auto sink = active->expose_sink(memory);
  active->revoke(sink->handle);
  ASSERT_TRUE(run_until([&] { return active.revoked.size() == 1; }));
  stub().hold();
  passive->write(Rope::borrow(bytes_of("late")), *sink, 0, 1);
  passive->send(Rope::borrow(bytes_of("silent")), std::nullopt, 0, kNoToken);
  passive->send(Rope::borrow(bytes_of("behind")), std::nullopt, 0, 2);
  stub().release();
  ASSERT_TRUE(run_until([&] { return passive.disconnected.has_value(); }));
  EXPECT_EQ(passive.outcome(1), Reason::PeerReportedError);
  EXPECT_EQ(passive.outcome(2), Reason::PeerReportedError);
  EXPECT_EQ(passive.outcomes.size(), 2u);
}

// A queue with room for the receives and three more.
struct ShortQueueTest : QueuesTest {
  ShortQueueTest() : QueuesTest(with_queues_of(kReceives + 4, fabric::stub::siw_like())) {}
};

TEST_F(ShortQueueTest, sends_wait_in_the_connection_where_its_queue_has_no_room_for_them) {
  join_and_greet();
  stub().hold();
  send_many(active, 100);
  stub().release();
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 100; }));
}

struct TooShortQueueTest : QueuesTest {
  TooShortQueueTest() : QueuesTest(with_queues_of(100, fabric::stub::siw_like())) {}
};

TEST_F(TooShortQueueTest, a_connection_whose_receives_fit_none_is_refused) {
  listen();
  const auto outcome = connect(listener->local_address());
  ASSERT_TRUE(outcome && !outcome->ok());
  EXPECT_EQ(outcome->error(), Reason::VerbsDeviceFull);
}

}  // namespace
}  // namespace stag::testing
