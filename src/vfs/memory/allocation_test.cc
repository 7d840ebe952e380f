// What takes nothing from the heap, and what is so when the heap has nothing to give: a change is
// made whole or not at all, and costs what is there.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/bytes.h"
#include "testing/failing_new.h"
#include "vfs/memory/store.h"

namespace stag::vfs::memory {
namespace {

using testing::allocations_until_failure;

Buffer block_of(std::size_t size) {
  return Block::allocate(size).freeze(size);
}

TEST(FileData, takes_nothing_from_the_heap_when_written_again_block_by_block) {
  constexpr std::size_t kSize = 64 << 10;
  constexpr std::uint64_t kBlocks = 4;
  const Rope blocks[] = {Rope(block_of(kSize)), Rope(block_of(kSize))};
  FileData data;
  const auto write = [&](const Rope& block) {
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      Replaced replaced;
      data.write(i * kSize, block, replaced);
    }
  };
  write(blocks[0]);
  allocations_until_failure = 1;
  for (int i = 0; i < 10; ++i) EXPECT_NO_THROW(write(blocks[i % 2]));
  EXPECT_EQ(std::exchange(allocations_until_failure, 0), 1u);
  EXPECT_EQ(data.stored(), kBlocks * kSize);
  const Rope read = data.read(0, kBlocks * kSize);
  ASSERT_EQ(read.pieces().size(), kBlocks);
  EXPECT_EQ(read.pieces()[0].data(), blocks[1].pieces()[0].data()) << "what was written last";
}

// A store with a file that has content, and an empty directory.
class World {
 public:
  World() {
    file = *made(store.create(root, store.root(), "file", {}));
    directory = *made(store.mkdir(root, store.root(), "directory", {}));
    // Many short extents at its start, a large one behind them.
    const std::string all = original();
    for (std::uint64_t i = 0; i < kShort; ++i) write(all, i * 3500, 3500);
    write(all, kShort * 3500, kSize - kShort * 3500);
  }

  static std::string original() {
    return std::string(kSize / 2, 'a') + std::string(kSize - kSize / 2, 'z');
  }
  std::string content() {
    const auto read = store.read(root, file, 0, 2 * kSize);
    return std::string(text_of(read->data.flatten().bytes()));
  }
  std::uint64_t counted() const { return store.usage().total_bytes - store.usage().free_bytes; }
  // How many there are, whether or not a name leads to them: handles end with a number.
  std::size_t objects() {
    std::array<std::byte, 16> bytes;
    std::ranges::copy(store.root().bytes(), bytes.begin());
    std::size_t count = 0;
    for (std::uint64_t id = 1; id < 10; ++id) {
      store_be(bytes.data() + 8, id);
      count += store.attributes(*Handle::from(bytes)).ok() ? 1 : 0;
    }
    return count;
  }
  bool has(std::string_view name) { return store.lookup(root, directory, name).ok(); }
  // Of the directory.
  std::uint32_t links() { return store.attributes(directory)->links; }
  // What is counted when both are gone, which needs that nothing else was left in the directory.
  std::uint64_t counted_in_the_end() {
    EXPECT_TRUE(store.remove(root, store.root(), "file").ok());
    EXPECT_TRUE(store.rmdir(root, store.root(), "directory").ok());
    return counted();
  }

  static constexpr std::size_t kSize = 300'000;
  const Credentials root{0, 0, {}};
  Store store{Options{}};
  Handle file, directory;

 private:
  static constexpr std::uint64_t kShort = 17;
  static Outcome<Handle> made(Outcome<Created> outcome) { return outcome->node.handle; }
  void write(const std::string& all, std::uint64_t offset, std::size_t length) {
    const Rope data = Rope::copy_of(bytes_of(all).subspan(offset, length));
    ASSERT_TRUE(store.write(root, file, offset, data).ok());
  }
};

// Makes the change to a new World with each of its allocations failing once, and then with none.
// `check` sees each World, and whether the change was made.
template <class Change, class Check>
void fail_each(Change change, Check check) {
  std::size_t n = 1;
  for (bool failed = true; failed; ++n) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    World world;
    allocations_until_failure = n;
    bool made = true;
    try {
      EXPECT_TRUE(change(world).ok());
    } catch (const std::bad_alloc&) {
      made = false;
    }
    failed = std::exchange(allocations_until_failure, 0) == 0;
    check(world, made);
    EXPECT_EQ(world.counted_in_the_end(), 0u);
  }
  EXPECT_GT(n, 2u) << "it allocates nothing";
}

// Of changes to the data: all of `after`, or all that was there.
template <class Change>
void fail_each_of_data(Change change, const std::string& after) {
  const std::uint64_t counted = World().counted();
  fail_each(change, [&](World& world, bool made) {
    EXPECT_TRUE(world.content() == (made ? after : World::original()));
    if (!made) {
      EXPECT_EQ(world.counted(), counted);
    }
  });
}

std::string changed(std::size_t offset, const std::string& to) {
  std::string content = World::original();
  content.resize(std::max(content.size(), offset + to.size()));
  return content.replace(offset, to.size(), to);
}

TEST(StoreMemory, that_runs_out_in_WRITE_loses_nothing_of_what_is_around_it) {
  const std::pair<std::uint64_t, std::size_t> ranges[] = {
      {100'000, 90'000}, {100'000, 9'000}, {2'000, 70'000}, {2'000, 9'000}, {299'000, 5'000}};
  for (const auto& [offset, size] : ranges) {
    const std::string bytes(size, 'b');
    const Rope data = Rope::copy_of(bytes_of(bytes));
    fail_each_of_data(
        [&, at = offset](World& w) { return w.store.write(w.root, w.file, at, data); },
        changed(offset, bytes));
  }
}

TEST(StoreMemory, that_runs_out_in_WRITE_of_several_pieces_is_as_if_none_had_come) {
  Rope data;
  for (int i = 0; i < 3; ++i) data.append(Buffer::copy_of(bytes_of(std::string(20'000, 'b'))));
  fail_each_of_data([&](World& w) { return w.store.write(w.root, w.file, 280'000, data); },
                    changed(280'000, std::string(60'000, 'b')));
}

TEST(StoreMemory, that_runs_out_in_DEALLOCATE_or_SETATTR_of_the_size_loses_nothing) {
  fail_each_of_data([](World& w) { return w.store.deallocate(w.root, w.file, 100'000, 9'000); },
                    changed(100'000, std::string(9'000, '\0')));
  SetAttributes shorter;
  shorter.size = 65'000;
  fail_each_of_data([&](World& w) { return w.store.set_attributes(w.root, w.file, shorter, {}); },
                    World::original().substr(0, 65'000));
}

TEST(StoreMemory, that_runs_out_in_ALLOCATE_leaves_the_file_as_it_was) {
  fail_each_of_data([](World& w) { return w.store.allocate(w.root, w.file, 290'000, 3 << 20); },
                    changed(World::kSize, std::string(World::kSize, '\0')));
}

TEST(StoreMemory, that_runs_out_in_COPY_or_CLONE_leaves_the_file_as_it_was) {
  const CopyRange within{.from = 140'000, .to = 1'000, .length = 100'000};
  fail_each_of_data([&](World& w) { return w.store.copy(w.root, w.file, w.file, within); },
                    changed(1'000, World::original().substr(140'000, 100'000)));
  const CopyRange behind{.from = 1'000, .to = 350'000, .length = 200'000};
  fail_each_of_data([&](World& w) { return w.store.clone(w.root, w.file, w.file, behind); },
                    changed(350'000, World::original().substr(1'000, 200'000)));
}

// Makes "name" in the directory.
template <class Make>
void fail_each_name(Make make) {
  const std::uint64_t counted = World().counted();
  fail_each(make, [&](World& world, bool made) {
    EXPECT_EQ(world.has("name"), made);
    if (made) {
      EXPECT_TRUE(world.store.remove(world.root, world.directory, "name").ok() ||
                  world.store.rmdir(world.root, world.directory, "name").ok());
    }
    EXPECT_EQ(world.counted(), counted);
    EXPECT_EQ(world.objects(), 3u) << "root, file and directory";
    EXPECT_EQ(world.links(), 2u);
  });
}

TEST(StoreMemory, that_runs_out_in_CREATE_MKDIR_SYMLINK_or_LINK_leaves_no_name) {
  fail_each_name([](World& w) { return w.store.create(w.root, w.directory, "name", {}); });
  fail_each_name([](World& w) { return w.store.mkdir(w.root, w.directory, "name", {}); });
  fail_each_name([](World& w) { return w.store.symlink(w.root, w.directory, "name", "to", {}); });
  fail_each_name([](World& w) { return w.store.link(w.root, w.file, w.directory, "name"); });
}

TEST(StoreMemory, that_runs_out_in_RENAME_leaves_the_object_where_it_was) {
  fail_each(
      [](World& w) {
        return w.store.rename(w.root, w.store.root(), "file", w.directory,
                              "a long name, elsewhere");
      },
      [](World& w, bool made) {
        EXPECT_EQ(w.has("a long name, elsewhere"), made);
        EXPECT_EQ(w.store.lookup(w.root, w.store.root(), "file").ok(), !made);
        if (made) {
          EXPECT_TRUE(
              w.store.rename(w.root, w.directory, "a long name, elsewhere", w.store.root(), "file")
                  .ok());
        }
      });
}

}  // namespace
}  // namespace stag::vfs::memory
