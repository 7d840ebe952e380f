// Contract of every FileSystem, part 2: contents and attributes.
#pragma once

#include "testing/vfs/fixture.h"

namespace stag::vfs::testing {

TEST_P(VfsContract, what_was_written_is_read) {
  const Node file = make_file("file");
  write(file.handle, 0, "hello, world");
  EXPECT_EQ(read(file.handle, 0, 100), "hello, world");
  EXPECT_EQ(read(file.handle, 7, 3), "wor");
  write(file.handle, 7, "there");
  EXPECT_EQ(read(file.handle, 0, 100), "hello, there");
  EXPECT_EQ(attributes(file.handle).size, 12u);
}

TEST_P(VfsContract, eof_is_told_exactly) {
  const Node file = make_file("file");
  write(file.handle, 0, "0123456789");
  EXPECT_FALSE(good(fs().read(as(root_user), file.handle, 0, 9)).eof);
  EXPECT_TRUE(good(fs().read(as(root_user), file.handle, 0, 10)).eof);
  EXPECT_TRUE(good(fs().read(as(root_user), file.handle, 5, 100)).eof);
  const ReadResult beyond = good(fs().read(as(root_user), file.handle, 1000, 10));
  EXPECT_TRUE(beyond.eof);
  EXPECT_EQ(beyond.data.size(), 0u);
  EXPECT_EQ(beyond.attributes.size, 10u);
  EXPECT_FALSE(good(fs().read(as(root_user), file.handle, 3, 0)).eof);
}

TEST_P(VfsContract, holes_read_as_zeros) {
  const Node file = make_file("file");
  write(file.handle, 100'000, "end");
  EXPECT_EQ(attributes(file.handle).size, 100'003u);
  EXPECT_EQ(read(file.handle, 99'998, 5), std::string("\0\0end", 5));
  const std::string all = read(file.handle, 0, 200'000);
  EXPECT_EQ(all.size(), 100'003u);
  EXPECT_EQ(all.find_first_not_of('\0'), 100'000u);
}

TEST_P(VfsContract, every_mix_of_overlapping_writes_and_truncations_reads_like_a_string) {
  const Node file = make_file("file");
  std::string model;
  std::uint32_t seed = 7;
  auto next = [&seed](std::uint32_t bound) {
    return (seed = seed * 1664525 + 1013904223) / 65536 % bound;
  };
  for (int step = 0; step < 600; ++step) {
    if (next(12) == 0) {
      SetAttributes changes;
      changes.size = next(65'000) * 3;
      good(fs().set_attributes(as(root_user), file.handle, changes, std::nullopt));
      model.resize(*changes.size);
      continue;
    }
    const std::size_t length = 1 + (next(3) == 0 ? next(60'000) : next(3'000));
    const std::size_t offset = next(65'000) * 2;
    const std::string text(length, static_cast<char>('a' + step % 26));
    write(file.handle, offset, text);
    if (model.size() < offset + length) model.resize(offset + length);
    model.replace(offset, length, text);
    const std::size_t from = next(65'000);
    const std::string expected = from < model.size() ? model.substr(from, 70'000) : std::string();
    ASSERT_EQ(read(file.handle, from, 70'000), expected) << "step " << step;
  }
  EXPECT_EQ(read(file.handle, 0, 1 << 20), model);
}

TEST_P(VfsContract, data_that_was_read_never_changes) {
  const Node file = make_file("file");
  write(file.handle, 0, std::string(100'000, 'a'));
  const ReadResult before = good(fs().read(as(root_user), file.handle, 0, 100'000));
  write(file.handle, 10, std::string(50'000, 'b'));
  SetAttributes changes;
  changes.size = 0;
  good(fs().set_attributes(as(root_user), file.handle, changes, std::nullopt));
  EXPECT_EQ(before.data, Rope::copy_of(bytes_of(std::string(100'000, 'a'))));
}

TEST_P(VfsContract, ropes_of_many_pieces_and_borrowed_bytes_are_written_whole) {
  const Node file = make_file("file");
  Rope rope;
  std::string expected;
  std::string borrowed(20'000, 'x');
  for (int i = 0; i < 40; ++i) {
    const std::string piece(i * 700 % 12'000 + 1, static_cast<char>('A' + i % 26));
    rope.append(Buffer::copy_of(bytes_of(piece)));
    expected += piece;
  }
  rope.append(Buffer::borrow(bytes_of(borrowed)));
  expected += borrowed;
  const WriteResult written =
      good(fs().write(as(root_user), file.handle, 3, std::move(rope), Stability::FileSync));
  EXPECT_EQ(written.count, expected.size());
  EXPECT_EQ(written.committed, Stability::FileSync);
  borrowed.assign(borrowed.size(), 'y');
  EXPECT_EQ(read(file.handle, 3, 1 << 20), expected);
}

TEST_P(VfsContract, a_stable_write_is_at_least_as_stable_as_asked) {
  const Node file = make_file("file");
  for (const Stability asked : {Stability::Unstable, Stability::DataSync, Stability::FileSync}) {
    const WriteResult written =
        good(fs().write(as(root_user), file.handle, 0, Rope::copy_of(bytes_of("stable")), asked));
    EXPECT_GE(written.committed, asked);
    ASSERT_TRUE(written.file.after);
    EXPECT_EQ(written.file.after->size, 6u);
  }
  EXPECT_TRUE(good(fs().commit(as(root_user), file.handle, 0, 0)).after);
  EXPECT_TRUE(good(fs().commit(as(root_user), file.handle, 2, 2)).after);
  const Node directory = make_directory(root(), "d");
  EXPECT_EQ(status(fs().commit(as(root_user), directory.handle, 0, 0)), Status::IsDirectory);
}

TEST_P(VfsContract, a_write_beyond_the_largest_offset_is_too_big) {
  const Node file = make_file("file");
  const Rope byte = Rope::copy_of(bytes_of("x"));
  for (const std::uint64_t offset :
       {~std::uint64_t{0}, std::uint64_t{1} << 63, (std::uint64_t{1} << 63) - 1}) {
    EXPECT_EQ(status(fs().write(as(root_user), file.handle, offset, byte, Stability::Unstable)),
              Status::FileTooBig);
    EXPECT_EQ(good(fs().read(as(root_user), file.handle, offset, 4096)).data.size(), 0u);
  }
  SetAttributes changes;
  changes.size = ~std::uint64_t{0};
  EXPECT_EQ(status(fs().set_attributes(as(root_user), file.handle, changes, std::nullopt)),
            Status::FileTooBig);
}

TEST_P(VfsContract, an_empty_write_changes_nothing) {
  const Node file = make_file("file");
  write(file.handle, 0, "abc");
  const WriteResult written =
      good(fs().write(as(root_user), file.handle, 100, Rope(), Stability::FileSync));
  EXPECT_EQ(written.count, 0u);
  EXPECT_EQ(attributes(file.handle).size, 3u);
}

TEST_P(VfsContract, attributes_are_set_and_reported_with_the_old_ones) {
  const Node file = make_file("file");
  SetAttributes changes;
  changes.mode = 04751;
  changes.size = 10;
  changes.accessed = {SetTime::How::To, {1'000'000'000, 5}};
  changes.modified = {SetTime::How::To, {1'000'000'001, 999'999'999}};
  const Change change =
      good(fs().set_attributes(as(root_user), file.handle, changes, std::nullopt));
  ASSERT_TRUE(change.after);
  if (change.before) {
    EXPECT_EQ(change.before->size, 0u);
  }
  for (const Attributes& after : {*change.after, attributes(file.handle)}) {
    EXPECT_EQ(after.mode, 04751u);
    EXPECT_EQ(after.size, 10u);
    EXPECT_EQ(after.accessed, (Time{1'000'000'000, 5}));
    EXPECT_EQ(after.modified, (Time{1'000'000'001, 999'999'999}));
    EXPECT_GE(after.changed, file.attributes.changed);
  }
  changes = {};
  changes.modified.how = SetTime::How::Now;
  good(fs().set_attributes(as(root_user), file.handle, changes, std::nullopt));
  EXPECT_GE(attributes(file.handle).modified, file.attributes.modified);
  EXPECT_EQ(attributes(file.handle).accessed, (Time{1'000'000'000, 5}));
}

TEST_P(VfsContract, a_guard_that_does_not_match_stops_the_change) {
  const Node file = make_file("file", 0644);
  SetAttributes changes = mode_of(0600);
  Time other = file.attributes.changed;
  --other.seconds;
  EXPECT_EQ(status(fs().set_attributes(as(root_user), file.handle, changes, other)),
            Status::NotSync);
  EXPECT_EQ(attributes(file.handle).mode, 0644u);
  good(fs().set_attributes(as(root_user), file.handle, changes, attributes(file.handle).changed));
  EXPECT_EQ(attributes(file.handle).mode, 0600u);
}

TEST_P(VfsContract, size_is_set_of_regular_files_only) {
  SetAttributes changes;
  changes.size = 0;
  const Node directory = make_directory(root(), "d");
  EXPECT_EQ(status(fs().set_attributes(as(root_user), directory.handle, changes, std::nullopt)),
            Status::IsDirectory);
  const Node fifo = good(fs().mknod(as(root_user), root(), "fifo", {FileType::Fifo, {}}, {})).node;
  EXPECT_EQ(status(fs().set_attributes(as(root_user), fifo.handle, changes, std::nullopt)),
            Status::Invalid);
}

TEST_P(VfsContract, writing_moves_the_times_and_takes_storage) {
  const Node file = make_file("file");
  SetAttributes past;
  past.modified = {SetTime::How::To, {1000, 0}};
  good(fs().set_attributes(as(root_user), file.handle, past, std::nullopt));
  const Attributes before = attributes(file.handle);
  write(file.handle, 0, "x");
  const Attributes after = attributes(file.handle);
  EXPECT_GT(after.modified, before.modified);
  EXPECT_GT(after.used, 0u);
}

TEST_P(VfsContract, usage_adds_up) {
  const Usage usage = good(fs().usage(as(alice)));
  EXPECT_GT(usage.total_bytes, 0u);
  EXPECT_LE(usage.free_bytes, usage.total_bytes);
  EXPECT_LE(usage.available_bytes, usage.free_bytes);
  EXPECT_LE(usage.free_files, usage.total_files);
  EXPECT_GE(fs().limits().max_name, 255u);
  EXPECT_GT(fs().limits().max_file_size, std::uint64_t{1} << 40);
}

}  // namespace stag::vfs::testing
