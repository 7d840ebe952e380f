#include "fabric/iwarp/transmit_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stag::fabric {
namespace {

constexpr std::size_t kLimit = 100;
constexpr std::size_t kTurn = 200;

class TransmitQueueTest : public ::testing::Test {
 protected:
  void post(OperationKind kind, Flow flow, Token token, std::size_t size = 10) {
    Operation operation;
    operation.kind = kind;
    operation.flow = flow;
    operation.token = token;
    if (kind != OperationKind::Read) operation.bytes = Rope::borrow(Bytes(bytes_).first(size));
    if (kind == OperationKind::Write)
      operation.remote = {7, static_cast<std::uint32_t>(size), 1000};
    queue_.post(std::move(operation));
  }
  // Everything in the order it leaves: kind, flow and token of each message.
  std::string drain(bool may_read = true) {
    std::string order;
    while (auto outgoing = queue_.next(may_read)) {
      if (!order.empty()) order += ' ';
      if (outgoing->response) {
        order += "A" + std::to_string(outgoing->response->size);
      } else {
        order += "SWR"[static_cast<int>(outgoing->operation.kind)];
        order += std::to_string(outgoing->operation.flow) + "." +
                 std::to_string(outgoing->operation.token);
      }
    }
    return order;
  }
  void respond(std::uint32_t size) { queue_.respond({1, 0, size, 2, 0}); }

  std::vector<std::byte> bytes_{1000};
  TransmitQueue queue_{kLimit, kTurn};
};

TEST_F(TransmitQueueTest, keeps_the_order_of_a_flow) {
  post(OperationKind::Write, 1, 1);
  post(OperationKind::Write, 1, 2);
  post(OperationKind::Send, 1, 3);
  post(OperationKind::Read, 1, 4);
  post(OperationKind::Send, 1, 5);
  EXPECT_EQ(drain(), "W1.1 W1.2 S1.3 R1.4 S1.5");
  EXPECT_TRUE(queue_.empty());
}

// A requester that posts one long Send after the other must still answer RDMA Reads.
TEST_F(TransmitQueueTest, lets_Sends_go_first_only_for_a_turn) {
  respond(50);
  post(OperationKind::Write, 1, 1);
  for (Flow flow = 2; flow < 8; ++flow) post(OperationKind::Send, flow, 9, kTurn / 2);
  EXPECT_EQ(drain(), "S2.9 S3.9 W1.1 S4.9 S5.9 A50 S6.9 S7.9");
}

TEST_F(TransmitQueueTest, lets_a_small_message_of_another_flow_go_first) {
  post(OperationKind::Write, 1, 1, 300);
  post(OperationKind::Send, 1, 2);
  auto first = queue_.next(true);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->operation.bytes.size(), kLimit);
  post(OperationKind::Send, 2, 3);
  EXPECT_EQ(drain(), "S2.3 W1.0 W1.1 S1.2");
}

TEST_F(TransmitQueueTest, cuts_a_long_write_and_the_last_part_carries_the_token) {
  post(OperationKind::Write, 1, 9, 250);
  std::uint64_t at = 1000;
  std::vector<Token> tokens;
  while (auto outgoing = queue_.next(true)) {
    EXPECT_EQ(outgoing->operation.remote.offset, at);
    EXPECT_EQ(outgoing->operation.remote.handle, 7u);
    EXPECT_EQ(outgoing->operation.bytes.pieces()[0].data(), bytes_.data() + (at - 1000));
    at += outgoing->operation.bytes.size();
    tokens.push_back(outgoing->operation.token);
  }
  EXPECT_EQ(at, 1250u);
  EXPECT_EQ(tokens, (std::vector<Token>{kNoToken, kNoToken, 9}));
}

TEST_F(TransmitQueueTest, lets_bulk_of_different_flows_and_read_responses_take_turns) {
  post(OperationKind::Write, 1, 1, 300);
  post(OperationKind::Write, 2, 2, 500);
  respond(50);
  respond(60);
  EXPECT_EQ(drain(), "W1.0 A50 W1.0 A60 W2.0 W2.0 W1.1 W2.0 W2.0 W2.2");
}

TEST_F(TransmitQueueTest, holds_back_only_the_flow_whose_read_must_wait) {
  post(OperationKind::Read, 1, 1);
  post(OperationKind::Send, 1, 2);
  post(OperationKind::Send, 2, 3);
  EXPECT_EQ(drain(false), "S2.3");
  EXPECT_FALSE(queue_.empty());
  EXPECT_EQ(drain(true), "R1.1 S1.2");
}

TEST_F(TransmitQueueTest, drops_everything_and_starts_afresh) {
  for (Token token = 1; token <= 9; ++token)
    post(static_cast<OperationKind>(token % 3), token % 2, token, 150);
  std::vector<Token> dropped;
  while (const auto operation = queue_.drop()) dropped.push_back(operation->token);
  EXPECT_EQ(dropped.size(), 9u);
  EXPECT_TRUE(queue_.empty());
  post(OperationKind::Send, 1, 1);
  EXPECT_EQ(drain(), "S1.1");
}

}  // namespace
}  // namespace stag::fabric
