// Contract: Sends, receive credit, flows.
#pragma once

#include "testing/fabric_contract/harness.h"

namespace stag::testing {

TEST_P(FabricContract, sends_of_a_flow_arrive_in_the_order_posted) {
  PROVES("R8166-2.3.2-b", "R8267-6.7.1-c");
  join_and_greet();
  constexpr int kCount = 200;
  for (int i = 0; i < kCount; ++i)
    active->send(Rope::copy_of(bytes_of(std::to_string(i))), std::nullopt, 7, fabric::kNoToken);
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == kCount; }));
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(passive.messages[i].text, std::to_string(i));
}

TEST_P(FabricContract, sends_beyond_the_depth_asked_for_wait_and_all_arrive_in_the_order_posted) {
  options.sends_max = acceptor.answer.sends_max = 4;
  join_and_greet();
  constexpr fabric::Token kCount = 60;
  for (fabric::Token i = 1; i <= kCount; ++i) {
    active->send(Rope::copy_of(bytes_of(std::to_string(i))), std::nullopt, 7, i);
    passive->send(Rope::copy_of(bytes_of(std::to_string(i))), std::nullopt, 7, i);
  }
  for (Side* const side : {&active, &passive}) {
    ASSERT_TRUE(run_until(
        [&] { return side->messages.size() == kCount && side->outcomes.size() == kCount; }));
    for (fabric::Token i = 1; i <= kCount; ++i) {
      EXPECT_EQ(side->messages[i - 1].text, std::to_string(i));
      EXPECT_EQ(side->outcome(i), Reason::None);
    }
  }
}

TEST_P(FabricContract, a_message_arrives_whole_whatever_its_size_and_pieces) {
  join_and_greet();
  for (const std::size_t size : {1u, 3u, 1024u, 4096u, 65'535u, 65'536u, 70'000u}) {
    const auto bytes = pattern(size, 1);
    Rope rope;
    for (std::size_t at = 0, piece = 1; at < size; at += piece, piece = piece * 3 + 1)
      rope.append(Buffer::borrow(Bytes(bytes).subspan(at, std::min(piece, size - at))));
    active->send(rope, std::nullopt, 0, size);
    ASSERT_TRUE(run_until([&] { return passive.messages.size() == 1; })) << size;
    EXPECT_EQ(passive.messages[0].text, text_of(bytes)) << size;
    ASSERT_TRUE(done(active, size));
    EXPECT_EQ(active.outcome(size), Reason::None);
    passive.messages.clear();
  }
}

TEST_P(FabricContract, an_empty_message_is_a_message) {
  join_and_greet();
  active->send(Rope(), std::nullopt, 0, 1);
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 1; }));
  EXPECT_EQ(passive.messages[0].text, "");
  EXPECT_TRUE(done(active, 1));
}

TEST_P(FabricContract, a_send_may_be_answered_from_inside_on_receive) {
  join_and_greet();
  passive.when_received = [&] {
    const std::string answer = "re: " + passive.messages.back().text;
    passive.outside(
        [&] { passive->send(Rope::copy_of(bytes_of(answer)), std::nullopt, 0, fabric::kNoToken); });
  };
  active->send(Rope::borrow(bytes_of("question")), std::nullopt, 0, fabric::kNoToken);
  ASSERT_TRUE(run_until([&] { return active.messages.size() == 1; }));
  EXPECT_EQ(active.messages[0].text, "re: question");
}

TEST_P(FabricContract, the_bytes_of_a_send_are_the_owners_again_when_it_is_done) {
  join_and_greet();
  auto bytes = pattern(50'000, 3);
  const std::string sent(text_of(bytes));
  active.when_done = [&](fabric::Token, Reason) {
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
  };
  active->send(Rope::borrow(bytes), std::nullopt, 0, 1);
  ASSERT_TRUE(done(active, 1));
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 1; }));
  EXPECT_EQ(passive.messages[0].text, sent);
}

TEST_P(FabricContract, operations_of_different_flows_all_arrive_and_each_flow_keeps_its_order) {
  join_and_greet();
  constexpr int kFlows = 5, kEach = 40;
  for (int i = 0; i < kEach; ++i) {
    for (int flow = 0; flow < kFlows; ++flow) {
      const std::string text = std::to_string(flow) + ' ' + std::to_string(i);
      active->send(Rope::copy_of(bytes_of(text)), std::nullopt, flow, fabric::kNoToken);
    }
  }
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == kFlows * kEach; }));
  std::vector<int> next(kFlows, 0);
  for (const auto& message : passive.messages) {
    const int flow = message.text[0] - '0';
    EXPECT_EQ(message.text.substr(2), std::to_string(next[flow]++));
  }
}

TEST_P(FabricContract, one_message_beyond_the_receive_credit_ends_the_connection) {
  acceptor.answer.receive = {3, 4096};
  join();
  active.start();
  passive.start();
  for (int i = 0; i < 4; ++i) active->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, i + 1);
  ASSERT_TRUE(ended());
  EXPECT_EQ(passive.messages.size(), 3u);
  EXPECT_EQ(passive.disconnected, Reason::ReceiveOverflow);
}

TEST_P(FabricContract, added_receive_credit_counts_on_top) {
  acceptor.answer.receive = {2, 4096};
  join();
  active.start();
  passive.start();
  passive.when_received = [&] { passive->add_receive_credit({1, 4096}); };
  for (int sent = 0; sent < 20; sent += 2) {
    for (int i = 0; i < 2; ++i)
      active->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, fabric::kNoToken);
    ASSERT_TRUE(run_until([&] { return passive.messages.size() == sent + 2u; }));
  }
  settle();
  EXPECT_FALSE(passive.disconnected);
}

TEST_P(FabricContract, a_message_longer_than_a_receive_ends_the_connection) {
  acceptor.answer.receive = {10, 1000};
  join();
  active.start();
  passive.start();
  const auto bytes = pattern(1001, 1);
  active->send(Rope::borrow(Bytes(bytes).first(1000)), std::nullopt, 0, 1);
  active->send(Rope::borrow(bytes), std::nullopt, 0, 2);
  ASSERT_TRUE(ended());
  ASSERT_EQ(passive.messages.size(), 1u);
  EXPECT_EQ(passive.messages[0].text.size(), 1000u);
  EXPECT_EQ(passive.disconnected, Reason::MessageTooLong);
}

TEST_P(FabricContract, a_message_longer_than_the_receives_added_last_ends_the_connection) {
  acceptor.answer.receive = {2, 4096};
  join();
  active.start();
  passive.start();
  const auto bytes = pattern(1001, 1);
  passive->add_receive_credit({1, 1000});
  active->send(Rope::borrow(Bytes(bytes).first(1000)), std::nullopt, 0, 1);
  active->send(Rope::borrow(bytes), std::nullopt, 0, 2);
  ASSERT_TRUE(ended());
  EXPECT_EQ(passive.messages.size(), 1u);
  EXPECT_EQ(passive.disconnected, Reason::MessageTooLong);
}

TEST_P(FabricContract, progress_is_what_the_peer_sends_and_nothing_that_is_not) {
  join_and_greet();
  const auto bytes = pattern(1000, 1);
  for (Side* const from : {&active, &passive}) {
    Side& to = from == &active ? passive : active;
    const std::uint64_t before = to->progress_mark();
    (*from)->send(Rope::borrow(bytes), std::nullopt, 0, 1);
    ASSERT_TRUE(run_until([&] { return to.messages.size() == 1; }) && done(*from, 1));
    EXPECT_NE(to->progress_mark(), before);
  }
  settle();
  // All that this side has sent was there before the answer.
  const std::uint64_t idle = active->progress_mark();
  settle();
  EXPECT_EQ(active->progress_mark(), idle);
}

TEST_P(FabricContract, send_with_invalidate_revokes_the_one_handle_it_names_and_says_so) {
  PROVES("R8797-3.2-a", "R8797-3.2-b");
  join_and_greet();
  if (!passive->parameters().remote_invalidation) GTEST_SKIP() << "the device cannot";
  std::vector<std::byte> first(64), second(64);
  const auto gone = active->expose_sink(first);
  const auto stays = active->expose_sink(second);
  const auto bytes = pattern(64, 5);
  passive->write(Rope::borrow(bytes), *gone, 0, fabric::kNoToken);
  passive->send(Rope::borrow(bytes_of("done")), gone->handle, 0, 1);
  ASSERT_TRUE(run_until([&] { return active.messages.size() == 1; }));
  EXPECT_EQ(active.messages[0].invalidated, gone->handle);
  EXPECT_EQ(first, bytes);
  // The other one still works; the one named does not.
  passive->write(Rope::borrow(bytes), *stays, 0, fabric::kNoToken);
  passive->send(Rope::borrow(bytes_of("more")), std::nullopt, 0, 2);
  ASSERT_TRUE(run_until([&] { return active.messages.size() == 2; }));
  EXPECT_EQ(active.messages[1].invalidated, std::nullopt);
  EXPECT_EQ(second, bytes);
  std::fill(first.begin(), first.end(), std::byte{0});
  passive->write(Rope::borrow(bytes), *gone, 0, fabric::kNoToken);
  ASSERT_TRUE(ended());
  EXPECT_EQ(first, std::vector<std::byte>(64));
}

TEST_P(FabricContract, what_the_peer_invalidated_is_free_without_a_revocation) {
  join_and_greet();
  if (!passive->parameters().remote_invalidation) GTEST_SKIP() << "the device cannot";
  auto memory = std::make_unique<std::vector<std::byte>>(64);
  const auto sink = active->expose_sink(*memory);
  passive->send(Rope::borrow(bytes_of("done")), sink->handle, 0, 1);
  active.when_received = [&] { memory.reset(); };
  ASSERT_TRUE(run_until([&] { return active.messages.size() == 1; }));
  EXPECT_EQ(active->revoke(sink->handle), fabric::Revocation::Done);
  settle();
  EXPECT_TRUE(active.revoked.empty());
  EXPECT_FALSE(active.disconnected);
}

TEST_P(FabricContract, send_with_invalidate_of_an_unknown_handle_ends_the_connection) {
  join_and_greet();
  if (!passive->parameters().remote_invalidation) GTEST_SKIP() << "the device cannot";
  std::vector<std::byte> memory(64);
  const auto exposed = active->expose_sink(memory);
  passive->send(Rope::borrow(bytes_of("x")), exposed->handle ^ 0x5a5a5a5a, 0, 1);
  ASSERT_TRUE(ended());
  EXPECT_TRUE(active.messages.empty());
}

TEST_P(FabricContract, counts_what_it_carries) {
  join();
  active.start();
  passive.start();
  std::vector<std::byte> memory(5000), sink(2000);
  const auto target = active->expose_sink(memory);
  const auto source = active->expose_source(Bytes(memory));
  active->send(Rope::borrow(bytes_of("go")), std::nullopt, 0, 1);
  passive->write(Rope::borrow(Bytes(memory)), *target, 0, 2);
  passive->read(*source, sink, 0, 3);
  ASSERT_TRUE(done(active, 1) && done(passive, 2) && done(passive, 3));
  EXPECT_EQ(active->traffic().sends_out, 1u);
  EXPECT_EQ(passive->traffic().sends_in, 1u);
  EXPECT_EQ(passive->traffic().write_bytes_out, 5000u);
  EXPECT_EQ(passive->traffic().reads_out, 1u);
  EXPECT_EQ(passive->traffic().read_bytes_in, 2000u);
  if (!harness->counts_the_peers_accesses()) return;
  EXPECT_EQ(active->traffic().write_bytes_in, 5000u);
  EXPECT_EQ(active->traffic().reads_in, 1u);
  EXPECT_EQ(active->traffic().read_bytes_out, 2000u);
}

}  // namespace stag::testing
