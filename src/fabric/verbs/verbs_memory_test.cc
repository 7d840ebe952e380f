// Which peer may access what: least rights, for as long as the exposure lasts.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "fabric/kept_ranges.h"
#include "fabric/registrations.h"
#include "testing/verbs_fixture.h"

namespace stag::testing {
namespace {

using fabric::kNoToken;

TEST_F(VerbsTest, nothing_is_remotely_accessible_but_what_is_exposed) {
  join_and_greet();
  EXPECT_EQ(stub().remote_handles(), 0u);
  std::vector<std::byte> memory(5000);
  const auto sink = active->expose_sink(memory);
  const auto source = active->expose_source(memory);
  EXPECT_EQ(stub().remote_handles(), 2u);
  EXPECT_EQ(active->revoke(sink->handle), fabric::Revocation::Pending);
  EXPECT_EQ(active->revoke(source->handle), fabric::Revocation::Pending);
  ASSERT_TRUE(run_until([&] { return active.revoked.size() == 2; }));
  EXPECT_EQ(stub().remote_handles(), 0u);
}

TEST_F(SiwVerbsTest, nothing_is_remotely_accessible_but_what_is_exposed) {
  join_and_greet();
  std::vector<std::byte> memory(5000);
  const auto sink = active->expose_sink(memory);
  EXPECT_EQ(stub().remote_handles(), 1u);
  EXPECT_EQ(active->revoke(sink->handle), fabric::Revocation::Done);
  EXPECT_EQ(stub().remote_handles(), 0u);
  EXPECT_FALSE(active->parameters().remote_invalidation);
}

class BnxtVerbsTest : public VerbsTest {
 protected:
  BnxtVerbsTest() : VerbsTest(fabric::stub::bnxt_re_like()) {}
};

TEST_F(BnxtVerbsTest, memory_is_exposed_without_the_windows_that_only_the_driver_tells_of) {
  join_and_greet();
  EXPECT_FALSE(active->parameters().remote_invalidation);
  std::vector<std::byte> memory(5000);
  const auto sink = active->expose_sink(memory);
  ASSERT_TRUE(sink.ok());
  passive->write(Rope::copy_of(pattern(5000, 1)), *sink, 0, 1);
  ASSERT_TRUE(done(passive, 1));
  EXPECT_EQ(memory, pattern(5000, 1));
  EXPECT_EQ(active->revoke(sink->handle), fabric::Revocation::Done);
  EXPECT_EQ(stub().remote_handles(), 0u);
}

TEST_F(SiwVerbsTest, the_sink_of_a_read_is_open_only_while_it_is_read) {
  join_and_greet();
  std::vector<std::byte> memory(5000), sink(5000);
  const auto source = active->expose_source(memory);
  stub().hold();
  passive->read(*source, sink, 0, 1);
  EXPECT_EQ(stub().remote_handles(), 2u);
  stub().release();
  ASSERT_TRUE(done(passive, 1));
  EXPECT_EQ(stub().remote_handles(), 1u);
}

TEST_F(VerbsTest, a_connection_that_ends_leaves_nothing_accessible) {
  join_and_greet();
  std::vector<std::byte> memory(5000);
  ASSERT_TRUE(active->expose_sink(memory).ok());
  const auto revoking = active->expose_source(memory);
  stub().hold();
  EXPECT_EQ(active->revoke(revoking->handle), fabric::Revocation::Pending);
  active->close(Reason::Shutdown);
  passive.destroy();
  ASSERT_TRUE(run_until([&] { return active.disconnected.has_value(); }));
  EXPECT_EQ(active.revoked, std::vector<std::uint32_t>{revoking->handle});
  EXPECT_EQ(stub().remote_handles(), 0u);
  stub().release();
}

TEST_F(VerbsTest, registrations_are_counted_until_they_end) {
  const fabric::RegistrationCount& count = fabric::RegistrationCount::of_verbs();
  join_and_greet();
  const auto before = count.counts();
  std::vector<std::byte> memory(5000);
  const auto sink = active->expose_sink(memory);
  ASSERT_TRUE(active->expose_source(memory).ok());
  EXPECT_EQ(count.counts().now, before.now + 2);
  active->revoke(sink->handle);
  ASSERT_TRUE(run_until([&] { return active.revoked.size() == 1; }));
  EXPECT_EQ(count.counts().now, before.now + 1);
  active->close(Reason::Shutdown);
  passive.destroy();
  ASSERT_TRUE(run_until([&] { return active.disconnected.has_value(); }));
  EXPECT_EQ(count.counts().made, before.made + 2);
  EXPECT_LE(count.counts().now, before.now);
}

// A table with a range of memory, as long as a test wants it.
class Keeping {
 public:
  explicit Keeping(MutableBytes memory, bool writable = true) : range_{memory, writable} {
    EXPECT_EQ(table().keep(range_), Reason::None);
  }
  ~Keeping() { give_up(); }
  void give_up() {
    if (std::exchange(kept_, false)) table().give_up(range_);
  }

 private:
  static fabric::KeptRanges& table() { return *fabric::KeptRanges::of_this_thread(); }
  const fabric::KeptRange range_;
  bool kept_ = true;
};

TEST_F(VerbsTest, kept_memory_is_registered_once_and_open_only_while_a_part_is_exposed) {
  const fabric::RegistrationCount& count = fabric::RegistrationCount::of_verbs();
  join_and_greet();
  std::vector<std::byte> memory(100'000);
  const Keeping keeping(memory);
  EXPECT_EQ(stub().remote_handles(), 0u);
  const auto before = count.counts();
  std::uint32_t last = 0;
  for (std::size_t i = 1; i <= 8; ++i) {
    const auto part = MutableBytes(memory).subspan(i * 7000, 5000);
    const auto exposed = i % 2 == 0 ? active->expose_sink(part) : active->expose_source(part);
    EXPECT_EQ(stub().remote_handles(), 1u);
    EXPECT_NE(exposed->handle, std::exchange(last, exposed->handle));
    active->revoke(exposed->handle);
    ASSERT_TRUE(run_until([&] { return active.revoked.size() == i; }));
    EXPECT_EQ(stub().remote_handles(), 0u);
  }
  EXPECT_EQ(count.counts().made, before.made);
}

TEST_F(VerbsTest, kept_memory_beside_what_is_exposed_is_not_to_be_written) {
  join_and_greet();
  std::vector<std::byte> memory(100'000);
  const Keeping keeping(memory);
  auto beyond = *active->expose_sink(MutableBytes(memory).first(5000));
  beyond.offset += 4000;
  const auto late = pattern(2000, 3);
  passive->write(Rope::borrow(late), beyond, 0, 1);
  ASSERT_TRUE(run_until([&] { return passive.disconnected.has_value(); }));
  EXPECT_EQ(memory, std::vector<std::byte>(memory.size()));
}

TEST_F(VerbsTest, kept_memory_that_is_given_up_stays_registered_until_nobody_needs_it) {
  const fabric::RegistrationCount& count = fabric::RegistrationCount::of_verbs();
  join_and_greet();
  const auto before = count.counts();
  std::vector<std::byte> memory(100'000);
  Keeping keeping(memory);
  EXPECT_EQ(count.counts().now, before.now + 1);
  const auto sink = active->expose_sink(memory);
  keeping.give_up();
  EXPECT_EQ(count.counts().now, before.now + 1);
  const auto data = pattern(memory.size(), 3);
  passive->write(Rope::borrow(data), *sink, 0, 1);
  ASSERT_TRUE(done(passive, 1));
  EXPECT_EQ(memory, data);
  active->revoke(sink->handle);
  ASSERT_TRUE(run_until([&] { return active.revoked.size() == 1; }));
  EXPECT_EQ(count.counts().now, before.now);
}

TEST_F(VerbsTest, kept_memory_that_the_device_refuses_is_registered_for_each_exposure) {
  const fabric::RegistrationCount& count = fabric::RegistrationCount::of_verbs();
  std::vector<std::byte> memory(100'000);
  const Keeping keeping(memory);
  join_and_greet();
  const auto before = count.counts();
  stub().fail_call(1);
  for (std::size_t i = 1; i <= 3; ++i) {
    const auto sink = active->expose_sink(MutableBytes(memory).first(5000));
    ASSERT_TRUE(sink.ok());
    EXPECT_EQ(stub().failed_call(), "ibv_reg_mr");
    active->revoke(sink->handle);
    ASSERT_TRUE(run_until([&] { return active.revoked.size() == i; }));
  }
  EXPECT_EQ(count.counts().made, before.made + 3) << "it is not asked again";
}

TEST_F(VerbsTest, a_long_write_from_kept_memory_registers_nothing) {
  const fabric::RegistrationCount& count = fabric::RegistrationCount::of_verbs();
  join_and_greet();
  std::vector<std::byte> far(300'000);
  auto near = pattern(300'000, 3);
  const auto sink = active->expose_sink(far);
  const Keeping keeping(near, false);
  const auto before = count.counts();
  passive->write(Rope::borrow(near), *sink, 0, 1);
  ASSERT_TRUE(done(passive, 1));
  EXPECT_EQ(far, near);
  EXPECT_EQ(count.counts().made, before.made);
  EXPECT_EQ(count.counts().now, before.now);
}

// Long ones are not registered, short ones go through no blocks.
TEST_F(VerbsTest, reads_place_their_data_in_kept_memory_themselves) {
  join_and_greet();
  for (const std::size_t size : {5000u, 60'000u}) {
    const std::size_t count = 16;
    const auto far = pattern(size * count, 3);
    std::vector<std::byte> near(size * count);
    const auto source = active->expose_source(far);
    const Keeping keeping(near);
    const std::uint64_t before = stub().locked_bytes();
    stub().hold();
    passive.outcomes.clear();
    for (std::size_t i = 0; i < count; ++i)
      passive->read({source->handle, static_cast<std::uint32_t>(size), source->offset + i * size},
                    MutableBytes(near).subspan(i * size, size), 0, i + 1 == count ? 1 : kNoToken);
    EXPECT_EQ(stub().locked_bytes(), before);
    stub().release();
    ASSERT_TRUE(done(passive, 1));
    EXPECT_EQ(near, far);
  }
}

TEST_F(SiwVerbsTest, kept_memory_is_registered_for_each_exposure_where_there_are_no_windows) {
  const fabric::RegistrationCount& count = fabric::RegistrationCount::of_verbs();
  join_and_greet();
  std::vector<std::byte> memory(100'000);
  const Keeping keeping(memory);
  const auto before = count.counts();
  for (int i = 0; i < 3; ++i) {
    const auto sink = active->expose_sink(MutableBytes(memory).first(5000));
    EXPECT_EQ(active->revoke(sink->handle), fabric::Revocation::Done);
  }
  EXPECT_EQ(count.counts().made, before.made + 3);
  EXPECT_EQ(stub().remote_handles(), 0u);
}

TEST_F(VerbsTest, a_window_is_used_again_with_another_key) {
  join_and_greet();
  std::vector<std::byte> memory(64);
  std::set<std::uint32_t> handles;
  for (std::size_t i = 1; i <= 20; ++i) {
    const auto sink = active->expose_sink(memory);
    if (i > 1) {
      EXPECT_NE(sink->handle, *handles.rbegin());
    }
    handles = {sink->handle};
    active->revoke(sink->handle);
    ASSERT_TRUE(run_until([&] { return active.revoked.size() == i; }));
  }
}

TEST_F(VerbsTest, memory_keys_that_run_out_refuse_an_exposure_and_no_more) {
  join_and_greet();
  std::vector<std::byte> memory(64);
  stub().fail_call(2);
  EXPECT_EQ(active->expose_sink(memory).error(), Reason::RegistrationsExhausted);
  EXPECT_EQ(stub().failed_call(), "ibv_alloc_mw");
  EXPECT_TRUE(active->expose_sink(memory).ok());
  EXPECT_FALSE(active->parameters().discards);
}

TEST_F(SiwVerbsTest, memory_keys_that_run_out_refuse_an_exposure_and_no_more) {
  join_and_greet();
  std::vector<std::byte> memory(64);
  stub().fail_call(1);
  EXPECT_EQ(active->expose_sink(memory).error(), Reason::RegistrationsExhausted);
  EXPECT_EQ(stub().failed_call(), "ibv_reg_mr");
  EXPECT_TRUE(active->expose_sink(memory).ok());
}

TEST_F(VerbsTest, long_writes_and_reads_are_registered_only_on_their_way) {
  join_and_greet();
  std::vector<std::byte> far(300'000);
  const auto near = pattern(300'000, 3);
  const auto sink = active->expose_sink(far);
  const std::size_t before = stub().objects();
  stub().hold();
  passive->write(Rope::borrow(near), *sink, 0, 1);
  EXPECT_GT(stub().objects(), before);
  stub().release();
  ASSERT_TRUE(done(passive, 1));
  EXPECT_EQ(stub().objects(), before);
  EXPECT_EQ(far, near);
}

TEST_F(SiwVerbsTest, a_read_ends_by_its_own_completion) {
  join_and_greet();
  const auto far = pattern(1000, 5);
  std::vector<std::byte> near(1000);
  const auto source = active->expose_source(far);
  stub().hold();
  passive->read(*source, near, 0, 1);
  passive->send(Rope::borrow(bytes_of("later")), std::nullopt, 0, 2);
  stub().release();
  ASSERT_TRUE(done(passive, 1) && done(passive, 2));
  EXPECT_EQ(passive.outcomes[0].first, 2u);
  EXPECT_EQ(near, far);
}

}  // namespace
}  // namespace stag::testing
