// Contract: exposed memory, RDMA Write and RDMA Read.
#pragma once

#include <set>

#include "testing/fabric_contract/harness.h"

namespace stag::testing {

// Part of exposed memory, as the peer may name it.
inline fabric::RemoteMemory part(fabric::RemoteMemory memory, std::uint32_t from,
                                 std::uint32_t length) {
  return {memory.handle, length, memory.offset + from};
}

TEST_P(FabricContract, what_was_written_before_a_send_is_in_place_when_the_send_arrives) {
  PROVES("R8166-2.3.2-c");
  join_and_greet();
  std::vector<std::byte> memory(3 << 20);
  const auto bytes = pattern(memory.size(), 2);
  const auto sink = active->expose_sink(memory);
  ASSERT_TRUE(sink.ok());
  bool whole = false;
  active.when_received = [&] { whole = memory == bytes; };
  passive->write(Rope::borrow(bytes), *sink, 9, fabric::kNoToken);
  passive->send(Rope::borrow(bytes_of("written")), std::nullopt, 9, fabric::kNoToken);
  ASSERT_TRUE(run_until([&] { return active.messages.size() == 1; }));
  EXPECT_TRUE(whole);
}

TEST_P(FabricContract, writes_and_reads_tell_only_their_initiator) {
  PROVES("R8166-2.3.2-d");
  join_and_greet();
  std::vector<std::byte> memory(4096), sink(4096);
  const auto target = active->expose_sink(memory);
  const auto source = active->expose_source(memory);
  active.log.clear();
  passive->write(Rope::borrow(sink), *target, 0, 1);
  passive->read(*source, sink, 0, 2);
  ASSERT_TRUE(done(passive, 1) && done(passive, 2));
  settle();
  EXPECT_TRUE(active.log.empty());
}

TEST_P(FabricContract, a_write_reaches_exactly_the_bytes_it_names) {
  join_and_greet();
  std::vector<std::byte> memory(1000, std::byte{0xaa});
  const auto sink = active->expose_sink(MutableBytes(memory).subspan(100, 800));
  const auto bytes = pattern(300, 4);
  passive->write(Rope::borrow(bytes), part(*sink, 50, 700), 0, 1);
  passive->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, fabric::kNoToken);
  ASSERT_TRUE(run_until([&] { return active.messages.size() == 1; }));
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const bool inside = i >= 150 && i < 450;
    ASSERT_EQ(memory[i], inside ? bytes[i - 150] : std::byte{0xaa}) << i;
  }
}

TEST_P(FabricContract, a_provider_that_knows_how_far_a_sink_was_filled_says_so) {
  join_and_greet();
  std::vector<std::byte> memory(1000), other(1000);
  const auto sink = active->expose_sink(memory);
  const auto untouched = active->expose_sink(other);
  if (!active->filled(sink->handle)) GTEST_SKIP() << "no device knows";
  EXPECT_EQ(active->filled(sink->handle), 0u);
  const auto bytes = pattern(300, 4);
  // The end of it comes first.
  passive->write(Rope::borrow(bytes), part(*sink, 600, 300), 0, fabric::kNoToken);
  passive->write(Rope::borrow(bytes), part(*sink, 0, 300), 0, fabric::kNoToken);
  std::optional<std::size_t> when_invalidated;
  active.when_received = [&] { when_invalidated = active->filled(sink->handle); };
  std::optional<std::uint32_t> invalidate;
  if (passive->parameters().remote_invalidation) invalidate = sink->handle;
  passive->send(Rope::borrow(bytes_of("x")), invalidate, 0, fabric::kNoToken);
  ASSERT_TRUE(run_until([&] { return active.messages.size() == 1; }));
  EXPECT_EQ(when_invalidated, 900u);
  EXPECT_EQ(active->filled(untouched->handle), 0u);
}

TEST_P(FabricContract, a_read_fetches_as_much_as_its_sink_holds) {
  join_and_greet();
  const auto memory = pattern(1000, 6);
  const auto source = active->expose_source(memory);
  std::vector<std::byte> sink(400, std::byte{0xaa});
  passive->read(part(*source, 100, 900), MutableBytes(sink).first(300), 0, 1);
  ASSERT_TRUE(done(passive, 1));
  EXPECT_EQ(passive.outcome(1), Reason::None);
  for (std::size_t i = 0; i < sink.size(); ++i)
    ASSERT_EQ(sink[i], i < 300 ? memory[100 + i] : std::byte{0xaa}) << i;
}

TEST_P(FabricContract, moves_megabytes_both_ways) {
  join_and_greet();
  const auto bytes = pattern(8 << 20, 7);
  std::vector<std::byte> far(bytes.size()), near(bytes.size());
  const auto sink = active->expose_sink(far);
  const auto source = active->expose_source(bytes);
  passive->write(Rope::borrow(bytes), *sink, 1, 1);
  passive->read(*source, near, 2, 2);
  ASSERT_TRUE(done(passive, 1) && done(passive, 2));
  EXPECT_TRUE(near == bytes);
  passive->send(Rope::borrow(bytes_of("x")), std::nullopt, 1, fabric::kNoToken);
  ASSERT_TRUE(run_until([&] { return active.messages.size() == 1; }));
  EXPECT_TRUE(far == bytes);
}

TEST_P(FabricContract, reads_beyond_the_limit_wait_and_all_are_answered) {
  acceptor.answer.outbound_reads = 2;
  join_and_greet();
  const auto memory = pattern(64 * 1024, 8);
  const auto source = active->expose_source(memory);
  std::vector<std::byte> sink(memory.size());
  constexpr std::uint32_t kReads = 64;
  for (std::uint32_t i = 0; i < kReads; ++i)
    passive->read(part(*source, i * 1024, 1024), MutableBytes(sink).subspan(i * 1024, 1024), i,
                  i + 1);
  ASSERT_TRUE(run_until([&] { return passive.outcomes.size() == kReads; }));
  EXPECT_EQ(sink, memory);
}

TEST_P(FabricContract, handles_differ_and_any_handle_and_offset_are_carried) {
  PROVES("R8166-2.3.2-a");
  join_and_greet();
  std::vector<std::byte> memory(256 * 8);
  const auto bytes = pattern(memory.size(), 9);
  std::set<std::uint32_t> handles;
  std::vector<fabric::RemoteMemory> sinks;
  for (std::size_t i = 0; i < 256; ++i) {
    const auto sink = active->expose_sink(MutableBytes(memory).subspan(i * 8, 8));
    ASSERT_TRUE(sink.ok());
    EXPECT_EQ(sink->length, 8u);
    EXPECT_TRUE(handles.insert(sink->handle).second);
    sinks.push_back(*sink);
  }
  // As a peer learns of handles: by a message sent after them.
  const std::size_t told = passive.messages.size() + 1;
  active->send(Rope::borrow(bytes_of("handles")), std::nullopt, 0, fabric::kNoToken);
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == told; }));
  for (std::size_t i = 0; i < 256; ++i)
    passive->write(Rope::borrow(Bytes(bytes).subspan(i * 8, 8)), sinks[i], 0, fabric::kNoToken);
  passive->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, fabric::kNoToken);
  ASSERT_TRUE(run_until([&] { return active.messages.size() == 1; }));
  EXPECT_EQ(memory, bytes);
}

TEST_P(FabricContract, what_is_longer_than_a_handle_may_cover_is_not_exposed) {
  join();
  const std::size_t limit = active->parameters().max_registration;
  // Never touched: only its length counts.
  std::byte byte{};
  const auto refused = active->expose_source(Bytes(&byte, limit + 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(), Reason::RegistrationTooLong);
}

// Each of these ends the connection and leaves memory as it was.
struct BadAccess {
  const char* what;
  bool write;  // else read
  bool sink;   // of memory exposed as a sink, else as a source
  std::int64_t from;
  std::uint32_t length;
};
inline constexpr BadAccess kBadAccesses[] = {
    {"writes into a source", true, false, 0, 8},
    {"reads from a sink", false, true, 0, 8},
    {"writes one byte too far", true, true, 93, 8},
    {"writes from one byte too early", true, true, -1, 8},
    {"writes far outside", true, true, 1 << 30, 8},
    {"reads one byte too far", false, false, 93, 8},
    {"reads from one byte too early", false, false, -1, 8},
    {"reads far before", false, false, -(std::int64_t{1} << 33), 8},
    {"reads more than there is", false, false, 0, 101},
};

TEST_P(FabricContract, an_access_without_the_right_or_out_of_bounds_ends_the_connection) {
  PROVES("R8166-8.1-b");
  for (const BadAccess& bad : kBadAccesses) {
    SCOPED_TRACE(bad.what);
    if (bad.sink && !bad.write && !harness->refuses_reads_of_sinks()) continue;
    std::vector<std::byte> memory(300, std::byte{0xaa}), mine(200, std::byte{0x55});
    const MutableBytes exposed = MutableBytes(memory).subspan(100, 100);
    active = Side();
    passive = Side();
    ASSERT_NO_FATAL_FAILURE(join_and_greet());
    const auto known = bad.sink ? active->expose_sink(exposed) : active->expose_source(exposed);
    const fabric::RemoteMemory named{known->handle, bad.length,
                                     known->offset + static_cast<std::uint64_t>(bad.from)};
    const MutableBytes local = MutableBytes(mine).first(bad.length);
    if (bad.write) {
      passive->write(Rope::borrow(local), named, 0, 1);
    } else {
      passive->read(named, local, 0, 1);
    }
    ASSERT_TRUE(ended());
    EXPECT_EQ(memory, std::vector<std::byte>(300, std::byte{0xaa}));
    EXPECT_TRUE(bad.write || passive.outcome(1) != Reason::None);
    EXPECT_TRUE(active.outcomes.empty());
    active.destroy();
    passive.destroy();
  }
}

TEST_P(FabricContract, a_handle_of_another_connection_opens_nothing) {
  PROVES("R8166-8.1.1-a");
  std::vector<std::byte> memory(64, std::byte{0xaa}), other(64, std::byte{0xbb});
  join();
  Side first_active = std::move(active), first_passive = std::move(passive);
  first_active.start();
  first_passive.start();
  const auto mine = first_active->expose_sink(memory);
  active = Side();
  passive = Side();
  join_and_greet();
  const auto theirs = active->expose_sink(other);
  ASSERT_NE(mine->handle, theirs->handle);
  const auto bytes = pattern(64, 1);
  passive->write(Rope::borrow(bytes), *mine, 0, 1);
  ASSERT_TRUE(ended());
  EXPECT_EQ(memory, std::vector<std::byte>(64, std::byte{0xaa}));
  EXPECT_FALSE(first_passive.disconnected);
  first_active.destroy();
  first_passive.destroy();
}

// Revokes and waits until the memory is the owner's.
inline void revoke_and_wait(FabricHarness& harness, Side& side, std::uint32_t handle,
                            bool abandon = false) {
  fabric::Revocation revocation{};
  side.outside([&] { revocation = abandon ? side->abandon(handle) : side->revoke(handle); });
  if (revocation == fabric::Revocation::Done) return;
  ASSERT_TRUE(harness.run_until([&] {
    return std::find(side.revoked.begin(), side.revoked.end(), handle) != side.revoked.end();
  }));
}

TEST_P(FabricContract, the_bytes_of_a_write_are_the_owners_again_when_it_is_done) {
  join_and_greet();
  for (const std::size_t size : {1'000u, 50'000u, 3u << 20}) {
    SCOPED_TRACE(size);
    std::vector<std::byte> memory(size);
    const auto sink = active->expose_sink(memory);
    const auto sent = pattern(size, 3);
    auto bytes = sent;
    passive.when_done = [&](fabric::Token, Reason) {
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
    };
    const std::size_t told = active.messages.size() + 1;
    passive->write(Rope::borrow(bytes), *sink, 0, size);
    passive->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, fabric::kNoToken);
    ASSERT_TRUE(done(passive, size));
    EXPECT_EQ(passive.outcome(size), Reason::None);
    ASSERT_TRUE(run_until([&] { return active.messages.size() == told; }));
    EXPECT_TRUE(memory == sent);
    revoke_and_wait(*harness, active, sink->handle);
  }
}

TEST_P(FabricContract, a_revoked_handle_opens_nothing) {
  join_and_greet();
  auto memory = std::make_unique<std::vector<std::byte>>(64, std::byte{0xaa});
  const auto sink = active->expose_sink(*memory);
  revoke_and_wait(*harness, active, sink->handle);
  memory.reset();
  const auto bytes = pattern(64, 1);
  passive->write(Rope::borrow(bytes), *sink, 0, 1);
  ASSERT_TRUE(ended());
  EXPECT_EQ(passive.messages.size(), 0u);
}

TEST_P(FabricContract, revoking_an_unknown_handle_is_done) {
  join_and_greet();
  EXPECT_EQ(active->revoke(12345), fabric::Revocation::Done);
  if (active->parameters().discards) {
    EXPECT_EQ(active->abandon(12345), fabric::Revocation::Done);
  }
  settle();
  EXPECT_TRUE(active.revoked.empty());
}

TEST_P(FabricContract, an_abandoned_sink_drops_what_is_written_and_the_connection_lives) {
  join_and_greet();
  if (!active->parameters().discards) GTEST_SKIP() << "nothing is abandoned here";
  auto memory = std::make_unique<std::vector<std::byte>>(4096);
  const auto sink = active->expose_sink(*memory);
  revoke_and_wait(*harness, active, sink->handle, true);
  memory.reset();
  const auto bytes = pattern(4096, 1);
  passive->write(Rope::borrow(bytes), *sink, 0, 1);
  passive->send(Rope::borrow(bytes_of("late reply")), std::nullopt, 0, fabric::kNoToken);
  ASSERT_TRUE(run_until([&] { return active.messages.size() == 1 || active.disconnected; }));
  EXPECT_FALSE(active.disconnected);
  EXPECT_EQ(active->revoke(sink->handle), fabric::Revocation::Done);
}

TEST_P(FabricContract, an_abandoned_source_answers_with_what_it_held_or_ends_the_connection) {
  join_and_greet();
  if (!active->parameters().discards) GTEST_SKIP() << "nothing is abandoned here";
  const auto held = pattern(4096, 1);
  auto memory = std::make_unique<std::vector<std::byte>>(held);
  const auto source = active->expose_source(*memory);
  revoke_and_wait(*harness, active, source->handle, true);
  std::fill(memory->begin(), memory->end(), std::byte{0});
  memory.reset();
  std::vector<std::byte> sink(4096);
  passive->read(*source, sink, 0, 1);
  ASSERT_TRUE(done(passive, 1));
  if (passive.outcome(1) == Reason::None) {
    EXPECT_EQ(sink, held);
  } else {
    EXPECT_TRUE(ended());
  }
}

}  // namespace stag::testing
