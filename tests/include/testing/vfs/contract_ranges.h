// Contract of every FileSystem, part 9: ranges of files and extended attributes, of those that have
// them.
#pragma once

#include <algorithm>

#include "testing/vfs/fixture.h"

namespace stag::vfs::testing {

class VfsRangeContract : public VfsContract {
 protected:
  static constexpr std::uint64_t kMiB = 1 << 20;
  CallerContext who() { return as(root_user); }
  // A file of a MiB of data, a MiB of hole, and a MiB of data.
  Handle holed(std::string_view name) {
    const Handle file = make_file(name).handle;
    write(file, 0, std::string(kMiB, 'a'));
    write(file, 2 * kMiB, std::string(kMiB, 'c'));
    return file;
  }
  std::string around(const Handle& file, std::uint64_t offset) { return read(file, offset - 2, 4); }
  Sought sought(const Handle& file, std::uint64_t offset, SeekTo what) {
    return good(fs().seek(who(), file, offset, what));
  }
};

TEST_P(VfsRangeContract, what_a_store_lacks_is_not_supported_and_what_it_has_is_of_files) {
  const Handle directory = make_directory(root(), "d").handle;
  const Handle file = make_file("file").handle;
  const auto expected = [](bool has) { return has ? Status::IsDirectory : Status::NotSupported; };
  const Properties has = properties();
  if (!has.clones) {
    write(file, 0, "x");
    EXPECT_EQ(status(fs().clone(who(), file, make_file("to").handle, {})), Status::NotSupported);
  }
  EXPECT_EQ(status(fs().seek(who(), directory, 0, SeekTo::Data)), expected(has.knows_holes));
  EXPECT_EQ(status(fs().allocate(who(), directory, 0, 1)), expected(has.knows_holes));
  EXPECT_EQ(status(fs().deallocate(who(), directory, 0, 1)), expected(true));
  EXPECT_EQ(status(fs().copy(who(), directory, file, {})), expected(has.copies));
  EXPECT_EQ(status(fs().copy(who(), file, directory, {})), expected(has.copies));
  EXPECT_EQ(status(fs().clone(who(), directory, file, {})), expected(has.copies));
}

TEST_P(VfsRangeContract, seek_finds_where_data_and_holes_begin) {
  if (!properties().knows_holes) GTEST_SKIP() << "this store knows no holes";
  const Handle file = holed("file");
  EXPECT_EQ(sought(file, 0, SeekTo::Data).offset, 0u);
  EXPECT_EQ(sought(file, 0, SeekTo::Hole).offset, kMiB);
  EXPECT_EQ(sought(file, kMiB + 5, SeekTo::Hole).offset, kMiB + 5);
  EXPECT_EQ(sought(file, kMiB, SeekTo::Data).offset, 2 * kMiB);
  EXPECT_FALSE(sought(file, kMiB, SeekTo::Data).eof);
  const Sought end = sought(file, 2 * kMiB, SeekTo::Hole);
  EXPECT_EQ(end.offset, 3 * kMiB) << "the end counts as a hole";
  EXPECT_TRUE(end.eof);
  EXPECT_EQ(status(fs().seek(who(), file, 3 * kMiB, SeekTo::Data)), Status::Invalid);
  SetAttributes longer;
  longer.size = 5 * kMiB;
  good(fs().set_attributes(who(), file, longer, std::nullopt));
  const Sought none = sought(file, 3 * kMiB, SeekTo::Data);
  EXPECT_EQ(none.offset, 5 * kMiB);
  EXPECT_TRUE(none.eof);
}

TEST_P(VfsRangeContract, what_is_deallocated_reads_as_zeros_and_takes_no_storage) {
  if (!properties().knows_holes) GTEST_SKIP() << "this store knows no holes";
  const Handle file = make_file("file").handle;
  write(file, 0, std::string(4 * kMiB, 'x'));
  const Attributes before = attributes(file);
  const Change change = good(fs().deallocate(who(), file, kMiB, 2 * kMiB));
  ASSERT_TRUE(change.after);
  EXPECT_EQ(change.after->size, 4 * kMiB);
  EXPECT_LE(attributes(file).used + 2 * kMiB, before.used);
  EXPECT_EQ(around(file, kMiB), std::string("xx\0\0", 4));
  EXPECT_EQ(around(file, 3 * kMiB), std::string("\0\0xx", 4));
  EXPECT_EQ(sought(file, 0, SeekTo::Hole).offset, kMiB);
  good(fs().deallocate(who(), file, 3 * kMiB, 10 * kMiB));
  EXPECT_EQ(attributes(file).size, 4 * kMiB) << "beyond the end there is nothing to give back";
  EXPECT_EQ(status(fs().deallocate(who(), file, 0, 0)), Status::Invalid);
  EXPECT_EQ(status(fs().deallocate(who(), file, 1, ~std::uint64_t{0})), Status::FileTooBig);
}

TEST_P(VfsRangeContract, allocated_space_is_the_files_before_it_is_written) {
  if (!use_small(kMiB)) GTEST_SKIP() << "no small store of this kind can be made here";
  const Handle file = make_file("file").handle;
  write(file, 0, "start");
  good(fs().allocate(who(), file, 3, 500'000));
  EXPECT_EQ(attributes(file).size, 500'003u);
  EXPECT_EQ(read(file, 0, 8), std::string("start\0\0\0", 8));
  EXPECT_GE(attributes(file).used, 500'000u);
  EXPECT_EQ(status(fs().allocate(who(), make_file("more").handle, 0, 2 * kMiB)), Status::NoSpace);
  // Another file takes all the rest.
  const Handle greedy = make_file("greedy").handle;
  for (std::uint64_t end = 0; end < 2 * kMiB;) {
    const Rope piece = Rope::copy_of(bytes_of(std::string(50'000, 'g')));
    const auto written = run(fs().write(who(), greedy, end, piece, Stability::FileSync));
    if (!written) break;
    end += written->count;
  }
  write(file, 0, std::string(500'003, 'x'));
  EXPECT_EQ(read(file, 499'000, 2'000), std::string(1'003, 'x'));
  EXPECT_EQ(status(fs().allocate(who(), file, 0, 0)), Status::Invalid);
}

TEST_P(VfsRangeContract, a_copy_has_the_bytes_and_the_holes_and_a_life_of_its_own) {
  if (!properties().copies) GTEST_SKIP() << "this store leaves copying to its server";
  const Handle from = holed("from");
  const Handle to = make_file("to").handle;
  write(to, 0, std::string(100, 't'));
  std::uint64_t done = 0;
  while (done < 3 * kMiB) {
    const Copied copied = good(fs().copy(who(), from, to, {done, done + 10, 3 * kMiB - done}));
    ASSERT_GT(copied.count, 0u);
    ASSERT_TRUE(copied.file.after);
    done += copied.count;
  }
  EXPECT_EQ(attributes(to).size, 3 * kMiB + 10);
  EXPECT_EQ(read(to, 8, 4), "ttaa");
  EXPECT_EQ(around(to, kMiB + 10), std::string("aa\0\0", 4));
  EXPECT_EQ(around(to, 2 * kMiB + 10), std::string("\0\0cc", 4));
  write(from, 0, "zzzz");
  write(to, 2 * kMiB + 10, "yyyy");
  EXPECT_EQ(read(to, 10, 4), "aaaa");
  EXPECT_EQ(read(from, 2 * kMiB, 4), "cccc");
}

TEST_P(VfsRangeContract, a_copy_stays_within_its_source_and_off_itself) {
  if (!properties().copies) GTEST_SKIP() << "this store leaves copying to its server";
  const Handle file = make_file("file").handle;
  write(file, 0, std::string(10'000, 'a') + std::string(10'000, 'b'));
  const auto copy = [&](const CopyRange& range) {
    return status(fs().copy(who(), file, file, range));
  };
  EXPECT_EQ(copy({0, 5'000, 10'000}), Status::Invalid) << "it overlaps itself";
  EXPECT_EQ(copy({15'000, 50'000, 5'001}), Status::Invalid) << "beyond the end";
  EXPECT_EQ(copy({20'001, 50'000, 0}), Status::Invalid);
  EXPECT_EQ(copy({0, std::uint64_t{1} << 63, 1}), Status::FileTooBig);
  EXPECT_EQ(attributes(file).size, 20'000u);
  EXPECT_EQ(copy({10'000, 0, 10'000}), std::nullopt);
  EXPECT_EQ(read(file, 0, 20'000), std::string(20'000, 'b'));
  const Copied none = good(fs().copy(who(), file, make_file("to").handle, {20'000, 0, 0}));
  EXPECT_EQ(none.count, 0u);
}

TEST_P(VfsRangeContract, a_clone_is_the_whole_range_at_once) {
  if (!properties().clones) GTEST_SKIP() << "the file system below does not share storage";
  const Handle from = holed("from");
  const Handle to = make_file("to").handle;
  const Change change = good(fs().clone(who(), from, to, {0, 0, 0}));
  ASSERT_TRUE(change.after);
  EXPECT_EQ(change.after->size, 3 * kMiB);
  EXPECT_EQ(around(to, kMiB), std::string("aa\0\0", 4));
  write(from, 0, "zzzz");
  EXPECT_EQ(read(to, 0, 4), "aaaa");
  EXPECT_EQ(status(fs().clone(who(), from, to, {0, 0, 4 * kMiB})), Status::Invalid);
}

TEST_P(VfsRangeContract, ranges_are_for_those_who_may_read_and_write) {
  if (!properties().copies) GTEST_SKIP() << "this store has no ranges to speak of";
  SKIP_WITHOUT_USERS();
  const Handle hers = make_file(alice, root(), "hers", 0600).handle;
  const Handle his = make_file(bob, root(), "his", 0644).handle;
  write(hers, 0, "text");
  write(his, 0, "text");
  const CallerContext alice_asks = as(alice);
  const CallerContext bob_asks = as(bob);
  EXPECT_EQ(status(fs().seek(bob_asks, hers, 0, SeekTo::Data)), Status::Access);
  EXPECT_EQ(status(fs().allocate(bob_asks, hers, 0, 10)), Status::Access);
  EXPECT_EQ(status(fs().deallocate(alice_asks, his, 0, 10)), Status::Access);
  EXPECT_EQ(status(fs().copy(bob_asks, hers, his, {})), Status::Access);
  EXPECT_EQ(status(fs().copy(alice_asks, hers, his, {})), Status::Access);
  EXPECT_EQ(status(fs().copy(alice_asks, his, hers, {})), std::nullopt);
}

class VfsXattrContract : public VfsContract {
 protected:
  CallerContext who() { return as(root_user); }
  std::optional<Status> set(const Handle& object, std::string_view name, std::string_view value,
                            XattrMode mode = XattrMode::Either) {
    return status(fs().set_xattr(who(), object, name, value, mode));
  }
  std::string value(const Handle& object, std::string_view name) {
    return good(fs().xattr(who(), object, name));
  }
  std::vector<std::string> names(const Handle& object) {
    std::vector<std::string> all = good(fs().list_xattrs(who(), object));
    std::sort(all.begin(), all.end());
    return all;
  }
};

#define SKIP_WITHOUT_XATTRS() \
  if (!properties().has_xattrs) GTEST_SKIP() << "the file system below has no such attributes"

TEST_P(VfsXattrContract, a_store_without_them_says_so) {
  const Handle file = make_file("file").handle;
  EXPECT_EQ(set(file, "name", "value"),
            properties().has_xattrs ? std::nullopt : std::optional(Status::NotSupported));
}

TEST_P(VfsXattrContract, are_kept_byte_for_byte_of_files_and_directories) {
  SKIP_WITHOUT_XATTRS();
  const std::string odd_name("a/b.\xff\n", 6);
  const std::string odd_value("\0\xff\0", 3);
  for (const Handle& object : {make_file("file").handle, make_directory(root(), "d").handle}) {
    EXPECT_TRUE(names(object).empty());
    EXPECT_EQ(set(object, odd_name, odd_value), std::nullopt);
    EXPECT_EQ(set(object, "empty", ""), std::nullopt);
    EXPECT_EQ(value(object, odd_name), odd_value);
    EXPECT_EQ(value(object, "empty"), "");
    EXPECT_EQ(names(object), (std::vector<std::string>{odd_name, "empty"}));
    if (properties().survives_restart) backend().restart();
    EXPECT_EQ(value(object, odd_name), odd_value);
    const Change removed = good(fs().remove_xattr(who(), object, odd_name));
    ASSERT_TRUE(removed.after);
    EXPECT_EQ(names(object), (std::vector<std::string>{"empty"}));
    EXPECT_EQ(status(fs().xattr(who(), object, odd_name)), Status::NoEntry);
    EXPECT_EQ(status(fs().remove_xattr(who(), object, odd_name)), Status::NoEntry);
  }
}

TEST_P(VfsXattrContract, are_made_and_replaced_as_asked) {
  SKIP_WITHOUT_XATTRS();
  const Handle file = make_file("file").handle;
  EXPECT_EQ(set(file, "name", "x", XattrMode::Replace), Status::NoEntry);
  EXPECT_EQ(set(file, "name", "one", XattrMode::Create), std::nullopt);
  EXPECT_EQ(set(file, "name", "x", XattrMode::Create), Status::Exists);
  EXPECT_EQ(value(file, "name"), "one");
  EXPECT_EQ(set(file, "name", "two", XattrMode::Replace), std::nullopt);
  EXPECT_EQ(set(file, "name", "three"), std::nullopt);
  EXPECT_EQ(value(file, "name"), "three");
}

TEST_P(VfsXattrContract, have_names_and_sizes_with_bounds) {
  SKIP_WITHOUT_XATTRS();
  const Handle file = make_file("file").handle;
  EXPECT_EQ(set(file, "", "x"), Status::Invalid);
  EXPECT_EQ(set(file, std::string_view("a\0b", 3), "x"), Status::Invalid);
  EXPECT_EQ(set(file, std::string(251, 'n'), "x"), Status::NameTooLong);
  EXPECT_EQ(set(file, std::string(250, 'n'), "x"), std::nullopt);
  EXPECT_EQ(set(file, "large", std::string(kLargestXattr + 1, 'v')), Status::FileTooBig);
  EXPECT_EQ(set(file, "large", std::string(2'000, 'v')), std::nullopt);
  const Handle link = good(fs().symlink(who(), root(), "link", "file", {})).node.handle;
  EXPECT_EQ(set(link, "name", "x"), Status::NotSupported);
  EXPECT_EQ(status(fs().xattr(who(), link, "name")), Status::NotSupported);
  EXPECT_EQ(names(file).size(), 2u);
}

TEST_P(VfsXattrContract, are_read_and_changed_by_those_who_may) {
  SKIP_WITHOUT_USERS();
  SKIP_WITHOUT_XATTRS();
  const Handle file = make_file(alice, root(), "file", 0640).handle;
  const CallerContext bob_asks = as(bob);
  const CallerContext friend_asks = as(friend_of_alice);
  good(fs().set_xattr(as(alice), file, "name", "value", XattrMode::Either));
  EXPECT_EQ(status(fs().xattr(bob_asks, file, "name")), Status::Access);
  EXPECT_EQ(good(fs().xattr(friend_asks, file, "name")), "value");
  EXPECT_EQ(status(fs().set_xattr(friend_asks, file, "name", "x", XattrMode::Either)),
            Status::Access);
  EXPECT_EQ(status(fs().remove_xattr(friend_asks, file, "name")), Status::Access);
  EXPECT_EQ(good(fs().list_xattrs(bob_asks, file)).size(), 1u);
  EXPECT_EQ(status(fs().set_xattr(bob_asks, root(), "name", "x", XattrMode::Either)), Status::Perm)
      << "a sticky directory of somebody else";
}

}  // namespace stag::vfs::testing
