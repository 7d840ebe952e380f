// What some peers make wait, others do not feel: connections that share a byte budget.
#include <gtest/gtest.h>

#include <deque>

#include "base/completion.h"
#include "fabric/sim/sim_loop.h"
#include "rpc/rdma/link.h"
#include "rpc/server.h"
#include "testing/silent_peer.h"

namespace stag::rpc::rdma {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kMebibyte = 1 << 20;

// Notes the XIDs of Calls that have to wait.
class NotingServer final : public rpc::Server {
 public:
  void on_arrival(rpc::IncomingCall& call) override {
    arrived.push_back(load_be<std::uint32_t>(call.payload.data()));
  }
  std::vector<std::uint32_t> arrived;
};

constexpr std::uint32_t kHeldProgram = testing::kBlobProgram + 2, kHeldProcedure = 0;

// Its Calls end when the test says so.
class Held final : public rpc::Handler {
 public:
  explicit Held(std::deque<Completion<bool>>& ends) : ends_(ends) {}
  Eventual<rpc::HandlerOutcome> run(rpc::CallContext&, xdr::Decoder&, const rpc::ReducedItems&,
                                    xdr::Encoder&) override {
    co_await ends_.emplace_back();
    co_return rpc::HandlerOutcome{};
  }

 private:
  std::deque<Completion<bool>>& ends_;
};

class Fairness : public ::testing::Test, private LinkOwner {
 protected:
  Fairness() {
    server.add(testing::blob_program());
    rpc::Program held(kHeldProgram, 1);
    held.add(kHeldProcedure, std::make_unique<Held>(ends));
    server.add(std::move(held));
  }
  ~Fairness() override {
    for (SilentPeer& peer : peers_)
      if (!peer.closed) peer.lose_connection();
    loop.run_until_idle();
    links_.clear();
    EXPECT_EQ(budget->used(), 0u);
    EXPECT_EQ(budget->waiting(), 0u);
  }
  SilentPeer& connect(const std::string& address) {
    SilentPeer& peer = peers_.emplace_back();
    peer.address = {address, 1};
    LinkSettings settings;
    settings.credits_granted = 16;
    settings.budget = budget;
    links_.push_back(std::make_shared<Link>(std::make_unique<SilentConnection>(loop, peer),
                                            settings, static_cast<LinkOwner&>(*this)));
    links_.back()->open(&server, {});
    return peer;
  }
  // A Call with so many bytes in a Read chunk.
  static Buffer call(std::uint32_t xid, std::uint32_t bytes,
                     std::uint32_t program = testing::kBlobProgram) {
    rpcrdma::Header header;
    header.read_list.push_back(
        {.position = 40, .segments = {{.handle = xid, .length = bytes, .offset = 0}}});
    return silent_call(xid, header, program);
  }

  fabric::SimLoop loop;
  std::shared_ptr<ByteBudget> budget = std::make_shared<ByteBudget>(1024ull * kMebibyte);
  NotingServer server;
  std::deque<Completion<bool>> ends;  // of the Calls of kHeldProgram, as they came

 private:
  void on_link_down(Link&, Reason) override {}
  std::deque<SilentPeer> peers_;
  std::vector<std::shared_ptr<Link>> links_;
};

TEST_F(Fairness, peers_that_answer_no_Read_delay_nobody_else) {
  for (int i = 0; i < 17; ++i) {
    SilentPeer& hostile = connect("hostile");
    for (std::uint32_t xid = 1; xid <= 4; ++xid) hostile.arrive(call(xid, 16 * kMebibyte));
  }
  SilentPeer& good = connect("good");
  good.arrive(call(1, 65536));
  ASSERT_EQ(good.reads.size(), 1u);
  good.end_read();
  EXPECT_EQ(good.sends, 1);
  SilentPeer& neighbour = connect("hostile");
  neighbour.arrive(call(1, 65536));
  EXPECT_EQ(neighbour.reads.size(), 1u) << "of the same address, too";
}

TEST_F(Fairness, a_Call_that_its_header_condemns_takes_no_memory) {
  SilentPeer& peer = connect("a");
  peer.arrive(call(1, 16 * kMebibyte, testing::kBlobProgram + 1));
  EXPECT_EQ(peer.sends, 1) << "PROG_UNAVAIL";
  EXPECT_TRUE(peer.reads.empty());
  EXPECT_EQ(budget->used(), 0u);
}

TEST_F(Fairness, a_Call_that_waits_begins_as_soon_as_there_is_room_and_needs_no_timer) {
  budget = std::make_shared<ByteBudget>(4 * kMebibyte);
  SilentPeer& first = connect("a");
  SilentPeer& second = connect("b");
  first.arrive(call(1, 4 * kMebibyte));
  const std::size_t pending = loop.pending();
  second.arrive(call(1, kMebibyte));
  second.arrive(call(2, kMebibyte));
  EXPECT_TRUE(second.reads.empty());
  EXPECT_EQ(loop.pending(), pending) << "there is nothing to do before there is room";
  const TimePoint before = loop.now();
  first.end_read();
  loop.run_until([&] { return second.reads.size() == 2; }, 0s);
  EXPECT_EQ(second.reads.size(), 2u);
  EXPECT_EQ(loop.now(), before);
}

TEST_F(Fairness, a_Call_that_waits_is_known_to_the_Service_from_its_arrival_on) {
  budget = std::make_shared<ByteBudget>(4 * kMebibyte);
  SilentPeer& peer = connect("a");
  peer.arrive(call(1, 4 * kMebibyte));
  peer.arrive(call(2, kMebibyte));
  EXPECT_EQ(peer.reads.size(), 1u);
  EXPECT_EQ(server.arrived, (std::vector<std::uint32_t>{1, 2}));
  peer.arrive(silent_call(3, {}));
  EXPECT_EQ(peer.sends, 1);
  peer.end_read();
  loop.run_until([&] { return !peer.reads.empty(); }, 0s);
  peer.end_read();
  EXPECT_EQ(peer.sends, 3);
  EXPECT_EQ(server.arrived.size(), 2u) << "once, and no Call that is served at once";
}

TEST_F(Fairness, Reads_that_bring_nothing_lose_their_memory_when_others_wait_for_it) {
  budget = std::make_shared<ByteBudget>(4 * kMebibyte);
  SilentPeer& holder = connect("a");
  holder.arrive(call(1, 4 * kMebibyte));
  loop.run_for(30s);
  EXPECT_FALSE(holder.closed) << "nobody waits";
  SilentPeer& waiting = connect("b");
  waiting.arrive(call(1, kMebibyte));
  loop.run_for(10s);
  EXPECT_EQ(holder.closed, Reason::RdmaReadsStalled);
  EXPECT_EQ(waiting.reads.size(), 1u);
}

TEST_F(Fairness, Reads_that_bring_something_keep_their_memory) {
  budget = std::make_shared<ByteBudget>(4 * kMebibyte);
  SilentPeer& slow = connect("a");
  slow.arrive(call(1, 4 * kMebibyte));
  connect("b").arrive(call(1, kMebibyte));
  for (int i = 0; i < 10; ++i) {
    loop.run_for(4s);
    ++slow.traffic.read_bytes_in;
    EXPECT_FALSE(slow.closed);
  }
}

TEST_F(Fairness, a_connection_that_ends_while_its_Call_waits_leaves_nothing_behind) {
  budget = std::make_shared<ByteBudget>(4 * kMebibyte);
  SilentPeer& holder = connect("a");
  holder.arrive(call(1, 4 * kMebibyte));
  SilentPeer& gone = connect("b");
  gone.arrive(call(1, 2 * kMebibyte));
  SilentPeer& next = connect("c");
  next.arrive(call(1, 2 * kMebibyte));
  holder.end_read();  // Sets bytes aside for both; the first does not take them any more.
  gone.lose_connection();
  loop.run_until([&] { return !next.reads.empty(); }, 0s);
  EXPECT_EQ(next.reads.size(), 1u);
  EXPECT_EQ(budget->used(), 2 * kMebibyte);
}

// A store that hangs keeps what its own Call has taken, and no more.
TEST_F(Fairness, a_Call_that_ends_after_its_connection_gives_its_bytes_back) {
  SilentPeer& gone = connect("a");
  for (std::uint32_t xid = 1; xid <= 2; ++xid) {
    gone.arrive(call(xid, xid * kMebibyte, kHeldProgram));
    gone.end_read();
  }
  ASSERT_EQ(ends.size(), 2u);
  gone.lose_connection();
  EXPECT_EQ(budget->used(), 3 * kMebibyte);
  ends[1].complete(true);
  EXPECT_EQ(budget->used(), kMebibyte);
  ends[0].complete(true);
}

}  // namespace
}  // namespace stag::rpc::rdma
