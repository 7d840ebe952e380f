#include "vfs/memory/memory.h"

#include "testing/vfs/fixture.h"

namespace stag::vfs {
namespace {

using testing::finish;
using testing::InlineLoop;

class MemoryStore : public ::testing::Test {
 protected:
  explicit MemoryStore(memory::Options options = {}) : fs(options) {}
  template <class T>
  T run(Operation<T> operation) {
    Outcome<T> outcome = finish(loop, std::move(operation));
    STAG_CHECK(outcome.ok());
    return *std::move(outcome);
  }
  Handle make(std::string_view name) {
    return run(fs.create(caller(), fs.root(), name, {})).node.handle;
  }
  CallerContext caller() { return {loop, root}; }
  Rope read(const Handle& file, std::uint64_t offset, std::uint32_t count) {
    return run(fs.read(caller(), file, offset, count)).data;
  }
  void write(const Handle& file, std::uint64_t offset, Rope data) {
    run(fs.write(caller(), file, offset, std::move(data), Stability::Unstable));
  }

  InlineLoop loop;
  const Credentials root{0, 0, {}};
  MemoryFileSystem fs;
};

class MemoryStoreFull : public MemoryStore {
 protected:
  MemoryStoreFull() : MemoryStore(small()) {}
  static memory::Options small() {
    memory::Options options;
    options.max_bytes = 1 << 20;
    return options;
  }
  Rope zeros(std::size_t size) { return Rope::copy_of(bytes_of(std::string(size, '\0'))); }
  std::uint64_t free_bytes() { return run(fs.usage(caller())).free_bytes; }
};

// The memory of a message that was received. What the store keeps of all of them together is seen.
class Received final : public Storage {
 public:
  static Buffer of(std::size_t size) {
    auto* const received = new Received(size);
    return Buffer(received, received->bytes_);
  }
  static inline std::size_t kept = 0;  // bytes

 private:
  explicit Received(std::size_t size) : Storage(size), bytes_(size, std::byte{'r'}) {
    kept += size;
  }
  void release() noexcept override {
    kept -= bytes_.size();
    delete this;
  }
  std::vector<std::byte> bytes_;
};

class MemoryStoreKeeps : public MemoryStore {
 protected:
  static constexpr std::size_t kMessage = 1 << 20;
  static constexpr std::uint64_t kPart = 8 * 1024;
  static constexpr std::uint64_t kRounds = 40;
  std::uint64_t counted() {
    const Usage usage = run(fs.usage(caller()));
    return usage.total_bytes - usage.free_bytes;
  }
};

TEST_F(MemoryStore, the_fresh_root_is_open_to_all_and_sticky) {
  EXPECT_EQ(run(fs.attributes(caller(), fs.root())).mode, 01777u);
}

TEST_F(MemoryStore, a_placed_block_becomes_the_storage_and_is_read_without_a_copy) {
  const Handle file = make("file");
  Block block = fs.placement(1 << 20);
  std::memset(block.data(), 'p', 1 << 20);
  const std::byte* place = block.data();
  write(file, 0, Rope(std::move(block).freeze(1 << 20)));
  const Rope whole = read(file, 0, 1 << 20);
  ASSERT_EQ(whole.pieces().size(), 1u);
  EXPECT_EQ(whole.pieces()[0].data(), place);
  const Rope part = read(file, 65'536, 65'536);
  ASSERT_EQ(part.pieces().size(), 1u);
  EXPECT_EQ(part.pieces()[0].data(), place + 65'536);
}

TEST_F(MemoryStore, neighbours_of_one_placement_leave_as_one_piece_after_a_write_elsewhere) {
  const Handle file = make("file");
  write(file, 0, Rope::copy_of(bytes_of(std::string(1 << 20, 'a'))));
  write(file, 900'000, Rope::copy_of(bytes_of("b")));
  EXPECT_EQ(read(file, 0, 900'000).pieces().size(), 1u);
}

TEST_F(MemoryStore, borrowed_and_small_pieces_are_copied) {
  const Handle file = make("file");
  const std::string lent(100'000, 'l');
  write(file, 0, Rope::borrow(bytes_of(lent)));
  EXPECT_NE(read(file, 0, 100'000).pieces()[0].data(), bytes_of(lent).data());
  const Buffer receive_buffer = Buffer::copy_of(bytes_of(std::string(100'000, 'r')));
  write(file, 0, Rope(receive_buffer.slice(50, 1000)));
  EXPECT_NE(read(file, 0, 1000).pieces()[0].data(), receive_buffer.data() + 50);
}

TEST_F(MemoryStoreKeeps, no_large_message_for_the_small_part_that_was_copied_to_another_file) {
  const Handle from = make("from");
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    write(from, 0, Rope(Received::of(kMessage)));
    const Handle to = make(std::to_string(i));
    run(fs.copy(caller(), from, to, {.from = kPart, .to = 0, .length = kPart}));
    EXPECT_EQ(read(to, 0, kPart), Rope::copy_of(bytes_of(std::string(kPart, 'r'))));
  }
  EXPECT_LE(Received::kept, 4 * counted());
}

TEST_F(MemoryStoreKeeps, no_large_message_for_a_small_write_beside_a_large_one) {
  const Handle large = make("large");
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    const Buffer message = Received::of(kMessage);
    write(make(std::to_string(i)), 0, Rope(message.slice(0, kPart)));
    write(large, 0, Rope(message.slice(kPart, kMessage - kPart)));
  }
  EXPECT_LE(Received::kept, 4 * counted());
}

TEST_F(MemoryStoreKeeps, no_message_of_which_less_than_a_quarter_is_left) {
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    const Handle file = make(std::to_string(i));
    write(file, 0, Rope(Received::of(kMessage).slice(0, kMessage / 2)));
    SetAttributes changes;
    changes.size = kMessage / 5;
    run(fs.set_attributes(caller(), file, changes, std::nullopt));
  }
  EXPECT_LE(Received::kept, 4 * counted());
}

TEST_F(MemoryStore, small_writes_go_to_what_is_there_while_nobody_reads_it) {
  const Handle file = make("file");
  Rope data;
  for (const char c : {'a', 'b'}) data.append(Buffer::copy_of(bytes_of(std::string(16 * 1024, c))));
  write(file, 0, data);
  data = {};
  const std::byte* const there = read(file, 0, 1).pieces().front().data();
  // Across the border of the two.
  write(file, 16 * 1024 - 2, Rope::borrow(bytes_of("wxyz")));
  EXPECT_EQ(read(file, 0, 1).pieces().front().data(), there);
  const Rope held = read(file, 16 * 1024 - 3, 6);
  EXPECT_EQ(text_of(held.flatten().bytes()), "awxyzb");
  write(file, 16 * 1024 - 2, Rope::borrow(bytes_of("WXYZ")));
  EXPECT_EQ(text_of(held.flatten().bytes()), "awxyzb");
  EXPECT_EQ(text_of(read(file, 16 * 1024 - 3, 6).flatten().bytes()), "aWXYZb");
}

TEST_F(MemoryStore, many_small_appends_leave_few_pieces) {
  const Handle file = make("log");
  for (int i = 0; i < 5000; ++i)
    write(file, static_cast<std::uint64_t>(i) * 100,
          Rope::copy_of(bytes_of(std::string(100, 'x'))));
  const Rope all = read(file, 0, 500'000);
  EXPECT_EQ(all.size(), 500'000u);
  EXPECT_LE(all.pieces().size(), 8u * 18u);
}

TEST_F(MemoryStore, random_4k_writes_over_a_large_one_keep_storage_near_the_size) {
  const Handle file = make("file");
  write(file, 0, Rope::copy_of(bytes_of(std::string(1 << 20, 'a'))));
  for (std::uint64_t i = 0; i < 256; ++i)
    write(file, i * 37 % 256 * 4096, Rope::copy_of(bytes_of(std::string(4096, 'b'))));
  const Attributes attributes = run(fs.attributes(caller(), file));
  EXPECT_EQ(attributes.used, 1u << 20);
  EXPECT_EQ(read(file, 0, 1 << 20), Rope::copy_of(bytes_of(std::string(1 << 20, 'b'))));
}

TEST_F(MemoryStore, every_change_is_seen_in_the_change_attribute) {
  const Handle file = make("file");
  const auto change_of = [&](const Handle& object) {
    return run(fs.attributes(caller(), object)).change;
  };
  const std::uint64_t made = change_of(file);
  const std::uint64_t root_made = change_of(fs.root());
  write(file, 0, Rope::copy_of(bytes_of("x")));
  const std::uint64_t written = change_of(file);
  EXPECT_NE(written, made);
  run(fs.set_attributes(caller(), file, testing::mode_of(0600), std::nullopt));
  EXPECT_NE(change_of(file), written);
  EXPECT_EQ(change_of(fs.root()), root_made);
  run(fs.remove(caller(), fs.root(), "file"));
  EXPECT_NE(change_of(fs.root()), root_made);
}

TEST_F(MemoryStore, handles_of_another_store_are_stale) {
  MemoryFileSystem other;
  const auto outcome = finish(loop, fs.attributes(caller(), other.root()));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error(), Status::Stale);
}

TEST_F(MemoryStoreFull, a_full_store_refuses_and_gives_back_what_is_removed) {
  const std::uint64_t free_at_start = free_bytes();
  const Handle file = make("file");
  write(file, 0, zeros(1'000'000));
  const auto refused =
      finish(loop, fs.write(caller(), file, 1'000'000, zeros(100'000), Stability::Unstable));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(), Status::NoSpace);
  EXPECT_EQ(run(fs.attributes(caller(), file)).size, 1'000'000u);
  write(file, 0, zeros(1'000'000));  // Replacing needs nothing more.
  run(fs.remove(caller(), fs.root(), "file"));
  EXPECT_EQ(free_bytes(), free_at_start);
}

TEST_F(MemoryStoreFull, objects_count_too) {
  Outcome<Created> last = Failure{Status::Io};
  for (int i = 0; i < 2000; ++i) {
    last = finish(loop, fs.create(caller(), fs.root(), std::to_string(i), {}));
    if (!last) break;
  }
  ASSERT_FALSE(last.ok());
  EXPECT_EQ(last.error(), Status::NoSpace);
}

TEST_F(MemoryStoreFull, the_target_of_a_symlink_counts_as_long_as_the_symlink_is_there) {
  const std::uint64_t free_at_start = free_bytes();
  run(fs.symlink(caller(), fs.root(), "short", "t", {}));
  const std::uint64_t of_short = free_at_start - free_bytes();
  run(fs.symlink(caller(), fs.root(), "long", std::string(4000, 't'), {}));
  EXPECT_EQ(free_at_start - free_bytes(), 2 * of_short + 3999);
  run(fs.rename(caller(), fs.root(), "long", fs.root(), "short"));
  EXPECT_EQ(free_at_start - free_bytes(), of_short + 3999);
  run(fs.remove(caller(), fs.root(), "short"));
  EXPECT_EQ(free_bytes(), free_at_start);
}

TEST_F(MemoryStoreFull, access_control_lists_count_too) {
  const std::uint64_t free_at_start = free_bytes();
  std::vector<AclEntry> entries;
  for (std::uint32_t id = 1; id <= 1000; ++id) entries.push_back({AclEntry::Tag::User, id, 7});
  for (const auto tag : {AclEntry::Tag::Owner, AclEntry::Tag::OwningGroup, AclEntry::Tag::Mask,
                         AclEntry::Tag::Others})
    entries.push_back({tag, 0, 7});
  const Acl acl = *Acl::from(entries);
  const Handle directory = run(fs.mkdir(caller(), fs.root(), "d", {})).node.handle;
  run(fs.set_acls(caller(), directory, {{}, acl}));
  EXPECT_GT(free_at_start - free_bytes(), 1000 * sizeof(AclEntry));
  int made = 0;
  while (finish(loop, fs.create(caller(), directory, std::to_string(made), {})).ok()) ++made;
  EXPECT_LT(made, 100) << "each has a list of its own";
  for (int i = 0; i < made; ++i) run(fs.remove(caller(), directory, std::to_string(i)));
  run(fs.rmdir(caller(), fs.root(), "d"));
  EXPECT_EQ(free_bytes(), free_at_start);
}

TEST_F(MemoryStoreFull, a_truncated_file_frees_its_tail) {
  const Handle file = make("file");
  write(file, 0, zeros(900'000));
  SetAttributes changes;
  changes.size = 1000;
  run(fs.set_attributes(caller(), file, changes, std::nullopt));
  EXPECT_GT(free_bytes(), 1'000'000u);
}

}  // namespace
}  // namespace stag::vfs
