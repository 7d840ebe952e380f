// What an Observer that follows Calls is told of their records.
#include <gtest/gtest.h>

#include "testing/following_observer.h"
#include "testing/sim_tcp_client.h"

namespace stag::rpc::tcp {
namespace {

using testing::FollowingObserver;
using testing::SimClient;

constexpr std::size_t kRoom = 1000;  // of the socket: less than a Reply

struct Followed : ::testing::Test {
  // The Reply is made.
  void call_and_answer() {
    client.call();
    client.settle();
    client.service.let_go();
    client.settle();
  }
  // That the only Reply left, or did not.
  void expect_answered(bool sent) {
    ASSERT_EQ(observer.answered.size(), 1u);
    EXPECT_EQ(observer.answered[0].xid, client.calls());
    EXPECT_EQ(observer.answered[0].bytes, client.service.reply_size() - oncrpc::kRecordMarkSize);
    EXPECT_EQ(observer.answered[0].sent, sent);
  }
  FollowingObserver observer;
  SimClient client{kRoom, SimClient::small(), nullptr, &observer};
};

TEST_F(Followed, call_has_arrived_when_all_of_its_record_has) {
  const Rope record = SimClient::framed_call(7, 100);
  client.wire.arrive(record.slice(0, record.size() - 1));
  client.settle();
  EXPECT_TRUE(observer.arrived.empty());
  client.wire.arrive(record.slice(record.size() - 1, 1));
  client.settle();
  ASSERT_EQ(observer.arrived.size(), 1u);
  EXPECT_EQ(observer.arrived[0].xid, 7u);
  EXPECT_EQ(observer.arrived[0].bytes, record.size() - oncrpc::kRecordMarkSize);
  EXPECT_EQ(client.service.started, 1u);
}

// The first takes all that the client may have.
TEST(FollowedInTurn, call_has_arrived_though_there_is_no_room_for_its_reply_yet) {
  FollowingObserver observer;
  ServerOptions options = SimClient::small();
  options.max_bytes = 1 << 20;
  SimClient client(kRoom, options, nullptr, &observer);
  client.service.reply_bound = std::nullopt;
  client.call(2);
  client.settle();
  EXPECT_EQ(client.service.started, 1u);
  EXPECT_EQ(observer.arrived.size(), 2u);
}

TEST_F(Followed, reply_is_told_when_the_socket_has_taken_all_of_it) {
  call_and_answer();
  EXPECT_TRUE(observer.answered.empty());
  while (client.wire.take(kRoom) > 0) client.settle();
  expect_answered(true);
}

TEST_F(Followed, reply_whose_connection_ends_while_it_leaves_is_not_sent) {
  call_and_answer();
  client.wire.take(kRoom);
  client.settle();
  client.close();
  expect_answered(false);
}

TEST_F(Followed, reply_of_a_call_whose_connection_has_ended_is_not_sent) {
  client.call();
  client.settle();
  client.close();
  client.settle();
  EXPECT_FALSE(client.open());
  EXPECT_TRUE(observer.answered.empty());
  client.service.let_go();
  client.settle();
  expect_answered(false);
}

TEST_F(Followed, reply_of_a_call_whose_connection_ends_in_the_same_turn_is_not_sent) {
  client.call();
  client.settle();
  client.close();
  client.service.let_go();
  client.settle();
  expect_answered(false);
}

TEST(NotFollowed, calls_are_not_told) {
  FollowingObserver observer(/*follows=*/false);
  SimClient client(1 << 20, SimClient::small(), nullptr, &observer);
  client.service.hold = false;
  client.call(3);
  client.settle();
  EXPECT_EQ(client.service.answered, 3u);
  EXPECT_TRUE(observer.arrived.empty() && observer.answered.empty());
}

}  // namespace
}  // namespace stag::rpc::tcp
