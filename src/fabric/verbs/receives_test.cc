// Receives that connections share: few for a peer that has said nothing, and none for those that
// have gone.
#include <gtest/gtest.h>

#include <cerrno>
#include <utility>

#include "fabric/kept_ranges.h"
#include "testing/raw_verbs_peer.h"
#include "testing/verbs_fixture.h"

namespace stag::testing {
namespace {

constexpr std::uint32_t kOfOnePeer = 100, kReceiveSize = 16384;

// Two connections have room in a queue of receives.
fabric::stub::StubOptions with_short_queues() {
  fabric::stub::StubOptions device = fabric::stub::rxe_like();
  device.attributes.max_srq_wr = 2 * (kOfOnePeer + 1);
  return device;
}

bool no_more_memory = false;
decltype(fabric::VerbsFunctions::reg_mr) reg_mr;

ibv_mr* limited_reg_mr(ibv_pd* domain, void* memory, std::size_t size, int access) {
  if (!no_more_memory) return reg_mr(domain, memory, size, access);
  errno = ENOMEM;
  return nullptr;
}

class ReceivesTest : public FabricTest {
 protected:
  explicit ReceivesTest(const fabric::stub::StubOptions& device = with_short_queues())
      : FabricTest(std::make_unique<VerbsHarness>(
            device, "127.0.0.1", [](fabric::VerbsFunctions& functions) {
              no_more_memory = false;
              reg_mr = std::exchange(functions.reg_mr, limited_reg_mr);
            })) {
    acceptor.answer.receive = {kOfOnePeer, kReceiveSize};
    acceptor.answer.receives_max = kOfOnePeer;
    listen();
  }
  ~ReceivesTest() override {
    for (const auto& side : sides)
      if (side->connected()) side->destroy();
  }
  fabric::stub::StubNetwork& stub() { return static_cast<VerbsHarness&>(*harness).stub(); }
  // Peers that have said nothing yet.
  void connect_peers(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      peers.push_back(std::make_unique<RawVerbsPeer>(
          stub().functions(), [this](const auto& predicate) { return run_until(predicate); }));
      ASSERT_TRUE(peers.back()->connect(listener->local_address().port, 7));
      ASSERT_TRUE(run_until([&] { return !acceptor.arrived.empty(); }));
      sides.push_back(std::make_unique<Side>());
      sides.back()->take(std::move(acceptor.arrived.front()));
      acceptor.arrived.clear();
      sides.back()->start();
    }
  }
  void say(std::size_t peer) {
    const std::size_t before = sides[peer]->messages.size();
    (**sides[peer]).add_receive_credit({1, kReceiveSize});
    ASSERT_EQ(peers[peer]->post(IBV_WR_SEND), IBV_WC_SUCCESS);
    ASSERT_TRUE(run_until([&] { return sides[peer]->messages.size() == before + 1; }));
  }
  std::uint64_t registered() { return stub().locked_bytes(); }

  std::vector<std::unique_ptr<RawVerbsPeer>> peers;
  std::vector<std::unique_ptr<Side>> sides;
};

TEST_F(ReceivesTest, are_few_until_the_peer_has_sent_its_first_message) {
  connect_peers(10);
  // Five queues have sixteen more than they need.
  EXPECT_LE(registered(), (10 * 8 + 5 * 16) * kReceiveSize + (1u << 20));
  for (std::size_t i = 0; i < 10; ++i) say(i);
  EXPECT_GE(registered(), 10 * kOfOnePeer * kReceiveSize);
}

TEST_F(ReceivesTest, are_given_back_with_the_last_connection_of_their_queue) {
  connect_peers(10);
  for (std::size_t i = 0; i < 10; ++i) say(i);
  for (std::size_t i = 1; i < 10; ++i) sides[i]->destroy();
  peers.resize(1);
  sides.resize(1);
  settle();
  EXPECT_LE(registered(), (2 * kOfOnePeer + 16) * kReceiveSize + (1u << 20)) << "one queue is left";
  say(0);
  connect_peers(3);
  say(2);
}

TEST_F(ReceivesTest, that_cannot_be_had_cost_the_connection_that_wants_them_alone) {
  connect_peers(2);
  say(0);
  no_more_memory = true;
  EXPECT_EQ(peers[1]->post(IBV_WR_SEND), IBV_WC_SUCCESS);
  ASSERT_TRUE(run_until([&] { return sides[1]->disconnected.has_value(); }));
  EXPECT_EQ(sides[1]->disconnected, Reason::VerbsMemlockTooLow);
  say(0);
  no_more_memory = false;
  connect_peers(1);
  say(2);
}

// As a peer does that ends its connections inside of messages.
class ReceivesOfCutMessages : public ReceivesTest {
 protected:
  ReceivesOfCutMessages() : ReceivesTest(fabric::stub::rxe_like()) {}
  void cut_connections(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      connect_peers(1);
      stub().begin_messages();
      sides.back()->destroy();
      peers.pop_back();
      sides.pop_back();
    }
  }
};

TEST_F(ReceivesOfCutMessages, come_back_before_their_queue_pair_goes) {
  connect_peers(1);
  say(0);
  const std::size_t queue_pairs = stub().queue_pairs();
  const std::size_t before = stub().shared_receives();
  const std::uint64_t bytes = registered();
  for (int i = 0; i < 40; ++i) {
    cut_connections(1);
    EXPECT_EQ(stub().queue_pairs(), queue_pairs + 1);
    stub().end_messages();
    settle();
    ASSERT_EQ(stub().queue_pairs(), queue_pairs);
  }
  // One is in the hands of the peer that stays; the others' few were registered for them.
  EXPECT_GE(stub().shared_receives() + 1, before);
  EXPECT_LE(registered(), bytes + 32 * kReceiveSize);
}

TEST_F(ReceivesOfCutMessages, that_a_device_keeps_are_not_waited_for_for_ever) {
  connect_peers(1);
  const std::size_t queue_pairs = stub().queue_pairs();
  cut_connections(1);
  EXPECT_EQ(stub().queue_pairs(), queue_pairs + 1);
  EXPECT_TRUE(run_until([&] { return stub().queue_pairs() == queue_pairs; }));
}

// What the device still reads there would be the caller's again.
TEST_F(ReceivesOfCutMessages, are_not_waited_for_where_kept_memory_is_on_its_way) {
  connect_peers(1);
  say(0);
  std::vector<std::byte> memory(100'000);
  const fabric::KeptRange range{memory, true};
  ASSERT_EQ(fabric::KeptRanges::of_this_thread()->keep(range), Reason::None);
  stub().begin_messages();
  stub().hold();
  (**sides[0]).write(Rope::borrow(memory), {1, 100'000, 0}, 0, fabric::kNoToken);
  const std::size_t queue_pairs = stub().queue_pairs();
  sides[0]->destroy();
  EXPECT_EQ(stub().queue_pairs(), queue_pairs - 1);
  fabric::KeptRanges::of_this_thread()->give_up(range);
  stub().release();
}

// The device may still read the bytes of messages that were on their way.
TEST_F(ReceivesOfCutMessages, are_waited_for_with_the_blocks_of_what_was_posted) {
  connect_peers(2);
  say(0);
  say(1);
  stub().begin_messages();
  stub().hold();
  const auto send = [this](std::size_t side) {
    (**sides[side]).send(Rope::copy_of(pattern(10'000, 1)), std::nullopt, 0, fabric::kNoToken);
  };
  // All the blocks that are registered at once.
  for (int i = 0; i < 16; ++i) send(0);
  const std::uint64_t bytes = registered();
  sides[0]->destroy();
  send(1);
  EXPECT_GT(registered(), bytes);
  stub().release();
}

// A message that still waits for a slot shares a block with some that do not.
TEST_F(ReceivesOfCutMessages, are_waited_for_with_the_block_that_posted_and_waiting_ones_share) {
  acceptor.answer.sends_max = 20;
  connect_peers(2);
  say(0);
  say(1);
  stub().begin_messages();
  stub().hold();
  const auto send = [this](std::size_t side, std::size_t size) {
    (**sides[side]).send(Rope::copy_of(pattern(size, 1)), std::nullopt, 0, fabric::kNoToken);
  };
  // All but one of the blocks that are registered at once, and with the last one more than slots.
  for (int i = 0; i < 15; ++i) send(0, 10'000);
  for (int i = 0; i < 20; ++i) send(0, 600);
  const std::uint64_t bytes = registered();
  sides[0]->destroy();
  send(1, 10'000);
  EXPECT_GT(registered(), bytes);
  stub().release();
}

TEST_F(ReceivesOfCutMessages, that_a_device_has_lost_are_posted_anew_when_there_are_few) {
  connect_peers(1);
  say(0);
  const std::size_t queue_pairs = stub().queue_pairs();
  constexpr std::size_t kLost = 60;
  cut_connections(kLost);
  ASSERT_TRUE(run_until([&] { return stub().queue_pairs() == queue_pairs; }));
  // What was there for those that have gone is used up first.
  for (int i = 0; i < 1000 && stub().shared_receives() >= kLost; ++i) say(0);
  EXPECT_LT(stub().shared_receives(), kLost);
  for (int i = 0; i < 40; ++i) say(0);
  EXPECT_GT(stub().shared_receives(), kOfOnePeer - 16);
}

}  // namespace
}  // namespace stag::testing
