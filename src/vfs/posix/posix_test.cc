#include "vfs/posix/posix.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "testing/vfs/posix_backend.h"
#include "vfs/acl_xattr.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/inode_table.h"
#include "vfs/posix/mapping.h"
#include "vfs/posix/object.h"

namespace stag::vfs {
namespace {

namespace files = std::filesystem;
using posix::HandleKind;

using testing::finish;
using testing::Folder;
using testing::kDisk;
using testing::kMemory;
using testing::PosixBackend;
using testing::PosixKind;

class Posix : public ::testing::TestWithParam<HandleKind> {
 protected:
  Posix() : backend(PosixKind{kDisk, GetParam()}) {}
  FileSystem& fs() { return backend.fs(); }
  CallerContext caller() { return {loop, root}; }
  template <class T>
  Outcome<T> outcome(Operation<T> operation) {
    return finish(loop, std::move(operation));
  }
  template <class T>
  T good(Operation<T> operation) {
    Outcome<T> result = outcome(std::move(operation));
    if (!result) ADD_FAILURE() << to_string(result.error());
    STAG_CHECK(result.ok());
    return *std::move(result);
  }
  template <class T>
  std::optional<Status> status(Operation<T> operation) {
    const Outcome<T> result = outcome(std::move(operation));
    return result ? std::nullopt : std::optional(result.error());
  }
  Node find(const Handle& directory, std::string_view name) {
    return good(fs().lookup(caller(), directory, name)).node;
  }
  Node make_directory(const Handle& directory, std::string_view name) {
    return good(fs().mkdir(caller(), directory, name, testing::mode_of(0777))).node;
  }
  Node make_file(const Handle& directory, std::string_view name) {
    return good(fs().create(caller(), directory, name, {})).node;
  }
  std::optional<Status> attributes_status(const Handle& object) {
    return status(fs().attributes(caller(), object));
  }
  void put(const files::path& path, std::string_view text) { std::ofstream(path) << text; }

  testing::InlineLoop loop;
  const Credentials root{0, 0, {}};
  PosixBackend backend;
};

INSTANTIATE_TEST_SUITE_P(Handles, Posix,
                         ::testing::Values(HandleKind::Automatic, HandleKind::Table),
                         [](const auto& kind) {
                           return std::string(kind.param == HandleKind::Table ? "table"
                                                                              : "automatic");
                         });

TEST_P(Posix, changes_made_on_the_server_are_seen) {
  put(backend.export_path() / "file", "local");
  const Node file = find(fs().root(), "file");
  EXPECT_EQ(good(fs().read(caller(), file.handle, 0, 100)).data, Rope::copy_of(bytes_of("local")));
  files::rename(backend.export_path() / "file", backend.export_path() / "moved");
  EXPECT_EQ(attributes_status(file.handle), std::nullopt);
  EXPECT_EQ(find(fs().root(), "moved").handle, file.handle);
  files::remove(backend.export_path() / "moved");
  EXPECT_EQ(attributes_status(file.handle), Status::Stale);
}

TEST_P(Posix, a_directory_moved_out_of_the_export_is_stale) {
  const Node directory = make_directory(fs().root(), "d");
  const Node inner = make_directory(directory.handle, "inner");
  make_file(inner.handle, "file");
  put(backend.outside() / "secret", "secret");
  files::rename(backend.export_path() / "d", backend.outside() / "d");
  for (const bool restarted : {false, true}) {
    if (restarted) backend.restart();
    EXPECT_EQ(status(fs().lookup(caller(), directory.handle, "..")), Status::Stale);
    EXPECT_EQ(status(fs().lookup(caller(), inner.handle, "file")), Status::Stale);
    EXPECT_EQ(status(fs().create(caller(), directory.handle, "new", {})), Status::Stale);
    EXPECT_EQ(status(fs().set_attributes(caller(), directory.handle, testing::mode_of(0700), {})),
              Status::Stale);
    testing::Names names;
    EXPECT_EQ(status(fs().list(caller(), inner.handle, {}, names)), Status::Stale);
  }
}

TEST_P(Posix, no_symlink_leads_out_even_while_directories_turn_into_symlinks) {
  put(backend.outside() / "secret", "secret");
  files::create_directory(backend.export_path() / "real");
  put(backend.export_path() / "real" / "secret", "");
  files::create_symlink("..", backend.export_path() / "link");
  EXPECT_EQ(find(fs().root(), "link").attributes.type, FileType::Symlink);
  std::atomic<bool> done = false;
  std::thread swapper([&] {
    const std::string a = backend.export_path() / "real";
    const std::string b = backend.export_path() / "link";
    while (!done) ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
  });
  for (int i = 0; i < 2000; ++i) {
    const auto found = outcome(fs().lookup(caller(), fs().root(), i % 2 == 0 ? "real" : "link"));
    if (!found || found->node.attributes.type != FileType::Directory) continue;
    const auto inside = outcome(fs().lookup(caller(), found->node.handle, "secret"));
    if (inside) {
      EXPECT_EQ(inside->node.attributes.size, 0u) << "the one outside has bytes";
    }
  }
  done = true;
  swapper.join();
}

TEST_P(Posix, mounts_inside_the_export_are_not_crossed) {
  bool mounted = false;
  // A thread with a mount namespace of its own, so that nobody else sees the mount.
  std::thread elsewhere([&] {
    if (::unshare(CLONE_NEWNS) != 0) return;
    const std::string point = backend.export_path() / "mount";
    files::create_directory(point);
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    if (::mount(backend.outside().c_str(), point.c_str(), nullptr, MS_BIND, nullptr) != 0) return;
    mounted = true;
    backend.restart();
    EXPECT_EQ(status(fs().lookup(caller(), fs().root(), "mount")), Status::Access);
    testing::Names names;
    ListFrom from;
    from.with_nodes = true;
    EXPECT_TRUE(good(fs().list(caller(), fs().root(), from, names)).eof);
    EXPECT_EQ(names.names.size(), 3u);
    EXPECT_FALSE(names.nodes.contains("mount"));
    ::umount(point.c_str());
  });
  elsewhere.join();
  if (!mounted) GTEST_SKIP() << "mounting needs root";
}

TEST_P(Posix, a_full_and_a_read_only_disk_say_so) {
  bool mounted = false;
  std::thread elsewhere([&] {
    if (::unshare(CLONE_NEWNS) != 0) return;
    const std::string path = backend.export_path();
    const char* disk = path.c_str();
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    if (::mount("tmpfs", disk, "tmpfs", 0, "size=1m") != 0) return;
    mounted = true;
    backend.restart();
    const Node file = make_file(fs().root(), "file");
    const Rope data = Rope::copy_of(bytes_of(std::string(900'000, 'x')));
    const auto write_at = [&](std::uint64_t offset) {
      return outcome(fs().write(caller(), file.handle, offset, data, Stability::FileSync));
    };
    ASSERT_TRUE(write_at(0).ok());
    const auto partly = write_at(900'000);
    ASSERT_TRUE(partly.ok());
    EXPECT_GT(partly->count, 0u);
    EXPECT_LT(partly->count, 900'000u);
    const auto none = write_at(900'000 + partly->count);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error(), Status::NoSpace);
    good(fs().commit(caller(), file.handle, 0, 0));  // Nothing stays open for writing.
    ASSERT_EQ(::mount(nullptr, disk, nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
    EXPECT_EQ(status(fs().mkdir(caller(), fs().root(), "d", {})), Status::ReadOnly);
    EXPECT_EQ(write_at(0).error(), Status::ReadOnly);
    EXPECT_EQ(good(fs().access(caller(), file.handle, access::kModify)).granted, 0u);
    ::umount(disk);
  });
  elsewhere.join();
  if (!mounted) GTEST_SKIP() << "mounting needs root";
}

TEST_P(Posix, every_handle_works_with_a_cache_of_a_few) {
  PosixFileSystem::Options options;
  options.root = backend.export_path();
  options.handles = GetParam();
  options.cached_objects = 1;
  auto opened = PosixFileSystem::open(options);
  ASSERT_TRUE(opened.ok());
  FileSystem& small = **opened;
  std::vector<Node> files;
  for (int i = 0; i < 300; ++i)
    files.push_back(good(small.create(caller(), small.root(), std::to_string(i), {})).node);
  for (const Node& file : files)
    EXPECT_EQ(good(small.attributes(caller(), file.handle)).file_id, file.attributes.file_id);
}

// Less than five file systems would keep open, were each alone in the process.
class FewOpenFiles {
 public:
  FewOpenFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = 1024;
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewOpenFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_P(Posix, one_file_system_leaves_descriptors_to_the_others_of_the_process) {
  const FewOpenFiles few;
  PosixFileSystem::Options options;
  options.root = backend.export_path();
  options.handles = GetParam();
  std::vector<std::unique_ptr<PosixFileSystem>> all;
  for (int i = 0; i < 5; ++i) {
    auto opened = PosixFileSystem::open(options);
    ASSERT_TRUE(opened.ok());
    all.push_back(*std::move(opened));
    PosixFileSystem& store = *all.back();
    for (int file = 0; file < 200; ++file) {
      const std::string name = std::to_string(i) + "." + std::to_string(file);
      const Node made = good(store.create(caller(), store.root(), name, {})).node;
      good(store.write(caller(), made.handle, 0, Rope::copy_of(bytes_of("data")),
                       Stability::Unstable));
      good(store.read(caller(), made.handle, 0, 4));
    }
  }
}

TEST_P(Posix, bytes_made_up_never_open_anything) {
  std::uint32_t seed = 1;
  const auto next = [&seed] {
    return static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
  };
  for (int i = 0; i < 5000; ++i) {
    std::array<std::byte, Handle::kMaxSize> bytes;
    for (std::byte& byte : bytes) byte = next();
    bytes[0] = std::byte(i % 4);
    if (i % 3 == 0) bytes[1] = std::byte{1};
    const Handle handle =
        *Handle::from(Bytes(bytes).first(static_cast<std::size_t>(i) % (Handle::kMaxSize + 1)));
    const auto answer = attributes_status(handle);
    EXPECT_TRUE(answer == Status::BadHandle || answer == Status::Stale) << i;
  }
}

TEST_P(Posix, a_link_that_is_left_leads_to_the_object_after_a_restart) {
  const Node file = make_file(fs().root(), "one");
  good(fs().link(caller(), file.handle, fs().root(), "two"));
  good(fs().remove(caller(), fs().root(), "one"));
  backend.restart();
  EXPECT_EQ(good(fs().attributes(caller(), file.handle)).file_id, file.attributes.file_id);
}

// As many ways lead round as there are steps in the longest: to follow each of them takes for ever.
TEST_P(Posix, a_removed_directory_whose_names_lead_round_in_circles_is_stale) {
  const files::path top = backend.export_path();
  const Node a = make_directory(fs().root(), "a");
  const Node b = make_directory(fs().root(), "b");
  const auto seen_below = [&](const char* moved, const Node& into, const char* name) {
    for (const char* under : {"1", "2"}) {
      files::rename(top / moved, top / name / under);
      find(into.handle, under);
      files::rename(top / name / under, top / moved);
    }
  };
  seen_below("a", b, "b");
  seen_below("b", a, "a");
  good(fs().rmdir(caller(), fs().root(), "a"));
  good(fs().rmdir(caller(), fs().root(), "b"));
  EXPECT_EQ(attributes_status(a.handle), Status::Stale);
}

// On the way to the last name the second directory is asked for a way to the first, which has one
// of its own that is tried later.
TEST_P(Posix, a_directory_is_found_by_its_only_name_that_still_leads_there) {
  const files::path top = backend.export_path();
  const Node first = make_directory(fs().root(), "first");
  const Node second = make_directory(first.handle, "second");
  const Node above = make_directory(fs().root(), "above");
  const Node wanted = make_directory(second.handle, "wanted");
  files::rename(top / "first/second/wanted", top / "first/wrong");
  find(first.handle, "wrong");
  files::rename(top / "first/wrong", top / "first/second/wanted");
  files::rename(top / "first/second", top / "second");
  files::rename(top / "first", top / "second/wrong");
  find(second.handle, "wrong");
  files::rename(top / "second/wrong", top / "above/first");
  find(above.handle, "first");
  files::rename(top / "second", top / "above/first/second");
  backend.restart();
  EXPECT_EQ(attributes_status(wanted.handle), std::nullopt);
}

TEST_P(Posix, a_removed_object_is_stale_although_its_number_is_used_again) {
  std::vector<Node> gone;
  for (int i = 0; i < 20; ++i) {
    gone.push_back(make_file(fs().root(), "file"));
    good(fs().remove(caller(), fs().root(), "file"));
  }
  const Node last = make_file(fs().root(), "file");
  for (const Node& file : gone) EXPECT_EQ(attributes_status(file.handle), Status::Stale);
  EXPECT_EQ(attributes_status(last.handle), std::nullopt);
}

TEST_P(Posix, attributes_of_what_is_open_are_answered_on_the_loop) {
  const Node file = make_file(fs().root(), "file");
  const std::size_t before = loop.offloads;
  for (int i = 0; i < 10; ++i) good(fs().attributes(caller(), file.handle));
  for (int i = 0; i < 10; ++i) good(fs().access(caller(), file.handle, access::kAll));
  EXPECT_EQ(loop.offloads, before);
}

TEST(PosixData, moves_on_the_loop_on_a_file_system_in_memory) {
  std::error_code none;
  if (!files::is_directory(kMemory, none)) GTEST_SKIP() << "no file system in memory here";
  PosixBackend backend(PosixKind{kMemory});
  testing::InlineLoop loop;
  const Credentials who{::geteuid(), ::getegid(), {}};
  const CallerContext caller{loop, who};
  FileSystem& fs = backend.fs();
  const auto made = finish(loop, fs.create(caller, fs.root(), "file", {}));
  ASSERT_TRUE(made.ok());
  const Handle file = made->node.handle;
  const std::string text = std::string(4096, 'a') + std::string(4096, 'b');
  Rope data(Buffer::copy_of(bytes_of(text)));
  ASSERT_TRUE(finish(loop, fs.write(caller, file, 0, std::move(data), Stability::Unstable)).ok());
  // The first one opens the file.
  ASSERT_TRUE(finish(loop, fs.read(caller, file, 0, 4096)).ok());
  const std::size_t before = loop.offloads;
  const auto read = finish(loop, fs.read(caller, file, 4096, 8192));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(text_of(read->data.flatten().bytes()), text.substr(4096));
  EXPECT_TRUE(read->eof);
  const auto written = finish(
      loop,
      fs.write(caller, file, 8192, Rope(Buffer::copy_of(bytes_of("c"))), Stability::FileSync));
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->file.after->size, 8193u);
  EXPECT_EQ(loop.offloads, before);
}

// Reads a file of a file system in memory until it is mapped.
class PosixMappedFile : public ::testing::Test {
 protected:
  static constexpr std::size_t kSize = 256 * 1024;
  void SetUp() override {
    std::error_code none;
    if (!files::is_directory(kMemory, none)) GTEST_SKIP() << "no file system in memory here";
    backend.emplace(PosixKind{kMemory});
    path = backend->export_path() / "file";
    put(std::string(kSize, 'x'));
    file = finish(loop, fs().lookup(caller(), fs().root(), "file"))->node.handle;
  }
  FileSystem& fs() { return backend->fs(); }
  CallerContext caller() { return {loop, who}; }
  void put(const std::string& text) const { std::ofstream(path) << text; }
  std::string read() {
    auto result = finish(loop, fs().read(caller(), file, 0, kSize));
    if (!result) return std::string(to_string(result.error()));
    return std::string(text_of(result->data.flatten().bytes()));
  }
  void make_hot() {
    for (int i = 0; i < 4; ++i) read();
  }

  testing::InlineLoop loop;
  const Credentials who{::geteuid(), ::getegid(), {}};
  std::optional<PosixBackend> backend;
  files::path path;
  Handle file;
};

TEST_F(PosixMappedFile, is_read_as_it_is_now) {
  make_hot();
  EXPECT_TRUE(read() == std::string(kSize, 'x'));
  files::resize_file(path, 5000);
  EXPECT_TRUE(read() == std::string(5000, 'x'));
  put(std::string(kSize, 'y'));
  EXPECT_TRUE(read() == std::string(kSize, 'y'));
}

TEST_F(PosixMappedFile, may_be_truncated_and_grow_while_it_is_read) {
  make_hot();
  std::atomic<bool> done = false;
  std::thread elsewhere([&] {
    while (!done) put(std::string(kSize, 'x'));
  });
  for (int i = 0; i < 500; ++i) {
    // A page that comes between the cut and the growth is missing, or zeros.
    const std::string text = read();
    EXPECT_EQ(text.find_first_not_of(std::string("x\0", 2)), std::string::npos)
        << text.substr(0, 80);
  }
  done = true;
  elsewhere.join();
}

TEST_F(PosixMappedFile, keeps_its_holes) {
  put("");
  files::resize_file(path, kSize);
  make_hot();
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_blocks, 0);
}

TEST_F(PosixMappedFile, fails_where_it_was_truncated_and_other_faults_stay_faults) {
  const UniqueFd opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto mapping = posix::Mapping::of(opened, kSize);
  ASSERT_NE(mapping, nullptr);
  std::string text(kSize, '-');
  const MutableBytes into(reinterpret_cast<std::byte*>(text.data()), text.size());
  ASSERT_TRUE(mapping->copy(0, into));
  EXPECT_TRUE(text == std::string(kSize, 'x'));
  files::resize_file(path, 4096);
  EXPECT_FALSE(mapping->copy(0, into));
  EXPECT_TRUE(mapping->copy(0, into.first(4096)));
  const auto* beyond = static_cast<const volatile char*>(
      ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, opened.fd(), 0));
  EXPECT_DEATH(static_cast<void>(beyond[8192]), "");
}

TEST_F(PosixMappedFile, may_be_truncated_under_a_thread_that_was_started_with_signals_blocked) {
  const UniqueFd opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto mapping = posix::Mapping::of(opened, kSize);
  ASSERT_NE(mapping, nullptr);
  files::resize_file(path, 4096);
  std::string text(kSize, '-');
  const MutableBytes into(reinterpret_cast<std::byte*>(text.data()), text.size());
  bool copied = true;
  std::thread blocked([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    copied = mapping->copy(0, into);
  });
  blocked.join();
  EXPECT_FALSE(copied);
}

TEST_P(Posix, nobody_can_be_the_user_that_means_no_change) {
  if (!backend.properties().tells_users_apart) GTEST_SKIP() << "needs root";
  const Credentials none{~std::uint32_t{0}, 0, {}};
  EXPECT_EQ(status(fs().create({loop, none}, fs().root(), "file", {})), Status::Access);
  const Credentials odd_groups{1000, 1000, {~std::uint32_t{0}, 5}};
  EXPECT_EQ(good(fs().create({loop, odd_groups}, fs().root(), "file", {})).node.attributes.uid,
            1000u);
}

TEST_P(Posix, the_thread_is_the_server_again_afterwards) {
  if (!backend.properties().tells_users_apart) GTEST_SKIP() << "needs root";
  const Credentials alice{1000, 1000, {7, 8}};
  good(fs().create({loop, alice}, fs().root(), "hers", {}));
  put(backend.outside() / "ours", "x");
  struct stat stat {};
  ASSERT_EQ(::stat((backend.outside() / "ours").c_str(), &stat), 0);
  EXPECT_EQ(stat.st_uid, 0u);
  EXPECT_EQ(stat.st_gid, 0u);
}

TEST_P(Posix, threads_act_for_different_users_at_the_same_time) {
  if (!backend.properties().tells_users_apart) GTEST_SKIP() << "needs root";
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      testing::InlineLoop own;
      for (std::uint32_t i = 0; i < 100; ++i) {
        const Credentials who{2000 + t, 3000 + i % 3, {4000 + t}};
        const std::string name = std::to_string(t) + "-" + std::to_string(i);
        const auto made = finish(own, fs().create({own, who}, fs().root(), name, {}));
        ASSERT_TRUE(made.ok());
        EXPECT_EQ(made->node.attributes.uid, who.uid);
        EXPECT_EQ(made->node.attributes.gid, who.gid);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Posix, its_identity_is_that_of_the_folder_whatever_it_is_called) {
  const std::string identity = fs().identity();
  EXPECT_FALSE(identity.empty());
  backend.restart();
  EXPECT_EQ(fs().identity(), identity);
  const auto identity_at = [](const files::path& path) {
    PosixFileSystem::Options options;
    options.root = path;
    options.handles = GetParam();
    auto opened = PosixFileSystem::open(options);
    STAG_CHECK(opened.ok());
    return (*opened)->identity();
  };
  const files::path folder = backend.export_path();
  files::create_directory_symlink(folder, backend.outside() / "link");
  EXPECT_EQ(identity_at(backend.outside() / "link"), identity);
  files::rename(folder, backend.outside() / "moved");
  EXPECT_EQ(identity_at(backend.outside() / "moved"), identity);
  files::create_directory(folder);
  const std::string other = identity_at(folder);
  EXPECT_NE(other, identity);
  // The next one may get the same inode.
  files::remove(folder);
  files::create_directory(folder);
  EXPECT_NE(identity_at(folder), other);
}

TEST_P(Posix, handles_of_its_files_are_those_of_other_trees_of_its_file_system) {
  const files::path inner = backend.export_path() / "inner";
  files::create_directory(inner);
  std::ofstream(inner / "file") << "text";
  const auto tree_at = [](const files::path& path) {
    PosixFileSystem::Options options;
    options.root = path;
    options.handles = GetParam();
    return *PosixFileSystem::open(options);
  };
  const auto below = tree_at(inner);
  EXPECT_EQ(below->handle_space(), fs().handle_space());
  EXPECT_NE(below->identity(), fs().identity());
  const Handle file = find(find(fs().root(), "inner").handle, "file").handle;
  EXPECT_EQ(good(below->lookup(caller(), below->root(), "file")).node.handle, file);
}

TEST(PosixOpen, says_what_is_wrong) {
  PosixFileSystem::Options options;
  options.root = "/nonexistent/folder";
  const auto missing = PosixFileSystem::open(options);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error(),
            "cannot open the folder /nonexistent/folder: No such file or directory");
  options.root = "/tmp";
  options.handles = HandleKind::Table;
  options.state_directory = "/nonexistent/state";
  const auto no_state = PosixFileSystem::open(options);
  ASSERT_FALSE(no_state.ok());
  EXPECT_NE(no_state.error().find("/nonexistent/state"), std::string::npos);
}

TEST(PosixOpen, refuses_a_state_directory_that_clients_could_see) {
  const Folder folder(kDisk);
  const files::path served = folder.path() / "served";
  files::create_directories(served / "deep" / "state");
  files::create_directory(folder.path() / "served by another name");
  files::create_symlink(served / "deep", folder.path() / "link");
  const auto mistake = [&](const files::path& root, const files::path& state) {
    PosixFileSystem::Options options;
    options.root = root;
    options.state_directory = state;
    const auto opened = PosixFileSystem::open(options);
    return opened ? "" : opened.error();
  };
  const std::string inside = mistake(served, served / "deep" / "state");
  EXPECT_EQ(inside, "the state directory '" + (served / "deep" / "state").string() +
                        "' lies in the exported folder '" + served.string() +
                        "': clients could read the key that protects all file handles, or change "
                        "what the server remembers");
  const std::string within = "lies in the exported folder";
  EXPECT_NE(mistake(served, served).find(within), std::string::npos);
  EXPECT_NE(mistake(served, folder.path() / "link" / "state").find(within), std::string::npos);
  EXPECT_NE(mistake(folder.path() / "link", served / "deep" / "state").find(within),
            std::string::npos);
  EXPECT_NE(mistake(served, folder.path()).find("lies in the state directory"), std::string::npos);
  EXPECT_EQ(mistake(served, folder.path() / "served by another name"), "");
}

TEST(PosixDurable, names_and_attributes_are_synced_on_every_change) {
  PosixKind durable;
  durable.durable_names = true;
  PosixBackend backend(durable);
  testing::InlineLoop loop;
  const Credentials root{0, 0, {}};
  const CallerContext caller{loop, root};
  FileSystem& fs = backend.fs();
  const std::uint64_t epoch = fs.write_verifier_epoch();
  CreateHow how;
  how.mode = CreateMode::Exclusive;
  const auto made = finish(loop, fs.create(caller, fs.root(), "file", how));
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(finish(loop, fs.set_attributes(caller, made->node.handle, testing::mode_of(0600),
                                             std::nullopt))
                  .ok());
  EXPECT_TRUE(finish(loop, fs.mkdir(caller, fs.root(), "d", {})).ok());
  const Handle directory = finish(loop, fs.lookup(caller, fs.root(), "d"))->node.handle;
  EXPECT_TRUE(finish(loop, fs.rename(caller, fs.root(), "file", directory, "file")).ok());
  EXPECT_TRUE(finish(loop, fs.remove(caller, directory, "file")).ok());
  EXPECT_EQ(fs.write_verifier_epoch(), epoch);
}

// What a command prints, or nothing when it fails.
std::optional<std::string> output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  STAG_CHECK(pipe != nullptr);
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  if (::pclose(pipe) != 0) return std::nullopt;
  return text;
}

TEST(PosixAcl, is_what_getfacl_shows_and_setfacl_makes) {
  if (!output_of("getfacl --version")) GTEST_SKIP() << "Debian's acl package is not installed";
  using Tag = AclEntry::Tag;
  PosixBackend backend(PosixKind{});
  testing::InlineLoop loop;
  const Credentials owner{::geteuid(), ::getegid(), {}};
  const CallerContext caller{loop, owner};
  FileSystem& fs = backend.fs();
  const auto made = finish(loop, fs.mkdir(caller, fs.root(), "d", testing::mode_of(0750)));
  ASSERT_TRUE(made.ok());
  const Handle directory = made->node.handle;
  const std::string path = (backend.export_path() / "d").string();
  const std::string changes = "u:1001:rwx,g:20:r-x,d:u::rwx,d:g::r-x,d:o::-,d:u:7:rw-";
  if (!output_of("setfacl -m " + changes + " " + path + " 2>&1"))
    GTEST_SKIP() << "the file system has no access control lists";
  const auto found = finish(loop, fs.acls(caller, directory));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->acls.access, testing::acl_of({{Tag::Owner, 0, 7},
                                                 {Tag::User, 1001, 7},
                                                 {Tag::OwningGroup, 0, 5},
                                                 {Tag::Group, 20, 5},
                                                 {Tag::Mask, 0, 7},
                                                 {Tag::Others, 0, 0}}));
  EXPECT_EQ(found->acls.defaults, testing::acl_of({{Tag::Owner, 0, 7},
                                                   {Tag::User, 7, 6},
                                                   {Tag::OwningGroup, 0, 5},
                                                   {Tag::Mask, 0, 7},
                                                   {Tag::Others, 0, 0}}));
  const SetAcls swapped{found->acls.defaults, found->acls.access};
  ASSERT_TRUE(finish(loop, fs.set_acls(caller, directory, swapped)).ok());
  EXPECT_EQ(output_of("getfacl -cnpE " + path),
            "user::rwx\nuser:7:rw-\ngroup::r-x\nmask::rwx\nother::---\n"
            "default:user::rwx\ndefault:user:1001:rwx\ndefault:group::r-x\n"
            "default:group:20:r-x\ndefault:mask::rwx\ndefault:other::---\n\n");
}

TEST(PosixAcl, is_read_back_as_an_attribute_and_refused_when_it_is_cut_or_changed) {
  const Acl acl = *Acl::from({{AclEntry::Tag::Owner, 0, 6},
                              {AclEntry::Tag::User, 0x01020304, 5},
                              {AclEntry::Tag::OwningGroup, 0, 4},
                              {AclEntry::Tag::Mask, 0, 5},
                              {AclEntry::Tag::Others, 0, 0}});
  std::vector<std::byte> bytes = xattr_of_acl(acl);
  ASSERT_EQ(bytes.size(), 4u + 5 * 8);
  EXPECT_EQ(bytes[0], std::byte{2});
  EXPECT_EQ(bytes[12 + 4], std::byte{4}) << "little-endian";
  EXPECT_EQ(acl_of_xattr(bytes), acl);
  // A header alone is an empty list; no other part is a list.
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(acl_of_xattr(Bytes(bytes).first(size)).has_value(), size == 4) << size;
  bytes[0] = std::byte{1};
  EXPECT_FALSE(acl_of_xattr(bytes).has_value());
}

TEST(ChangeWatch, tells_overlapping_changes) {
  posix::ChangeWatch watch;
  const auto first = watch.begin();
  EXPECT_TRUE(watch.end(first));
  const auto second = watch.begin();
  const auto third = watch.begin();
  EXPECT_FALSE(watch.end(second));
  EXPECT_FALSE(watch.end(third));
  const auto outer = watch.begin();
  EXPECT_FALSE(watch.end(watch.begin()));
  EXPECT_FALSE(watch.end(outer)) << "something came and went within";
  EXPECT_TRUE(watch.end(watch.begin()));
}

TEST(InodeTable, keeps_names_over_a_reopening) {
  using Recorded = posix::InodeTable::Recorded;
  Folder folder(kDisk);
  const std::string path = folder.path() / "table";
  const posix::InodeKey root{2, 1};
  const posix::InodeKey object{10, 20};
  {
    auto table = posix::InodeTable::open(path);
    ASSERT_TRUE(table.ok());
    EXPECT_EQ((*table)->record(root, "a", object), Recorded::New);
    EXPECT_EQ((*table)->record(root, std::string_view("\xff'b", 3), object), Recorded::New);
    EXPECT_EQ((*table)->record(root, "c", {11, 20}), Recorded::New);
    (*table)->forget(root, "c", {11, 20});
    (*table)->forget(root, "a", {11, 20});
  }
  auto table = posix::InodeTable::open(path);
  ASSERT_TRUE(table.ok());
  EXPECT_EQ((*table)->names_of(object)->size(), 2u);
  EXPECT_TRUE((*table)->names_of({11, 20})->empty());
  EXPECT_EQ((*table)->record(root, "a", object), Recorded::Known);
  EXPECT_EQ((*table)->record(root, "a", {12, 20}), Recorded::New);
  ASSERT_EQ((*table)->names_of(object)->size(), 1u);
  EXPECT_EQ((*(*table)->names_of(object))[0].name, std::string("\xff'b", 3));
  EXPECT_EQ((*(*table)->names_of(object))[0].directory, root);
}

}  // namespace
}  // namespace stag::vfs
