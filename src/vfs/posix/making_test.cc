// What becomes of new objects, and of the names that are remembered, when another process works on
// the same directory between two system calls of ours. The C library's calls are replaced in this
// program, so that the other one's turn comes exactly there.
#include <dlfcn.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/reason.h"
#include "testing/vfs/posix_backend.h"
#include "vfs/posix/inode_table.h"
#include "vfs/posix/object.h"
#include "vfs/posix/posix.h"

namespace {

// Each runs once, at its call.
struct Interference {
  std::function<void()> after_making;     // mkdirat, symlinkat, mknodat, linkat
  std::function<void()> before_settling;  // ftruncate, fchownat: they fail then
  std::function<void()> after_looking;    // statx of this inode:
  std::uint64_t looked_at = 0;
  std::function<void()> after_removing;          // unlinkat
  std::function<void()> before_forgetting;       // sqlite3_step of a DELETE
  std::optional<std::uint64_t> aged_inode = {};  // made an hour ago, as statx tells
  int killed_at = 0;  // the number of the fchownat, chmod, utimensat or linkat; 0: none
  bool table_is_full = false;
  bool refuses = false;       // symlinkat and mknodat, as file systems without such objects do
  bool immutable = false;     // what statx is asked about
  bool hides_births = false;  // statx
  bool has_no_kernel_handles = false;  // name_to_handle_at
};
Interference interference;

// As root, whichever user the thread acts as at that call.
void run_once(std::function<void()>& step) {
  const auto now = std::exchange(step, nullptr);
  if (now == nullptr) return;
  const int caller = ::setfsuid(0);
  now();
  ::setfsuid(static_cast<uid_t>(caller));
}

void count_call() {
  if (interference.killed_at > 0 && --interference.killed_at == 0) ::_exit(1);
}

}  // namespace

extern "C" {
int mkdirat(int directory, const char* name, mode_t mode) noexcept {
  const auto done = static_cast<int>(::syscall(SYS_mkdirat, directory, name, mode));
  run_once(interference.after_making);
  return done;
}
int symlinkat(const char* target, int directory, const char* name) noexcept {
  if (interference.refuses) return errno = EPERM, -1;
  const auto done = static_cast<int>(::syscall(SYS_symlinkat, target, directory, name));
  run_once(interference.after_making);
  return done;
}
int mknodat(int directory, const char* name, mode_t mode, dev_t device) noexcept {
  if (interference.refuses) return errno = EPERM, -1;
  const auto done = static_cast<int>(::syscall(SYS_mknodat, directory, name, mode, device));
  run_once(interference.after_making);
  return done;
}
int unlinkat(int directory, const char* name, int flags) noexcept {
  const auto done = static_cast<int>(::syscall(SYS_unlinkat, directory, name, flags));
  run_once(interference.after_removing);
  return done;
}
int ftruncate(int file, off_t size) noexcept {
  if (interference.before_settling == nullptr)
    return static_cast<int>(::syscall(SYS_ftruncate, file, size));
  run_once(interference.before_settling);
  return errno = EFBIG, -1;
}
int fchownat(int directory, const char* name, uid_t uid, gid_t gid, int flags) noexcept {
  count_call();
  if (interference.before_settling == nullptr)
    return static_cast<int>(::syscall(SYS_fchownat, directory, name, uid, gid, flags));
  run_once(interference.before_settling);
  return errno = EPERM, -1;
}
int utimensat(int directory, const char* name, const timespec times[2], int flags) noexcept {
  count_call();
  return static_cast<int>(::syscall(SYS_utimensat, directory, name, times, flags));
}
int chmod(const char* name, mode_t mode) noexcept {
  count_call();
  return static_cast<int>(::syscall(SYS_fchmodat, AT_FDCWD, name, mode));
}
int linkat(int from, const char* old, int to, const char* name, int flags) noexcept {
  count_call();
  const auto done = static_cast<int>(::syscall(SYS_linkat, from, old, to, name, flags));
  run_once(interference.after_making);
  return done;
}
int statx(int directory, const char* __restrict name, int flags, unsigned mask,
          struct statx* __restrict to) noexcept {
  const auto done = static_cast<int>(::syscall(SYS_statx, directory, name, flags, mask, to));
  if (done == 0 && interference.aged_inode == to->stx_ino) to->stx_btime.tv_sec -= 3600;
  if (done == 0 && interference.hides_births) to->stx_mask &= ~STATX_BTIME;
  if (done == 0 && interference.immutable) to->stx_attributes |= STATX_ATTR_IMMUTABLE;
  if (done == 0 && interference.looked_at == to->stx_ino) run_once(interference.after_looking);
  return done;
}
int name_to_handle_at(int directory, const char* name, struct file_handle* handle, int* mount,
                      int flags) noexcept {
  if (interference.has_no_kernel_handles) return errno = EOPNOTSUPP, -1;
  return static_cast<int>(::syscall(SYS_name_to_handle_at, directory, name, handle, mount, flags));
}
// The table of inodes.
int sqlite3_step(sqlite3_stmt* statement) {
  static const auto step =
      reinterpret_cast<decltype(&sqlite3_step)>(::dlsym(RTLD_NEXT, "sqlite3_step"));
  const char* const text = ::sqlite3_sql(statement);  // null within SQLite
  if (text != nullptr && std::string_view(text).starts_with("DELETE"))
    run_once(interference.before_forgetting);
  const bool writes_names =
      text != nullptr && std::string_view(text).starts_with("INSERT OR REPLACE INTO names");
  if (interference.table_is_full && writes_names) return SQLITE_FULL;
  return step(statement);
}
}

namespace stag::vfs {
namespace {

namespace files = std::filesystem;

using testing::finish;
using testing::kDisk;
using testing::PosixBackend;
using testing::PosixKind;

class PosixMaking : public ::testing::Test {
 protected:
  PosixMaking() {
    std::string pattern = "/tmp/stag-making-XXXXXX";
    STAG_CHECK(::mkdtemp(pattern.data()) != nullptr);
    folder = pattern;
    STAG_CHECK(::chmod(folder.c_str(), 01777) == 0);
    open();
  }
  ~PosixMaking() override {
    interference = {};
    fs.reset();
    files::remove_all(folder);
  }
  void SetUp() override {
    if (PosixFileSystem::serves_all_as_one()) GTEST_SKIP() << "needs root";
  }

  void open() {
    PosixFileSystem::Options options;
    options.root = folder;
    options.durable_names = false;
    auto opened = PosixFileSystem::open(options);
    STAG_CHECK(opened.ok());
    fs = *std::move(opened);
  }
  template <class T>
  std::optional<Status> status(Operation<T> operation) {
    const Outcome<T> result = testing::finish(loop, std::move(operation));
    return result ? std::nullopt : std::optional(result.error());
  }
  // In a process that ends before the call of this number. Whether it has returned before.
  bool is_done_when_killed_at(int call, const Credentials& who, const CreateHow& how) {
    const pid_t child = ::fork();
    if (child == 0) {
      interference.killed_at = call;
      ::_exit(status(fs->create({loop, who}, fs->root(), "file", how)) ? 2 : 0);
    }
    int ended = 0;
    STAG_CHECK(::waitpid(child, &ended, 0) == child && WIFEXITED(ended));
    EXPECT_NE(WEXITSTATUS(ended), 2);
    return WEXITSTATUS(ended) == 0;
  }
  // Repeated by a server that was started again, it makes the file or finds it made, as asked for.
  void expect_repeatable(const Credentials& who, const CreateHow& how) {
    bool done = false;
    for (int call = 1; !done; ++call) {
      done = is_done_when_killed_at(call, who, how);
      open();
      ASSERT_EQ(status(fs->create({loop, who}, fs->root(), "file", how)), std::nullopt) << call;
      EXPECT_EQ(owner_of("file"), how.attributes.uid.value_or(who.uid)) << call;
      EXPECT_EQ(files::status(folder / "file").permissions(), files::perms(*how.attributes.mode))
          << call;
      files::remove(folder / "file");
    }
  }
  std::optional<Status> create_with_size(std::string_view name) {
    CreateHow how;
    how.attributes.size = 5;
    return status(fs->create({loop, alice}, fs->root(), name, how));
  }
  // What an administrator without squashing does: the new object is for alice.
  SetAttributes for_alice() const {
    SetAttributes attributes;
    attributes.uid = alice.uid;
    return attributes;
  }
  void put(const char* name) const { std::ofstream(folder / name) << "precious"; }
  uid_t owner_of(const char* name) const {
    struct stat found {};
    STAG_CHECK(::lstat((folder / name).c_str(), &found) == 0);
    return found.st_uid;
  }
  // Another process moves the new object away and puts another one, which is root's, under its
  // name.
  void swap_in(const char* name, const char* other) {
    interference.after_making = [this, name, other] {
      files::rename(folder / name, folder / "moved away");
      files::rename(folder / other, folder / name);
    };
    struct stat found {};
    STAG_CHECK(::lstat((folder / other).c_str(), &found) == 0);
    interference.aged_inode = found.st_ino;
  }

  testing::InlineLoop loop;
  const Credentials root{0, 0, {}};
  const Credentials alice{1000, 1000, {}};
  files::path folder;
  std::unique_ptr<PosixFileSystem> fs;
};

// The clock of the file system goes by steps, in which a guard does not tell changes apart.
void wait_for_another_time(const files::path& probe, Time time) {
  Time now = time;
  while (now == time) {
    std::ofstream(probe).put('x');
    struct stat found {};
    STAG_CHECK(::stat(probe.c_str(), &found) == 0);
    now = {found.st_mtim.tv_sec, static_cast<std::uint32_t>(found.st_mtim.tv_nsec)};
  }
}

// RFC 1813 3.3.2: of two who hold the same guard one is late.
TEST_F(PosixMaking, a_guarded_SETATTR_compares_and_changes_while_no_other_one_does) {
  std::ofstream(folder / "file").put('x');
  const auto found = finish(loop, fs->lookup({loop, root}, fs->root(), "file"));
  ASSERT_TRUE(found.ok());
  const Handle file = found->node.handle;
  const Time guard = found->node.attributes.changed;
  wait_for_another_time(folder / "probe", guard);
  const auto set = [&](std::uint32_t mode) {
    testing::InlineLoop own;
    const auto done =
        finish(own, fs->set_attributes({own, root}, file, testing::mode_of(mode), guard));
    return done ? std::nullopt : std::optional(done.error());
  };
  std::optional<Status> others;
  std::atomic<bool> ended = false;
  std::thread other;
  interference.looked_at = found->node.attributes.file_id;
  interference.after_looking = [&] {
    interference.looked_at = 0;
    other = std::thread([&] {
      others = set(0640);
      ended = true;
    });
    // Turns in which it would get there, if it did not wait.
    for (int i = 0; i < 10'000 && !ended; ++i) std::this_thread::yield();
  };
  const auto first = set(0600);
  other.join();
  EXPECT_EQ(first, std::nullopt);
  EXPECT_EQ(others, Status::NotSync);
}

TEST_F(PosixMaking, a_create_that_fails_leaves_nothing) {
  interference.before_settling = [] {};
  EXPECT_EQ(create_with_size("file"), Status::FileTooBig);
  EXPECT_FALSE(files::exists(folder / "file"));
}

TEST_F(PosixMaking, a_create_that_fails_does_not_remove_what_has_its_name_meanwhile) {
  interference.before_settling = [this] {
    files::rename(folder / "file", folder / "moved away");
    put("file");
  };
  EXPECT_EQ(create_with_size("file"), Status::FileTooBig);
  EXPECT_TRUE(files::exists(folder / "file"));
}

CreateHow exclusive(std::uint32_t mode) {
  CreateHow how;
  how.mode = CreateMode::Exclusive;
  how.attributes.mode = mode;
  how.verifier = {std::byte{1}, std::byte{2}, std::byte{3}};
  return how;
}

// RFC 1813 3.3.8, RFC 8881 18.16.3.
TEST_F(PosixMaking, an_exclusive_create_can_be_repeated_after_a_server_killed_anywhere) {
  const int nameless = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (nameless < 0) GTEST_SKIP() << "needs a file system with files that have no name";
  ::close(nameless);
  expect_repeatable(alice, exclusive(0444));
  CreateHow given_away = exclusive(06755);
  given_away.attributes.uid = alice.uid;
  expect_repeatable(root, given_away);
}

TEST_F(PosixMaking, an_exclusive_create_with_another_verifier_finds_the_name_taken) {
  CreateHow how = exclusive(0444);
  EXPECT_EQ(status(fs->create({loop, alice}, fs->root(), "file", how)), std::nullopt);
  EXPECT_EQ(files::hard_link_count(folder / "file"), 1u);
  how.verifier[7] = std::byte{9};
  EXPECT_EQ(status(fs->create({loop, alice}, fs->root(), "file", how)), Status::Exists);
}

TEST_F(PosixMaking, an_exclusive_create_answers_its_own_file_when_another_one_has_its_name) {
  put("other");
  swap_in("file", "other");
  const auto made =
      testing::finish(loop, fs->create({loop, alice}, fs->root(), "file", exclusive(0644)));
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->node.attributes.uid, alice.uid);
  EXPECT_EQ(owner_of("file"), root.uid);
  EXPECT_TRUE(files::exists(folder / "moved away"));
}

// Programs on the server that watch the folder are told names of files that are there.
TEST_F(PosixMaking, a_file_of_an_exclusive_create_is_written_under_its_name) {
  const auto made =
      testing::finish(loop, fs->create({loop, alice}, fs->root(), "file", exclusive(0444)));
  ASSERT_TRUE(made.ok());
  const int watch = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ASSERT_GE(::inotify_add_watch(watch, folder.c_str(), IN_MODIFY), 0);
  EXPECT_EQ(status(fs->write({loop, alice}, made->node.handle, 0, Rope::copy_of(bytes_of("data")),
                             Stability::Unstable)),
            std::nullopt);
  alignas(inotify_event) char events[4096];
  ASSERT_GT(::read(watch, events, sizeof events), 0);
  EXPECT_STREQ(reinterpret_cast<const inotify_event*>(events)->name, "file");
  ::close(watch);
}

// The store removes the entry only with the caller's permission, also when it is the right one:
// here the directory is closed to the caller meanwhile.
TEST_F(PosixMaking, a_create_that_fails_cleans_up_as_the_caller) {
  interference.before_settling = [this] { STAG_CHECK(::chmod(folder.c_str(), 0555) == 0); };
  EXPECT_EQ(create_with_size("file"), Status::FileTooBig);
  EXPECT_TRUE(files::exists(folder / "file"));
}

TEST_F(PosixMaking, an_object_that_cannot_be_given_away_goes_again) {
  interference.before_settling = [] {};
  EXPECT_EQ(status(fs->mkdir({loop, root}, fs->root(), "d", for_alice())), Status::Perm);
  interference.before_settling = [] {};
  EXPECT_EQ(status(fs->symlink({loop, root}, fs->root(), "s", "target", for_alice())),
            Status::Perm);
  interference.before_settling = [] {};
  EXPECT_EQ(status(fs->mknod({loop, root}, fs->root(), "f", {}, for_alice())), Status::Perm);
  EXPECT_TRUE(files::is_empty(folder));
}

TEST_F(PosixMaking, a_new_object_is_given_to_its_owner) {
  EXPECT_EQ(status(fs->mkdir({loop, root}, fs->root(), "d", for_alice())), std::nullopt);
  EXPECT_EQ(status(fs->symlink({loop, root}, fs->root(), "s", "target", for_alice())),
            std::nullopt);
  EXPECT_EQ(status(fs->mknod({loop, root}, fs->root(), "f", {}, for_alice())), std::nullopt);
  for (const char* name : {"d", "s", "f"}) EXPECT_EQ(owner_of(name), alice.uid) << name;
}

TEST_F(PosixMaking, a_change_that_another_one_overlaps_tells_the_number_from_before_both) {
  const auto mkdir = [this](testing::InlineLoop& on, const char* name) {
    return testing::finish(on, fs->mkdir({on, root}, fs->root(), name, {}));
  };
  const auto alone = mkdir(loop, "alone");
  ASSERT_TRUE(alone.ok() && alone->directory.before && alone->directory.after);
  EXPECT_EQ(alone->directory.change_before, std::nullopt);
  std::optional<std::uint64_t> between;
  interference.after_making = [&] {
    std::thread([&] {
      testing::InlineLoop other;
      const auto made = mkdir(other, "within");
      ASSERT_TRUE(made.ok());
      between = made->directory.after->change;
    }).join();
  };
  const auto both = mkdir(loop, "outside");
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->directory.before, std::nullopt);
  EXPECT_EQ(both->directory.change_before, alone->directory.after->change);
  EXPECT_GT(between, both->directory.change_before);
  EXPECT_GT(both->directory.after->change, between);
}

TEST_F(PosixMaking, a_directory_that_is_swapped_in_is_not_given_away) {
  files::create_directory(folder / "precious");
  swap_in("d", "precious");
  EXPECT_NE(status(fs->mkdir({loop, root}, fs->root(), "d", for_alice())), std::nullopt);
  EXPECT_EQ(owner_of("d"), 0u);
}

TEST_F(PosixMaking, a_file_that_is_swapped_in_is_not_given_away) {
  for (const bool link : {true, false}) {
    put("precious");
    swap_in("new", "precious");
    const auto made = link ? status(fs->symlink({loop, root}, fs->root(), "new", "x", for_alice()))
                           : status(fs->mknod({loop, root}, fs->root(), "new", {}, for_alice()));
    EXPECT_NE(made, std::nullopt);
    EXPECT_EQ(owner_of("new"), 0u);
    files::remove(folder / "new");
  }
}

TEST_F(PosixMaking, a_link_that_is_swapped_in_is_not_given_away) {
  STAG_CHECK(::mkfifo((folder / "precious").c_str(), 0600) == 0);
  interference.after_making = [this] {
    files::rename(folder / "new", folder / "moved away");
    files::create_hard_link(folder / "precious", folder / "new");
  };
  EXPECT_NE(status(fs->mknod({loop, root}, fs->root(), "new", {}, for_alice())), std::nullopt);
  EXPECT_EQ(owner_of("precious"), 0u);
}

TEST_F(PosixMaking, objects_that_the_file_system_does_not_have_are_not_supported) {
  const CallerContext caller{loop, root};
  const CallerContext user{loop, alice};
  const Special device{FileType::CharacterDevice, {1, 3}};
  interference.refuses = true;
  EXPECT_EQ(status(fs->symlink(caller, fs->root(), "s", "x", {})), Status::NotSupported);
  EXPECT_EQ(status(fs->mknod(user, fs->root(), "f", {}, {})), Status::NotSupported);
  EXPECT_EQ(status(fs->mknod(caller, fs->root(), "c", device, {})), Status::NotSupported);
  EXPECT_EQ(status(fs->mknod(user, fs->root(), "c", device, {})), Status::Perm);
  interference.immutable = true;
  EXPECT_EQ(status(fs->mknod(user, fs->root(), "f", {}, {})), Status::Perm);
}

// A table leads handles to names; a file's name is taken away between the look-up that finds the
// file there and the record of it.
class PosixRemembering : public ::testing::Test {
 protected:
  PosixRemembering() : backend(PosixKind{kDisk, posix::HandleKind::Table}) {
    const auto made = finish(loop, fs().create({loop, root}, fs().root(), "file", {}));
    STAG_CHECK(made.ok());
    interference.looked_at = made->node.attributes.file_id;
    key = key_of(made->node.attributes);
  }
  ~PosixRemembering() override { interference = {}; }
  void SetUp() override {
    if (!backend.properties().knows_creation) GTEST_SKIP() << "no times of birth here";
  }
  static posix::InodeKey key_of(const Attributes& file) {
    const Time born = file.created.value_or(Time{});
    return {file.file_id,
            static_cast<std::uint64_t>(born.seconds) * 1'000'000'000 + born.nanoseconds};
  }
  FileSystem& fs() { return backend.fs(); }
  void rename_after_the_look_up(std::function<void()> then = nullptr) {
    interference.after_looking = [this, then] {
      std::thread([this] {
        testing::InlineLoop other;
        EXPECT_TRUE(
            finish(other, fs().rename({other, root}, fs().root(), "file", fs().root(), "moved"))
                .ok());
      }).join();
      interference.before_forgetting = then;
    };
  }
  std::set<std::string> names() {
    std::set<std::string> result;
    for (const auto& entry : files::directory_iterator(backend.outside() / "state")) {
      if (entry.path().extension() != ".sqlite") continue;
      const auto table = posix::InodeTable::open(entry.path());
      STAG_CHECK(table.ok());
      const auto names = (*table)->names_of(key);
      for (const posix::NameOfInode& name : *names) result.insert(name.name);
    }
    return result;
  }

  testing::InlineLoop loop;
  const Credentials root{0, 0, {}};
  PosixBackend backend;
  posix::InodeKey key;
};

TEST_F(PosixRemembering, a_name_that_is_renamed_while_it_is_looked_up_is_not_kept) {
  rename_after_the_look_up();
  EXPECT_TRUE(finish(loop, fs().lookup({loop, root}, fs().root(), "file")).ok());
  EXPECT_EQ(names(), std::set<std::string>{"moved"});
}

TEST_F(PosixRemembering, a_name_that_is_renamed_while_it_is_listed_is_not_kept) {
  rename_after_the_look_up();
  testing::Names listed;
  ListFrom from;
  from.with_nodes = true;
  EXPECT_TRUE(finish(loop, fs().list({loop, root}, fs().root(), from, listed)).ok());
  EXPECT_EQ(names(), std::set<std::string>{"moved"});
}

TEST_F(PosixRemembering, a_name_that_comes_back_while_it_is_forgotten_is_kept) {
  rename_after_the_look_up(
      [this] { files::rename(backend.export_path() / "moved", backend.export_path() / "file"); });
  EXPECT_TRUE(finish(loop, fs().lookup({loop, root}, fs().root(), "file")).ok());
  EXPECT_TRUE(names().contains("file"));
}

// By then the table has it for the other file.
TEST_F(PosixRemembering, a_name_that_another_file_got_before_it_is_forgotten_is_kept) {
  interference.after_removing = [this] {
    std::thread([this] {
      testing::InlineLoop other;
      const auto made = finish(other, fs().create({other, root}, fs().root(), "file", {}));
      ASSERT_TRUE(made.ok());
      key = key_of(made->node.attributes);
    }).join();
  };
  EXPECT_TRUE(finish(loop, fs().remove({loop, root}, fs().root(), "file")).ok());
  EXPECT_EQ(names(), std::set<std::string>{"file"});
}

TEST_F(PosixRemembering, a_change_whose_name_cannot_be_written_is_answered_as_done) {
  const CallerContext caller{loop, root};
  const Handle top = fs().root();
  const Handle file = finish(loop, fs().lookup(caller, top, "file"))->node.handle;
  interference.table_is_full = true;
  EXPECT_TRUE(finish(loop, fs().create(caller, top, "new", {})).ok());
  EXPECT_TRUE(finish(loop, fs().link(caller, file, top, "link")).ok());
  EXPECT_TRUE(finish(loop, fs().rename(caller, top, "new", top, "moved")).ok());
  EXPECT_TRUE(finish(loop, fs().remove(caller, top, "moved")).ok());
}

TEST_F(PosixRemembering, names_that_cannot_be_written_are_found_and_lead_to_their_files) {
  const CallerContext caller{loop, root};
  const std::uint64_t told = reason_counters().of(Reason::InodeTableUnwritten);
  interference.table_is_full = true;
  files::create_directory(backend.export_path() / "folder");
  std::ofstream(backend.export_path() / "folder" / "looked at") << "text";
  std::ofstream(backend.export_path() / "folder" / "listed");
  const auto folder = finish(loop, fs().lookup(caller, fs().root(), "folder"));
  ASSERT_TRUE(folder.ok());
  const auto file = finish(loop, fs().lookup(caller, folder->node.handle, "looked at"));
  ASSERT_TRUE(file.ok());
  testing::Names listed;
  ListFrom from;
  from.with_nodes = true;
  EXPECT_TRUE(finish(loop, fs().list(caller, folder->node.handle, from, listed)).ok());
  EXPECT_EQ(listed.nodes.at("listed").attributes.type, FileType::Regular);
  posix::ObjectCache::drop_all();
  const auto read = finish(loop, fs().read(caller, file->node.handle, 0, 4));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->data, Rope::copy_of(bytes_of("text")));
  EXPECT_EQ(reason_counters().of(Reason::InodeTableUnwritten) - told, 1u);
}

TEST_F(PosixRemembering, names_are_written_when_another_one_can_be) {
  const CallerContext caller{loop, root};
  interference.table_is_full = true;
  EXPECT_TRUE(finish(loop, fs().rename(caller, fs().root(), "file", fs().root(), "moved")).ok());
  EXPECT_EQ(names(), std::set<std::string>{});
  interference.table_is_full = false;
  EXPECT_TRUE(finish(loop, fs().create(caller, fs().root(), "another", {})).ok());
  EXPECT_EQ(names(), std::set<std::string>{"moved"});
}

// A folder of a file system that does not tell when its files were made, served by table handles.
class WithoutTimesOfBirth : public ::testing::Test {
 protected:
  ~WithoutTimesOfBirth() override { interference = {}; }
  void SetUp() override { interference.hides_births = true; }
  void open() {
    PosixKind kind;
    kind.handles = posix::HandleKind::Table;
    backend = std::make_unique<PosixBackend>(kind);
  }
  FileSystem& fs() { return backend->fs(); }
  CallerContext caller() { return {loop, who}; }
  Node find(const char* name) {
    const auto found = finish(loop, fs().lookup(caller(), fs().root(), name));
    STAG_CHECK(found.ok());
    return found->node;
  }
  Node make_locally(const char* name) {
    std::ofstream(backend->export_path() / name).put('x');
    return find(name);
  }
  std::optional<Status> status(const Handle& object) {
    const auto found = finish(loop, fs().attributes(caller(), object));
    return found ? std::nullopt : std::optional(found.error());
  }
  // Many that were there one after the other, one that is there, and that it has the number of one
  // of them.
  template <class Remove>
  void expect_stale_once_gone(Remove remove) {
    std::vector<Handle> gone;
    std::set<std::uint64_t> numbers;
    for (int i = 0; i < 20; ++i) {
      const Node file = make_locally("file");
      gone.push_back(file.handle);
      numbers.insert(file.attributes.file_id);
      remove();
    }
    if (numbers.size() == gone.size()) GTEST_SKIP() << "numbers are not used again here";
    const Node last = make_locally("file");
    for (int i = 0; i < 2; ++i) {
      for (const Handle& each : gone) ASSERT_EQ(status(each), Status::Stale);
      EXPECT_EQ(status(last.handle), std::nullopt);
      backend->restart();
    }
  }

  testing::InlineLoop loop;
  const Credentials who{::geteuid(), ::getegid(), {}};
  std::unique_ptr<PosixBackend> backend;
};

TEST_F(WithoutTimesOfBirth, a_removed_file_is_stale_where_the_kernel_has_a_handle) {
  open();
  expect_stale_once_gone([&] {
    files::remove(backend->export_path() / "file");
    posix::ObjectCache::drop_all();  // As long as it is open its number is not free.
  });
}

TEST_F(WithoutTimesOfBirth, a_file_that_REMOVE_removes_is_stale_where_nothing_else_tells) {
  interference.has_no_kernel_handles = true;
  open();
  expect_stale_once_gone(
      [&] { STAG_CHECK(finish(loop, fs().remove(caller(), fs().root(), "file")).ok()); });
}

TEST_F(WithoutTimesOfBirth, a_file_that_RENAME_replaces_is_stale_where_nothing_else_tells) {
  interference.has_no_kernel_handles = true;
  open();
  expect_stale_once_gone([&] {
    make_locally("other");
    STAG_CHECK(finish(loop, fs().rename(caller(), fs().root(), "other", fs().root(), "file")).ok());
  });
}

TEST_F(WithoutTimesOfBirth, a_file_that_has_another_name_keeps_its_handle) {
  interference.has_no_kernel_handles = true;
  open();
  const Handle file = make_locally("file").handle;
  STAG_CHECK(finish(loop, fs().link(caller(), file, fs().root(), "link")).ok());
  STAG_CHECK(finish(loop, fs().remove(caller(), fs().root(), "file")).ok());
  EXPECT_EQ(status(file), std::nullopt);
  EXPECT_EQ(find("link").handle, file);
}

// A table on a disk that is full when a test says so.
class InodeTableOnFullDisk : public ::testing::Test {
 protected:
  ~InodeTableOnFullDisk() override { interference = {}; }
  void open() {
    table = nullptr;
    auto opened = posix::InodeTable::open(folder.path() / "table");
    STAG_CHECK(opened.ok());
    table = *std::move(opened);
  }
  void SetUp() override {
    open();
    interference.table_is_full = true;
  }
  std::set<std::string> names_of(posix::InodeKey object) {
    std::set<std::string> result;
    const auto names = table->names_of(object);
    for (const posix::NameOfInode& name : *names) result.insert(name.name);
    return result;
  }
  const testing::Folder folder{kDisk};
  const posix::InodeKey top{2, 1};
  std::unique_ptr<posix::InodeTable> table;
};

TEST_F(InodeTableOnFullDisk, keeps_the_newest_names_and_writes_them_at_its_end) {
  constexpr std::uint64_t kMost = posix::InodeTable::kMostUnwritten;
  for (std::uint64_t i = 1; i <= kMost + 3; ++i) table->record(top, std::to_string(i), {i, 1});
  EXPECT_EQ(names_of({3, 1}), std::set<std::string>{});
  EXPECT_EQ(names_of({4, 1}), std::set<std::string>{"4"});
  interference.table_is_full = false;
  open();
  EXPECT_EQ(names_of({3, 1}), std::set<std::string>{});
  for (std::uint64_t i = 4; i <= kMost + 3; ++i)
    ASSERT_EQ(names_of({i, 1}), std::set<std::string>{std::to_string(i)});
}

TEST_F(InodeTableOnFullDisk, does_not_write_a_name_over_what_it_leads_to_since) {
  interference.table_is_full = false;
  table->record(top, "back", {6, 1});
  interference.table_is_full = true;
  table->record(top, "back", {7, 1});
  table->record(top, "back", {6, 1});
  table->record(top, "a", {1, 1});
  table->record(top, "b", {2, 1});
  table->record(top, "b", {3, 1});
  table->record(top, "c", {4, 1});
  table->forget(top, "c", {4, 1});
  table->forget(top, "a", {9, 1});
  EXPECT_EQ(names_of({1, 1}), std::set<std::string>{"a"});
  interference.table_is_full = false;
  table->record(top, "a", {5, 1});
  open();
  EXPECT_EQ(names_of({1, 1}), std::set<std::string>{});
  EXPECT_EQ(names_of({5, 1}), std::set<std::string>{"a"});
  EXPECT_EQ(names_of({3, 1}), std::set<std::string>{"b"});
  EXPECT_EQ(names_of({2, 1}), std::set<std::string>{});
  EXPECT_EQ(names_of({4, 1}), std::set<std::string>{});
  EXPECT_EQ(names_of({6, 1}), std::set<std::string>{"back"});
}

}  // namespace
}  // namespace stag::vfs
