#include "iwarp/memory.h"

#include <set>

#include "iwarp/harness_test.h"
#include "testing/proves.h"

namespace stag::iwarp::test {
namespace {

constexpr std::uint64_t kBase = 0xFF1100005D68E000;  // offsets are not zero-based

struct Table : ::testing::Test {
  TestEntropy entropy{7};
  StagTable table{entropy};
  Octets memory = Octets(1000);
};

TEST_F(Table, finds_every_range_inside_a_registration_and_none_outside) {
  PROVES("R8166-8.1-b");
  const std::uint32_t stag = table.expose_sink(memory, kBase).value();
  const auto fault = [&](std::uint64_t offset, std::size_t length) {
    const auto found = table.sink(stag, Right::RemoteWrite, offset, length);
    return found.ok() ? std::nullopt : std::optional(found.error());
  };
  EXPECT_EQ(fault(kBase, 1000), std::nullopt);
  EXPECT_EQ(fault(kBase + 999, 1), std::nullopt);
  EXPECT_EQ(fault(kBase + 1000, 0), std::nullopt);
  EXPECT_EQ(fault(kBase - 1, 1), StagFault::Bounds);
  EXPECT_EQ(fault(kBase, 1001), StagFault::Bounds);
  EXPECT_EQ(fault(kBase + 1000, 1), StagFault::Bounds);
  EXPECT_EQ(fault(~std::uint64_t{0}, 2), StagFault::Wrap);
  EXPECT_EQ(table.sink(stag, Right::RemoteWrite, kBase + 10, 5)->bytes.data(), memory.data() + 10);
}

TEST_F(Table, holds_memory_up_to_the_end_of_the_offset_space) {
  const std::uint32_t stag = table.expose_source(memory, ~std::uint64_t{0} - 1000).value();
  EXPECT_TRUE(table.source(stag, ~std::uint64_t{0} - 1, 1).ok());
  EXPECT_EQ(table.source(stag, ~std::uint64_t{0}, 1).error(), StagFault::Wrap);
}

TEST_F(Table, grants_each_registration_one_right_only) {
  PROVES("R8166-8.1-b");
  const std::uint32_t source = table.expose_source(memory, 0).value();
  const std::uint32_t sink = table.expose_sink(memory, 0).value();
  const std::uint32_t read_sink = table.register_read_sink(memory, 0).value();
  EXPECT_EQ(table.sink(source, Right::RemoteWrite, 0, 1).error(), StagFault::WrongRight);
  EXPECT_EQ(table.source(sink, 0, 1).error(), StagFault::WrongRight);
  EXPECT_EQ(table.sink(read_sink, Right::RemoteWrite, 0, 1).error(), StagFault::WrongRight);
  EXPECT_EQ(table.sink(sink, Right::ReadSink, 0, 1).error(), StagFault::WrongRight);
  EXPECT_EQ(table.source(read_sink, 0, 1).error(), StagFault::WrongRight);
}

TEST_F(Table, forgets_the_sink_of_a_read_that_is_over) {
  const std::uint32_t stag = table.register_read_sink(memory, 0).value();
  EXPECT_TRUE(table.revoke(stag));
  EXPECT_EQ(table.sink(stag, Right::ReadSink, 0, 1).error(), StagFault::Unknown);
  EXPECT_EQ(table.live(), 0u);
}

TEST_F(Table, refuses_what_was_revoked_and_what_it_never_gave_out) {
  const std::uint32_t stag = table.expose_sink(memory, 0).value();
  EXPECT_TRUE(table.revoke(stag));
  EXPECT_FALSE(table.revoke(stag));
  EXPECT_EQ(table.sink(stag, Right::RemoteWrite, 0, 1).error(), StagFault::Revoked);
  EXPECT_EQ(table.sink(stag + 1, Right::RemoteWrite, 0, 1).error(), StagFault::Unknown);
  EXPECT_EQ(table.live(), 0u);
}

TEST_F(Table, gives_out_no_stag_that_was_revoked_a_moment_ago) {
  entropy.script(0x1234);
  const std::uint32_t first = table.expose_sink(memory, 0).value();
  ASSERT_EQ(first, 0x1234u);
  table.revoke(first);
  entropy.script(0x1234);
  EXPECT_NE(table.expose_sink(memory, 0).value(), first);
  EXPECT_EQ(table.sink(first, Right::RemoteWrite, 0, 1).error(), StagFault::Revoked);
}

TEST_F(Table, remembers_the_latest_revocations_and_forgets_older_ones) {
  const std::uint32_t first = table.expose_sink(memory, 0).value();
  table.revoke(first);
  for (std::size_t i = 1; i < StagTable::kQuarantine; ++i) {
    table.revoke(table.expose_sink(memory, 0).value());
  }
  EXPECT_EQ(table.sink(first, Right::RemoteWrite, 0, 1).error(), StagFault::Revoked);
  table.revoke(table.expose_sink(memory, 0).value());
  EXPECT_EQ(table.sink(first, Right::RemoteWrite, 0, 1).error(), StagFault::Unknown);
}

TEST_F(Table, never_gives_out_zero) {
  entropy.script(0);
  EXPECT_NE(table.expose_sink(memory, 0).value(), 0u);
}

TEST_F(Table, gives_out_stags_that_follow_no_pattern) {
  PROVES("R8166-8.1.2-a");
  std::set<std::uint32_t> stags;
  std::set<std::uint32_t> steps;
  std::uint32_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t stag = table.expose_sink(memory, 0).value();
    stags.insert(stag);
    steps.insert(stag - last);
    last = stag;
  }
  EXPECT_EQ(stags.size(), 1000u);
  EXPECT_EQ(steps.size(), 1000u);
}

TEST_F(Table, is_full_at_its_limit_and_has_room_again_after_a_revocation) {
  StagTable small(entropy, 2);
  const std::uint32_t stag = small.expose_sink(memory, 0).value();
  EXPECT_TRUE(small.expose_sink(memory, 0).has_value());
  EXPECT_FALSE(small.expose_sink(memory, 0).has_value());
  small.revoke(stag);
  EXPECT_TRUE(small.expose_sink(memory, 0).has_value());
}

TEST_F(Table, drops_what_is_written_to_a_sink_that_was_given_up) {
  const std::uint32_t stag = table.expose_sink(memory, 0).value();
  EXPECT_TRUE(table.discard(stag));
  const auto placement = table.sink(stag, Right::RemoteWrite, 0, 1000);
  ASSERT_TRUE(placement.ok());
  EXPECT_TRUE(placement->discard);
  EXPECT_TRUE(placement->bytes.empty());
  EXPECT_EQ(table.sink(stag, Right::RemoteWrite, 0, 1001).error(), StagFault::Bounds);
  EXPECT_FALSE(table.discard(table.expose_source(memory, 0).value()));
}

TEST_F(Table, serves_a_source_that_was_given_up_from_its_copy) {
  memory = pattern(1000, 1);
  const Octets before = memory;
  const std::uint32_t stag = table.expose_source(memory, kBase).value();
  EXPECT_TRUE(table.substitute(stag, Buffer::copy_of(memory)));
  memory.assign(1000, std::byte{0});
  const auto bytes = table.source(stag, kBase + 100, 50);
  ASSERT_TRUE(bytes.ok());
  EXPECT_TRUE(bytes->owned());
  EXPECT_EQ(octets(bytes->bytes()), octets(Bytes(before).subspan(100, 50)));
}

TEST_F(Table, retires_a_source_when_it_was_read_from_its_beginning_to_its_end) {
  const std::uint32_t stag = table.expose_source(memory, kBase).value();
  table.count_read(stag, kBase, 500);
  EXPECT_FALSE(table.retire(stag));
  table.count_read(stag, kBase + 501, 499);
  EXPECT_FALSE(table.retire(stag)) << "a byte is missing";
  table.count_read(stag, kBase + 400, 600);
  EXPECT_TRUE(table.source(stag, kBase, 1).ok());
  ASSERT_TRUE(table.retire(stag));
  EXPECT_EQ(table.source(stag, kBase, 1).error(), StagFault::Revoked);
  EXPECT_FALSE(table.exposed_source(stag).has_value());
  EXPECT_TRUE(table.invalidate(stag).ok()) << "by the Reply that comes late";
  EXPECT_EQ(table.live(), 0u);
  EXPECT_FALSE(table.retire(table.expose_sink(memory, 0).value()));
}

TEST_F(Table, lets_the_peer_invalidate_what_was_exposed_to_it_and_nothing_else) {
  PROVES("R8797-3.2-b");
  const std::uint32_t sink = table.expose_sink(memory, 0).value();
  const std::uint32_t read_sink = table.register_read_sink(memory, 0).value();
  EXPECT_TRUE(table.invalidate(sink).ok());
  EXPECT_EQ(table.sink(sink, Right::RemoteWrite, 0, 1).error(), StagFault::Revoked);
  EXPECT_TRUE(table.invalidate(sink).ok()) << "it may be on its way when we revoke it ourselves";
  EXPECT_EQ(table.invalidate(read_sink).error(), StagFault::WrongRight);
  EXPECT_EQ(table.invalidate(0x4711).error(), StagFault::Unknown);
}

TEST_F(Table, keeps_thousands_of_registrations_apart_while_they_come_and_go) {
  std::mt19937 random(99);
  std::map<std::uint32_t, std::size_t> live;
  for (int step = 0; step < 20000; ++step) {
    if (live.size() < 500 && random() % 2 == 0) {
      const std::size_t at = random() % memory.size();
      live[table.expose_sink(MutableBytes(memory).subspan(at, 1), 0).value()] = at;
    } else if (!live.empty()) {
      auto victim = live.lower_bound(static_cast<std::uint32_t>(random()));
      if (victim == live.end()) victim = live.begin();
      ASSERT_TRUE(table.revoke(victim->first));
      live.erase(victim);
    }
    ASSERT_EQ(table.live(), live.size());
    if (step % 500 != 0) continue;
    for (const auto& [stag, at] : live) {
      ASSERT_EQ(table.sink(stag, Right::RemoteWrite, 0, 1)->bytes.data(), memory.data() + at);
    }
  }
}

}  // namespace
}  // namespace stag::iwarp::test
