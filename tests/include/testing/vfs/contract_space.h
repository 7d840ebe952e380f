// Contract of every FileSystem, part 8: storage, from files with holes to a store that is full.
#pragma once

#include "testing/vfs/fixture.h"

namespace stag::vfs::testing {

class VfsSpaceContract : public VfsContract {
 protected:
  static constexpr std::uint64_t kSmall = 1 << 20;
  static constexpr std::size_t kPiece = 100'000;

  Rope piece() const { return Rope::copy_of(bytes_of(std::string(kPiece, 'x'))); }
  // Writes pieces at the end of the file until the store has no room for another byte of them; what
  // it says then.
  Status fill_up(const Handle& file) {
    for (std::uint64_t end = 0; end < 4 * kSmall;) {
      const auto written = run(fs().write(as(root_user), file, end, piece(), Stability::FileSync));
      if (!written) return written.error();
      EXPECT_GT(written->count, 0u);
      end += written->count;
      EXPECT_EQ(attributes(file).size, end) << "as much as was said";
    }
    ADD_FAILURE() << "the store was never full";
    return Status::Io;
  }
};

#define USE_SMALL_STORE() \
  if (!use_small(kSmall)) GTEST_SKIP() << "no small store of this kind can be made here"

TEST_P(VfsSpaceContract, an_empty_file_has_no_bytes_and_its_end_everywhere) {
  const Handle file = make_file("file").handle;
  for (const std::uint32_t count : {0u, 1u, 1u << 20}) {
    const ReadResult result = good(fs().read(as(root_user), file, 0, count));
    EXPECT_TRUE(result.data.empty());
    EXPECT_TRUE(result.eof);
  }
  EXPECT_EQ(attributes(file).used, 0u);
}

TEST_P(VfsSpaceContract, a_hole_takes_no_storage) {
  if (!properties().knows_holes) GTEST_SKIP() << "this store knows no holes";
  constexpr std::uint64_t kFar = std::uint64_t{1} << 40;
  const Handle file = make_file("file").handle;
  write(file, kFar, "end");
  EXPECT_EQ(attributes(file).size, kFar + 3);
  EXPECT_LT(attributes(file).used, 1u << 20);
  EXPECT_EQ(read(file, kFar - 2, 100), std::string("\0\0end", 5));
  EXPECT_EQ(read(file, kFar / 2, 3), std::string(3, '\0'));
  SetAttributes changes;
  changes.size = kFar * 2;
  good(fs().set_attributes(as(root_user), file, changes, std::nullopt));
  EXPECT_FALSE(good(fs().read(as(root_user), file, kFar, 3)).eof);
  EXPECT_LT(attributes(file).used, 1u << 20);
}

TEST_P(VfsSpaceContract, bytes_that_were_cut_off_never_come_back) {
  const Handle file = make_file("file").handle;
  write(file, 0, std::string(10'000, 'x'));
  SetAttributes changes;
  for (const std::uint64_t size : {5'000u, 10'000u}) {
    changes.size = size;
    good(fs().set_attributes(as(root_user), file, changes, std::nullopt));
  }
  EXPECT_EQ(read(file, 0, 20'000), std::string(5'000, 'x') + std::string(5'000, '\0'));
}

TEST_P(VfsSpaceContract, a_placed_block_is_written_like_any_other) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{100'000}}) {
    Block block = fs().placement(size);
    std::fill_n(block.data(), size, std::byte{'p'});
    const Handle file = make_file("file" + std::to_string(size)).handle;
    const WriteResult written = good(fs().write(
        as(root_user), file, 5, Rope(std::move(block).freeze(size)), Stability::Unstable));
    EXPECT_EQ(written.count, size);
    EXPECT_EQ(read(file, 0, 1 << 20), std::string(5, '\0') + std::string(size, 'p'));
  }
}

TEST_P(VfsSpaceContract, usage_follows_what_is_stored) {
  USE_SMALL_STORE();
  const Usage before = good(fs().usage(as(root_user)));
  const Handle file = make_file("file").handle;
  write(file, 0, std::string(500'000, 'x'));
  const Usage full = good(fs().usage(as(root_user)));
  EXPECT_EQ(full.total_bytes, before.total_bytes);
  EXPECT_LE(full.free_bytes + 500'000, before.free_bytes);
  EXPECT_LT(full.free_files, before.free_files);
  good(fs().remove(as(root_user), root(), "file"));
  EXPECT_GE(good(fs().usage(as(root_user))).free_bytes, full.free_bytes + 500'000);
}

TEST_P(VfsSpaceContract, a_full_store_says_so_and_keeps_what_it_has) {
  USE_SMALL_STORE();
  const Handle file = make_file("file").handle;
  EXPECT_EQ(fill_up(file), Status::NoSpace);
  const Attributes full = attributes(file);
  EXPECT_GT(full.size, kSmall / 2);
  EXPECT_EQ(status(fs().write(as(root_user), file, full.size, piece(), Stability::FileSync)),
            Status::NoSpace);
  EXPECT_EQ(attributes(file).size, full.size);
  EXPECT_EQ(read(file, full.size - 10, 20), std::string(10, 'x'));
  good(fs().write(as(root_user), file, 0, piece(), Stability::FileSync));
  EXPECT_EQ(attributes(file).size, full.size) << "writing over what is there takes no more";
}

TEST_P(VfsSpaceContract, a_full_store_takes_more_once_something_went) {
  USE_SMALL_STORE();
  const Handle file = make_file("file").handle;
  const Handle other = make_file("other").handle;
  ASSERT_EQ(fill_up(file), Status::NoSpace);
  SetAttributes half;
  half.size = kSmall / 2;
  good(fs().set_attributes(as(root_user), file, half, std::nullopt));
  EXPECT_EQ(good(fs().write(as(root_user), other, 0, piece(), Stability::FileSync)).count, kPiece);
  good(fs().remove(as(root_user), root(), "file"));
  EXPECT_EQ(fill_up(other), Status::NoSpace);
}

TEST_P(VfsSpaceContract, objects_run_out_without_a_trace_of_the_last) {
  USE_SMALL_STORE();
  const CallerContext who = as(root_user);
  int made = 0;
  std::optional<Status> refused;
  for (; !refused && made < 10'000; ++made) {
    const std::string name = "o" + std::to_string(made);
    if (made % 3 == 0) refused = status(fs().create(who, root(), name, {}));
    if (made % 3 == 1) refused = status(fs().mkdir(who, root(), name, {}));
    if (made % 3 == 2) refused = status(fs().symlink(who, root(), name, "t", {}));
  }
  ASSERT_EQ(refused, Status::NoSpace);
  const std::string last = "o" + std::to_string(made - 1);
  EXPECT_EQ(lookup_status(root(), last), Status::NoEntry);
  EXPECT_EQ(list(root()).size(), static_cast<std::size_t>(made) - 1 + 2);
  good(fs().remove(who, root(), "o0"));
  EXPECT_EQ(status(fs().create(who, root(), last, {})), std::nullopt);
}

}  // namespace stag::vfs::testing
