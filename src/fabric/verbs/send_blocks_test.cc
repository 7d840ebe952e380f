// Memory that is registered for what is copied: no more than a small multiple of it, and not for
// ever.
#include <gtest/gtest.h>

#include <functional>

#include "testing/verbs_fixture.h"

namespace stag::testing {
namespace {

using fabric::kNoToken;

// Blocks that are registered at once, and free ones that stay registered.
constexpr std::uint64_t kSlab = 16 * 16 * 1024, kKept = 4 << 20;

class SendBlocks : public VerbsTest {
 protected:
  std::uint64_t registered() { return stub().locked_bytes(); }
  // `count` Writes of `size` bytes each, one behind the other in `memory`; the last one is told.
  void write_pieces(
      std::vector<std::byte>& memory, std::size_t size, std::size_t count,
      const std::function<void()>& when_exposed = [] {}) {
    memory.resize(size * count);
    const auto sink = active->expose_sink(memory);
    ASSERT_TRUE(sink.ok());
    when_exposed();
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<std::byte> piece = pattern(size, static_cast<std::uint32_t>(i));
      passive->write(Rope::borrow(piece),
                     {sink->handle, static_cast<std::uint32_t>(size), sink->offset + i * size}, 0,
                     i + 1 == count ? 1 : kNoToken);
    }
  }
  bool written() { return done(passive, 1) && passive.outcome(1) == Reason::None; }
  static bool arrived(const std::vector<std::byte>& memory, std::size_t size) {
    for (std::size_t i = 0; i < memory.size() / size; ++i)
      if (!std::ranges::equal(std::span(memory).subspan(i * size, size),
                              pattern(size, static_cast<std::uint32_t>(i))))
        return false;
    return true;
  }
};

TEST_F(SendBlocks, are_as_long_as_twice_the_writes_where_these_are_short_and_many) {
  join_and_greet();
  constexpr std::size_t kSize = 300, kCount = 4000;
  std::vector<std::byte> memory;
  const std::uint64_t before = registered();
  write_pieces(memory, kSize, kCount, [this] { stub().hold(); });
  EXPECT_LE(registered() - before, 2 * kSize * kCount + memory.size() + 2 * kSlab);
  stub().release();
  ASSERT_TRUE(written());
  EXPECT_TRUE(arrived(memory, kSize));
}

TEST_F(SendBlocks, are_given_back_after_a_burst) {
  join_and_greet();
  constexpr std::size_t kSize = 16 * 1024, kCount = 1000;
  std::vector<std::byte> memory;
  const std::uint64_t before = registered();
  write_pieces(memory, kSize, kCount, [this] { stub().hold(); });
  EXPECT_GE(registered() - before, 2 * kSize * kCount) << "the sink and the copies";
  stub().release();
  ASSERT_TRUE(written());
  EXPECT_TRUE(arrived(memory, kSize));
  EXPECT_LE(registered() - before, memory.size() + kKept + 2 * kSlab);
}

TEST_F(SendBlocks, that_requests_share_are_given_back_by_the_last_of_them) {
  join_and_greet();
  constexpr std::size_t kSize = 1000;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::byte> memory;
    passive.outcomes.clear();
    write_pieces(memory, kSize, 40);
    ASSERT_TRUE(written());
    EXPECT_TRUE(arrived(memory, kSize)) << round;
  }
  EXPECT_LE(registered(), 2 * kKept);
}

}  // namespace
}  // namespace stag::testing
