// Memory that stays registered, where the options ask for it.
#include "fabric/verbs/open_regions.h"

#include <gtest/gtest.h>

#include "testing/verbs_fixture.h"

namespace stag::testing {
namespace {

TEST_F(OpenVerbsTest, a_peer_reads_and_writes_what_calls_expose) {
  join_and_greet();
  std::vector<std::byte> source = pattern(5000, 1), sink(5000), fetched(5000);
  const std::vector<std::byte> written = pattern(5000, 2);
  const auto from = active->expose_source(source);
  const auto to = active->expose_sink(sink);
  ASSERT_TRUE(from.ok() && to.ok());
  passive->read(*from, fetched, 0, 1);
  passive->write(Rope::borrow(written), *to, 0, 2);
  ASSERT_TRUE(done(passive, 1) && done(passive, 2));
  EXPECT_EQ(fetched, source);
  EXPECT_EQ(active->revoke(from->handle), fabric::Revocation::Done);
  EXPECT_EQ(active->revoke(to->handle), fabric::Revocation::Done);
  EXPECT_EQ(sink, written);
}

TEST_F(OpenVerbsTest, zeroes_the_rest_of_a_sink_that_was_filled_in_part) {
  join_and_greet();
  std::vector<std::byte> first(5000), second(5000, std::byte{7});
  const std::vector<std::byte> whole = pattern(5000, 3), part = pattern(100, 4);
  fabric::Token token = 0;
  const auto fill = [&](std::vector<std::byte>& sink, const std::vector<std::byte>& with) {
    const auto exposed = active->expose_sink(sink);
    passive->write(Rope::borrow(with), *exposed, 0, ++token);
    ASSERT_TRUE(done(passive, token));
    active->revoke(exposed->handle);
  };
  fill(first, whole);
  fill(second, part);
  EXPECT_EQ(first, whole);
  std::vector<std::byte> expected = part;
  expected.resize(5000);
  EXPECT_EQ(second, expected) << "no byte of the earlier call";
}

TEST_F(OpenVerbsTest, later_calls_use_the_same_registrations) {
  join_and_greet();
  std::vector<std::byte> memory(5000);
  std::uint64_t before = 0;
  for (int i = 0; i < 10; ++i) {
    if (i == 1) before = stub().calls();
    const auto source = active->expose_source(memory);
    const auto sink = active->expose_sink(memory);
    active->revoke(source->handle);
    active->revoke(sink->handle);
  }
  EXPECT_EQ(stub().calls(), before);
  EXPECT_EQ(stub().remote_handles(), 2u) << "open without a call";
  active->close(Reason::Shutdown);
  ASSERT_TRUE(ended());
  EXPECT_EQ(stub().remote_handles(), 0u);
}

TEST_F(OpenVerbsTest, each_region_has_one_right_and_calls_at_a_time_have_regions_of_their_own) {
  join_and_greet();
  std::vector<std::byte> memory(5000), other(5000);
  const auto one = active->expose_source(memory), two = active->expose_source(memory);
  EXPECT_NE(one->handle, two->handle);
  passive->write(Rope::borrow(other), *one, 0, 1);
  ASSERT_TRUE(ended());
  EXPECT_EQ(passive.outcome(1), Reason::PeerReportedError);
}

TEST_F(OpenVerbsTest, no_peer_reaches_what_is_open_to_another) {
  join_and_greet();
  std::vector<std::byte> memory(5000), sink(5000);
  const auto source = active->expose_source(memory);
  Side first_active, first_passive;
  auto again = connect(listener->local_address());
  ASSERT_TRUE(again && again->ok());
  ASSERT_TRUE(run_until([&] { return !acceptor.arrived.empty(); }));
  first_active.take(std::move(**again));
  first_passive.take(std::move(acceptor.arrived.front()));
  first_active.start();
  first_passive.start();
  first_active->send(Rope::borrow(bytes_of("hello")), std::nullopt, 0, fabric::kNoToken);
  ASSERT_TRUE(run_until([&] { return !first_passive.messages.empty(); }));
  first_passive->read(*source, sink, 0, 1);
  ASSERT_TRUE(run_until([&] { return first_passive.disconnected.has_value(); }));
  EXPECT_NE(first_passive.outcome(1), Reason::None);
  first_active.destroy();
  first_passive.destroy();
}

TEST_F(OpenVerbsTest, remote_invalidation_is_not_offered) {
  join_and_greet();
  EXPECT_FALSE(active->parameters().remote_invalidation);
}

TEST_F(OpenVerbsTest, what_cannot_be_registered_is_refused_and_the_connection_lives) {
  join_and_greet();
  std::vector<std::byte> memory(5000);
  stub().fail_call(1);
  const auto refused = active->expose_source(memory);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(), Reason::RegistrationsExhausted);
  EXPECT_TRUE(active->expose_source(memory).ok());
}

}  // namespace
}  // namespace stag::testing
