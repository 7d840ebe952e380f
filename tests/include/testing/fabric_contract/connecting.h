// Contract: how connections come to be.
#pragma once

#include "testing/fabric_contract/harness.h"

namespace stag::testing {

TEST_P(FabricContract, carries_private_data_both_ways) {
  options.private_data = byte_vector("asks");
  acceptor.answer.private_data = byte_vector("answers");
  join();
  EXPECT_TRUE(carries(acceptor.private_data, "asks"));
  EXPECT_TRUE(carries(text_of(passive->peer_private_data()), "asks"));
  EXPECT_TRUE(carries(text_of(active->peer_private_data()), "answers"));
}

TEST_P(FabricContract, carries_the_private_data_that_fits_what_the_connection_can_do) {
  options.private_data = byte_vector("asks");
  options.private_data_without_invalidation = byte_vector("asks without");
  acceptor.answer.private_data = byte_vector("answers");
  acceptor.answer.private_data_without_invalidation = byte_vector("answers without");
  join();
  const auto said = [](fabric::Connection& by, const std::string& words) {
    return by.parameters().remote_invalidation ? words : words + " without";
  };
  EXPECT_TRUE(carries(acceptor.private_data, said(*active, "asks")));
  EXPECT_TRUE(carries(text_of(passive->peer_private_data()), said(*active, "asks")));
  EXPECT_TRUE(carries(text_of(active->peer_private_data()), said(*passive, "answers")));
}

TEST_P(FabricContract, names_both_ends_of_a_connection) {
  join();
  EXPECT_EQ(active->peer_address(), listener->local_address());
  EXPECT_EQ(passive->local_address(), listener->local_address());
  EXPECT_EQ(active->local_address(), passive->peer_address());
  EXPECT_EQ(acceptor.peer, passive->peer_address());
  EXPECT_EQ(&active->loop(), &loop());
}

TEST_P(FabricContract, listens_on_a_free_port_when_asked_for_port_0_and_never_twice_on_one) {
  listen();
  EXPECT_NE(listener->local_address().port, 0);
  TestAcceptor other;
  const auto second = fabric().listen(listener->local_address(), {}, other);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error(), Reason::AddressInUse);
}

TEST_P(FabricContract, connecting_to_nobody_is_refused) {
  listen();
  const Address address = listener->local_address();
  listener.reset();
  settle();
  const auto outcome = connect(address);
  ASSERT_TRUE(outcome && !outcome->ok());
  EXPECT_EQ(outcome->error(), Reason::ConnectionRefused);
}

TEST_P(FabricContract, a_listener_may_turn_a_connection_down) {
  acceptor.rejection = Reason::Shutdown;
  listen();
  const auto outcome = connect(listener->local_address());
  ASSERT_TRUE(outcome.has_value());
  EXPECT_FALSE(outcome->ok());
  EXPECT_EQ(acceptor.requests, 1);
  settle();
  EXPECT_TRUE(acceptor.arrived.empty());
}

TEST_P(FabricContract, a_listener_has_no_more_connections_than_it_may) {
  fabric::ListenOptions limited;
  limited.max_connections = 1;
  auto made = fabric().listen(harness->any_address(), limited, acceptor);
  ASSERT_TRUE(made.ok());
  listener = std::move(*made);
  join();
  const auto outcome = connect(listener->local_address());
  ASSERT_TRUE(outcome.has_value());
  EXPECT_FALSE(outcome->ok());
  EXPECT_EQ(acceptor.requests, 1);
}

TEST_P(FabricContract, a_changed_limit_of_connections_holds_for_those_that_come_then) {
  listen();
  join();
  listener->limit_connections(1, 1);
  const auto refused = connect(listener->local_address());
  ASSERT_TRUE(refused.has_value());
  EXPECT_FALSE(refused->ok());
  EXPECT_EQ(acceptor.requests, 1);
  listener->limit_connections(2, 2);
  const auto accepted = connect(listener->local_address());
  ASSERT_TRUE(accepted.has_value());
  EXPECT_TRUE(accepted->ok());
}

TEST_P(FabricContract, connecting_can_be_cancelled) {
  listen();
  CancelSource cancel;
  std::optional<ConnectOutcome> outcome;
  detach(connect_into(&fabric(), listener->local_address(), options, cancel, &outcome));
  EXPECT_FALSE(outcome.has_value());
  cancel.cancel();
  ASSERT_TRUE(run_until([&] { return outcome.has_value(); }));
  ASSERT_FALSE(outcome->ok());
  EXPECT_EQ(outcome->error(), Reason::Cancelled);
}

TEST_P(FabricContract, connecting_with_a_token_already_cancelled_fails) {
  listen();
  CancelSource cancel;
  cancel.cancel();
  const auto outcome = connect(listener->local_address(), cancel);
  ASSERT_TRUE(outcome && !outcome->ok());
  EXPECT_EQ(outcome->error(), Reason::Cancelled);
}

TEST_P(FabricContract, private_data_that_is_too_long_fails_the_connect) {
  listen();
  for (const bool other : {false, true}) {
    options.private_data.resize(other ? 0 : 70'000);
    if (other) options.private_data_without_invalidation.emplace(70'000);
    const auto outcome = connect(listener->local_address());
    ASSERT_TRUE(outcome && !outcome->ok());
    EXPECT_EQ(outcome->error(), Reason::PrivateDataTooLong);
  }
}

TEST_P(FabricContract, each_side_keeps_no_more_reads_outstanding_than_the_other_accepts) {
  options.inbound_reads = 3;
  options.outbound_reads = 9;
  acceptor.answer.inbound_reads = 5;
  acceptor.answer.outbound_reads = 16;
  join();
  EXPECT_EQ(active->parameters().outbound_reads, harness->tells_read_depths_apart() ? 5u : 3u);
  EXPECT_LE(active->parameters().outbound_reads, passive->parameters().inbound_reads);
  EXPECT_EQ(passive->parameters().outbound_reads, 3u);
  EXPECT_LE(passive->parameters().outbound_reads, active->parameters().inbound_reads);
}

TEST_P(FabricContract, the_passive_side_is_silent_until_the_first_message) {
  join();
  active.start();
  passive.start();
  passive->send(Rope::borrow(bytes_of("too early")), std::nullopt, 0, 1);
  settle();
  EXPECT_TRUE(active.messages.empty());
  EXPECT_TRUE(passive.outcomes.empty());
  active->send(Rope::borrow(bytes_of("first")), std::nullopt, 0, fabric::kNoToken);
  ASSERT_TRUE(run_until([&] { return active.messages.size() == 1; }));
  EXPECT_EQ(active.messages[0].text, "too early");
  EXPECT_EQ(passive.messages.at(0).text, "first");
  EXPECT_TRUE(done(passive, 1));
}

TEST_P(FabricContract, nothing_is_lost_before_start) {
  join();
  active.start();
  for (const char* text : {"one", "two", "three"})
    active->send(Rope::borrow(bytes_of(text)), std::nullopt, 0, fabric::kNoToken);
  settle();
  EXPECT_TRUE(passive.log.empty());
  passive.start();
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 3; }));
  EXPECT_EQ(passive.messages[2].text, "three");
}

TEST_P(FabricContract, a_disconnect_before_start_is_told_after_it) {
  join();
  active.start();
  active.destroy();
  settle();
  passive.start();
  ASSERT_TRUE(run_until([&] { return passive.disconnected.has_value(); }));
  EXPECT_EQ(passive.log, std::vector<std::string>{"disconnect"});
}

TEST_P(FabricContract, connections_live_on_when_their_listener_is_gone) {
  join_and_greet();
  listener.reset();
  active->send(Rope::borrow(bytes_of("still there")), std::nullopt, 0, fabric::kNoToken);
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 1; }));
  EXPECT_FALSE(active.disconnected || passive.disconnected);
}

TEST_P(FabricContract, a_listener_serves_many_connections_and_each_has_its_own_peer) {
  listen();
  constexpr int kPairs = 5;
  std::vector<std::unique_ptr<Side>> actives, passives;
  for (int i = 0; i < kPairs; ++i) {
    join();
    actives.push_back(std::make_unique<Side>(std::move(active)));
    passives.push_back(std::make_unique<Side>(std::move(passive)));
    actives.back()->start();
    passives.back()->start();
  }
  for (int i = 0; i < kPairs; ++i)
    (*actives[i])->send(Rope::copy_of(bytes_of(std::to_string(i))), std::nullopt, 0, 1);
  for (int i = 0; i < kPairs; ++i) {
    ASSERT_TRUE(run_until([&] { return passives[i]->messages.size() == 1; }));
    EXPECT_EQ(passives[i]->messages[0].text, std::to_string(i));
  }
  for (auto& side : actives) side->destroy();
  for (auto& side : passives) side->destroy();
}

}  // namespace stag::testing
