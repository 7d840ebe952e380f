// Files that programs of the server have removed: the descriptors that the store has of them keep
// their space from being freed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "testing/vfs/posix_backend.h"
#include "vfs/posix/posix.h"

namespace stag::vfs {
namespace {

namespace files = std::filesystem;

using testing::finish;
using testing::PosixBackend;

class PosixRemovedFiles : public ::testing::TestWithParam<testing::PosixKind> {
 protected:
  static constexpr std::uint64_t kDisk = 1 << 20;
  static constexpr int kMostInodes = 200;  // of a testing::SmallDisk

  explicit PosixRemovedFiles(std::uint64_t small = 0) : backend_(GetParam(), small) {}
  FileSystem& fs() { return backend_.fs(); }
  files::path there(const std::string& name) const { return backend_.export_path() / name; }
  Handle look_up(const std::string& name) {
    const auto found = finish(loop_, fs().lookup(caller_, fs().root(), name));
    STAG_CHECK(found.ok());
    return found->node.handle;
  }
  Handle create(const std::string& name) {
    const auto made = finish(loop_, fs().create(caller_, fs().root(), name, {}));
    STAG_CHECK(made.ok());
    return made->node.handle;
  }
  // As clients do, who send what was not written again.
  std::optional<Status> write(const Handle& file, std::size_t bytes, Stability stability) {
    return write(loop_, file, bytes, stability);
  }
  std::optional<Status> write(testing::InlineLoop& loop, const Handle& file, std::size_t bytes,
                              Stability stability) {
    const std::vector<std::byte> data(bytes);
    for (std::size_t done = 0; done < bytes;) {
      const Rope rest = Rope::copy_of(Bytes(data).subspan(done));
      const auto written = finish(loop, fs().write({loop, user_}, file, done, rest, stability));
      if (!written) return written.error();
      done += written->count;
    }
    return std::nullopt;
  }
  // Descriptors of this process, which here is the server, that have such an end in /proc.
  int descriptors(std::string_view name) const {
    int count = 0;
    for (const auto& entry : files::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const std::string path = files::read_symlink(entry.path(), gone);
      count += path.starts_with(backend_.export_path().string()) && path.ends_with(name);
    }
    return count;
  }

  PosixBackend backend_;
  testing::InlineLoop loop_;
  const Credentials user_{::geteuid(), ::getegid(), {}};
  const CallerContext caller_{loop_, user_};
};

TEST_P(PosixRemovedFiles, are_closed_in_the_next_round) {
  for (const char* name : {"seen", "stays"}) std::ofstream(there(name)).put('x');
  look_up("seen");
  look_up("stays");
  ASSERT_EQ(write(create("committed"), 1, Stability::FileSync), std::nullopt);
  ASSERT_EQ(write(create("uncommitted"), 1, Stability::Unstable), std::nullopt);
  files::create_directory(there("directory"));
  look_up("directory");
  for (const char* name : {"seen", "committed", "uncommitted", "directory"})
    files::remove(there(name));
  EXPECT_GE(descriptors(" (deleted)"), 4);
  fs().close_unused();
  EXPECT_EQ(descriptors(" (deleted)"), 0);
  EXPECT_EQ(descriptors("/stays"), 1);
}

class PosixRemovedFromAFullDisk : public PosixRemovedFiles {
 protected:
  PosixRemovedFromAFullDisk() : PosixRemovedFiles(kDisk) {}
  void SetUp() override {
    if (!backend_.is_small()) GTEST_SKIP() << "no right to mount";
  }
};

TEST_P(PosixRemovedFromAFullDisk, make_room_for_data) {
  const Handle second = create("second");
  ASSERT_EQ(write(second, 1, Stability::Unstable), std::nullopt) << "it is open for writing";
  ASSERT_EQ(write(create("first"), kDisk / 4 * 3, Stability::Unstable), std::nullopt);
  files::remove(there("first"));
  EXPECT_EQ(write(second, kDisk / 4 * 3, Stability::Unstable), std::nullopt);
}

// A writer that finds that another one closes them just then waits for that.
TEST_P(PosixRemovedFromAFullDisk, make_room_for_all_who_write_at_once) {
  constexpr int kWriters = 4;
  constexpr int kRounds = 100;
  constexpr std::size_t kAll = kDisk / 4 * 3;
  std::vector<Handle> written;
  for (int i = 0; i < kWriters; ++i) written.push_back(create(std::to_string(i)));
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_EQ(write(create("first"), kAll, Stability::Unstable), std::nullopt);
    files::remove(there("first"));
    std::vector<std::thread> writers;
    for (const Handle& file : written)
      writers.emplace_back([this, &file] {
        testing::InlineLoop loop;
        EXPECT_EQ(write(loop, file, kAll / kWriters, Stability::Unstable), std::nullopt);
      });
    for (std::thread& writer : writers) writer.join();
    for (int i = 0; i < kWriters; ++i) files::resize_file(there(std::to_string(i)), 0);
  }
}

TEST_P(PosixRemovedFromAFullDisk, make_room_for_what_is_allocated) {
  const Handle second = create("second");
  ASSERT_EQ(write(create("first"), kDisk / 4 * 3, Stability::Unstable), std::nullopt);
  files::remove(there("first"));
  EXPECT_TRUE(finish(loop_, fs().allocate(caller_, second, 0, kDisk / 4 * 3)).ok());
}

TEST_P(PosixRemovedFromAFullDisk, make_room_for_new_ones) {
  const auto use_up = [&] {
    for (int i = 0; i < kMostInodes; ++i) {
      const std::string name = std::to_string(i);
      if (!std::ofstream(there(name))) return;
      look_up(name);
    }
  };
  const auto remove_all = [&] {
    for (const auto& entry : files::directory_iterator(backend_.export_path()))
      files::remove_all(entry.path());
  };
  const SetAttributes none;
  const std::vector<std::function<bool(const std::string&)>> make = {
      [&](const auto& name) {
        return finish(loop_, fs().create(caller_, fs().root(), name, {})).ok();
      },
      [&](const auto& name) {
        return finish(loop_, fs().mkdir(caller_, fs().root(), name, none)).ok();
      },
      [&](const auto& name) {
        return finish(loop_, fs().symlink(caller_, fs().root(), name, "target", none)).ok();
      },
      [&](const auto& name) {
        return finish(loop_, fs().mknod(caller_, fs().root(), name, {FileType::Fifo, {}}, none))
            .ok();
      }};
  for (std::size_t i = 0; i < make.size(); ++i) {
    SCOPED_TRACE(i);
    fs().close_unused();
    use_up();
    EXPECT_FALSE(make[i]("new")) << "none is removed";
    remove_all();
    EXPECT_TRUE(make[i]("new"));
    remove_all();
  }
}

std::vector<testing::PosixKind> kinds() {
  return {{}, {.at_once = posix::AtOnce::Never}};
}
INSTANTIATE_TEST_SUITE_P(Kinds, PosixRemovedFiles, ::testing::ValuesIn(kinds()));
INSTANTIATE_TEST_SUITE_P(Kinds, PosixRemovedFromAFullDisk, ::testing::ValuesIn(kinds()));

}  // namespace
}  // namespace stag::vfs
