// RDMA Reads that end after what was posted behind them, as on Linux's siw.
#include <gtest/gtest.h>

#include <algorithm>

#include "testing/verbs_fixture.h"

namespace stag::testing {
namespace {

// How often the end of each of the operations 1 to `last` was told.
std::vector<int> times_told(const Side& side, fabric::Token last) {
  std::vector<int> times(last);
  for (const auto& [token, reason] : side.outcomes) ++times.at(token - 1);
  return times;
}

class VerbsOrder : public SiwVerbsTest {
 protected:
  void SetUp() override {
    options.receives_max = options.receive.count = 100;
    join_and_greet();
    source = *active->expose_source(memory);
  }
  // The passive side reads `part` of what the active side has exposed.
  void read(std::size_t begin, std::size_t size, fabric::Token token) {
    fabric::RemoteMemory part = source;
    part.offset += begin;
    part.length = static_cast<std::uint32_t>(size);
    passive->read(part, MutableBytes(sink).subspan(begin, size), 0, token);
  }
  void send(fabric::Token token) {
    passive->send(Rope::borrow(bytes_of("behind")), std::nullopt, 0, token);
  }

  std::vector<std::byte> memory = std::vector(5000, std::byte{7}),
                         sink = std::vector<std::byte>(5000);
  fabric::RemoteMemory source;
};

TEST_F(VerbsOrder, a_read_ends_when_its_data_is_there_whatever_has_ended_before) {
  stub().hold_reads(true);
  read(0, 5000, 1);
  send(2);
  ASSERT_TRUE(done(passive, 2));
  settle();
  EXPECT_FALSE(passive.outcome(1).has_value());
  stub().hold_reads(false);
  ASSERT_TRUE(done(passive, 1));
  EXPECT_EQ(passive.outcome(1), Reason::None);
  EXPECT_EQ(sink, memory);
  EXPECT_EQ(times_told(passive, 2), (std::vector{1, 1}));
}

TEST_F(VerbsOrder, what_was_told_before_a_read_is_not_told_again_at_the_end_of_the_connection) {
  stub().hold_reads(true);
  read(0, 5000, 1);
  send(2);
  send(3);
  ASSERT_TRUE(done(passive, 3));
  active->close(Reason::Shutdown);
  ASSERT_TRUE(ended());
  EXPECT_EQ(times_told(passive, 3), (std::vector{1, 1, 1}));
  EXPECT_NE(passive.outcome(1), Reason::None);
  EXPECT_EQ(passive.outcome(2), Reason::None);
  stub().hold_reads(false);
}

TEST_F(VerbsOrder, reads_may_end_one_by_one_between_messages) {
  stub().hold_reads(true);
  for (fabric::Token token = 1; token <= 12; token += 2) {
    read(token * 100, 100, token);
    send(token + 1);
  }
  ASSERT_TRUE(run_until([&] { return passive.outcomes.size() == 6; }));
  stub().hold_reads(false);
  ASSERT_TRUE(run_until([&] { return passive.outcomes.size() == 12; }));
  EXPECT_EQ(times_told(passive, 12), std::vector(12, 1));
}

// The slots of the messages come back when the Reads before them have ended.
TEST_F(VerbsOrder, a_send_queue_full_of_what_waits_for_reads_takes_more_afterwards) {
  stub().hold_reads(true);
  read(0, 100, 1);
  for (fabric::Token token = 2; token <= 80; ++token) send(token);
  settle();
  EXPECT_LT(passive.outcomes.size(), 40u);
  stub().hold_reads(false);
  ASSERT_TRUE(run_until([&] { return passive.outcomes.size() == 80; }));
  EXPECT_EQ(times_told(passive, 80), std::vector(80, 1));
}

TEST_F(VerbsOrder, a_read_that_fails_late_ends_the_connection_and_all_is_told_once) {
  stub().hold_reads(true);
  read(0, 5000, 1);
  send(2);
  ASSERT_TRUE(done(passive, 2));
  EXPECT_EQ(active->revoke(source.handle), fabric::Revocation::Done);
  stub().hold_reads(false);
  ASSERT_TRUE(ended());
  EXPECT_EQ(times_told(passive, 2), (std::vector{1, 1}));
  EXPECT_NE(passive.outcome(1), Reason::None);
}

}  // namespace
}  // namespace stag::testing
