// Contract: how connections end.
#pragma once

#include <gmock/gmock.h>

#include "testing/fabric_contract/harness.h"

namespace stag::testing {

TEST_P(FabricContract, close_tells_both_sides_in_a_later_turn_and_once) {
  join_and_greet();
  active.outside([&] { active->close(Reason::Shutdown); });
  active.outside([&] { active->close(Reason::TimedOut); });
  ASSERT_TRUE(ended());
  EXPECT_EQ(active.disconnected, Reason::Shutdown);
  EXPECT_NE(passive.disconnected, Reason::None);
  settle();
  EXPECT_EQ(passive.log, std::vector<std::string>{"disconnect"});
}

TEST_P(FabricContract, every_operation_ends_before_the_connection_does) {
  join_and_greet();
  const auto memory = pattern(1 << 20, 1);
  std::vector<std::byte> sink(memory.size());
  const auto source = passive->expose_source(memory);
  constexpr fabric::Token kOperations = 50;
  for (fabric::Token i = 1; i <= kOperations; ++i) {
    if (i % 2 == 0) {
      active->read(*source, sink, i, i);
    } else {
      active->send(Rope::borrow(Bytes(memory).first(1000)), std::nullopt, i, i);
    }
  }
  passive->close(Reason::Shutdown);
  ASSERT_TRUE(ended());
  EXPECT_EQ(active.outcomes.size(), kOperations);
  EXPECT_EQ(active.log.back(), "disconnect");
}

TEST_P(FabricContract, what_is_posted_on_a_connection_that_is_gone_ends_in_a_later_turn) {
  join_and_greet();
  passive.destroy();
  ASSERT_TRUE(run_until([&] { return active.disconnected.has_value(); }));
  std::vector<std::byte> sink(8);
  active.outside([&] {
    active->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, 1);
    active->write(Rope::borrow(bytes_of("x")), {1, 1, 1}, 0, 2);
    active->read({1, 8, 1}, sink, 0, 3);
  });
  for (const fabric::Token token : {1, 2, 3}) {
    ASSERT_TRUE(done(active, token));
    EXPECT_NE(active.outcome(token), Reason::None);
  }
  EXPECT_FALSE(active->expose_sink(sink).ok());
  active.outside([&] { active->close(Reason::Shutdown); });
}

TEST_P(FabricContract, what_is_posted_while_operations_are_failed_ends_as_well) {
  join_and_greet();
  const auto memory = pattern(64, 1);
  active.when_done = [&](fabric::Token token, Reason reason) {
    if (reason == Reason::None || token >= 100) return;
    active.outside([&] { active->send(Rope::borrow(memory), std::nullopt, 0, token + 100); });
  };
  std::vector<std::byte> sink(64);
  const auto source = passive->expose_source(memory);
  passive->close(Reason::Shutdown);
  for (fabric::Token i = 1; i <= 10; ++i) active->read(*source, sink, 0, i);
  ASSERT_TRUE(ended());
  for (const auto& [token, reason] : std::vector(active.outcomes)) {
    if (token >= 100 || reason == Reason::None) continue;
    EXPECT_TRUE(done(active, token + 100));
  }
}

TEST_P(FabricContract, a_destroyed_connection_tells_its_peer_and_nothing_to_its_owner) {
  join_and_greet();
  auto memory = std::make_unique<std::vector<std::byte>>(1 << 20);
  const auto sink = active->expose_sink(*memory);
  active->send(Rope::borrow(*memory).slice(0, 60'000), std::nullopt, 0, 1);
  passive->write(Rope::copy_of(*memory), *sink, 0, 1);
  active.destroy();
  memory.reset();
  const std::size_t events = active.log.size();
  ASSERT_TRUE(run_until([&] { return passive.disconnected.has_value(); }));
  settle();
  EXPECT_EQ(active.log.size(), events);
  EXPECT_TRUE(passive.outcome(1).has_value());
}

TEST_P(FabricContract, exposed_memory_is_free_when_the_connection_is_gone) {
  join_and_greet();
  auto memory = std::make_unique<std::vector<std::byte>>(1 << 20);
  const auto sink = active->expose_sink(*memory);
  const auto bytes = pattern(memory->size(), 1);
  for (int i = 0; i < 4; ++i) passive->write(Rope::borrow(bytes), *sink, 0, fabric::kNoToken);
  active->close(Reason::Shutdown);
  ASSERT_TRUE(run_until([&] { return active.disconnected.has_value(); }));
  memory.reset();
  ASSERT_TRUE(ended());
}

TEST_P(FabricContract, a_connection_may_be_closed_from_inside_an_event) {
  join_and_greet();
  passive.when_received = [&] { passive.outside([&] { passive->close(Reason::Shutdown); }); };
  for (int i = 0; i < 3; ++i)
    active->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, fabric::kNoToken);
  ASSERT_TRUE(ended());
  EXPECT_EQ(passive.disconnected, Reason::Shutdown);
}

TEST_P(FabricContract, a_connection_may_be_destroyed_before_it_is_started) {
  join();
  active.destroy();
  passive.start();
  ASSERT_TRUE(run_until([&] { return passive.disconnected.has_value(); }));
}

TEST_P(FabricContract, what_was_sent_before_a_close_arrives) {
  join_and_greet();
  active->send(Rope::borrow(bytes_of("last words")), std::nullopt, 0, fabric::kNoToken);
  active->close(Reason::Shutdown);
  ASSERT_TRUE(ended());
  ASSERT_EQ(passive.messages.size(), 1u);
  EXPECT_EQ(passive.messages[0].text, "last words");
}

TEST_P(FabricContract, what_was_written_before_a_close_is_in_place_when_the_peer_hears_of_it) {
  join_and_greet();
  std::vector<std::byte> memory(50'000);
  const auto bytes = pattern(memory.size(), 1);
  const auto sink = active->expose_sink(memory);
  passive->write(Rope::borrow(bytes), *sink, 0, 1);
  passive->close(Reason::Shutdown);
  ASSERT_TRUE(ended());
  EXPECT_EQ(passive.outcome(1), Reason::None);
  EXPECT_TRUE(memory == bytes);
}

TEST_P(FabricContract, every_revocation_ends_before_the_connection_does) {
  for (const bool by_the_peer : {false, true}) {
    active = Side();
    passive = Side();
    ASSERT_NO_FATAL_FAILURE(join_and_greet());
    std::vector<std::byte> memory(16 * 64);
    std::vector<std::uint32_t> handles, pending;
    for (std::size_t i = 0; i < 16; ++i)
      handles.push_back(active->expose_sink(MutableBytes(memory).subspan(i * 64, 64))->handle);
    if (by_the_peer) passive.destroy();
    active.outside([&] {
      for (const std::uint32_t handle : handles)
        if (active->revoke(handle) == fabric::Revocation::Pending) pending.push_back(handle);
      if (!by_the_peer) active->close(Reason::Shutdown);
    });
    ASSERT_TRUE(run_until([&] { return active.disconnected.has_value(); }));
    EXPECT_THAT(active.revoked, ::testing::UnorderedElementsAreArray(pending));
    active.destroy();
    if (passive.connected()) passive.destroy();
  }
}

}  // namespace stag::testing
