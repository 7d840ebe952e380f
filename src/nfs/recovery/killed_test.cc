// The records of a server that is killed in the middle of writing them. A child writes, and
// SQLite's n-th change of a file is its last, for every n; what is found then is held against what
// the child was told to be on disk.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>

#include "nfs/recovery/database.h"
#include "testing/vfs/posix_backend.h"

namespace stag::nfs::recovery {
namespace {

// How the change that is the last one ends.
enum class End : std::uint8_t {
  Before,     // nothing of it is done
  HalfWay,    // a write has written its first half
  PowerLost,  // and all that no sync has followed is gone
};

// Between SQLite and its own VFS while it lives: it counts changes, and spares the disk all syncs,
// for the machine goes on. There is one at a time, in processes with one thread.
class KillingVfs {
 public:
  KillingVfs() {
    real_ = sqlite3_vfs_find(nullptr);
    vfs_ = *real_;
    vfs_.zName = "killing";
    vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
    vfs_.xOpen = open;
    vfs_.xDelete = [](sqlite3_vfs*, const char* name, int) {
      count();
      return real_->xDelete(real_, name, 0);
    };
    sqlite3_vfs_register(&vfs_, 1);
  }
  KillingVfs(const KillingVfs&) = delete;
  ~KillingVfs() { sqlite3_vfs_unregister(&vfs_); }

  // This change from now on is the last one of this process.
  static void kill_at(int last, End end) {
    left_ = last;
    end_ = end;
  }

 private:
  struct File {
    sqlite3_file base;
    sqlite3_file* real;
  };
  // What a write or a cut has replaced.
  struct Replaced {
    sqlite3_file* file;
    sqlite3_int64 size, offset;
    std::string bytes;
  };

  static sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<File*>(file)->real; }

  static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
    File* const made = reinterpret_cast<File*>(file);
    made->real = reinterpret_cast<sqlite3_file*>(made + 1);
    const int status = real_->xOpen(real_, name, made->real, flags, out);
    made->base.pMethods = made->real->pMethods != nullptr ? &methods() : nullptr;
    return status;
  }

  static const sqlite3_io_methods& methods() {
    static const sqlite3_io_methods kMethods = [] {
      sqlite3_io_methods all{};
      all.iVersion = 2;
      all.xClose = close;
      all.xRead = forward<&sqlite3_io_methods::xRead>;
      all.xWrite = write;
      all.xTruncate = truncate;
      all.xSync = sync;
      all.xFileSize = forward<&sqlite3_io_methods::xFileSize>;
      all.xLock = forward<&sqlite3_io_methods::xLock>;
      all.xUnlock = forward<&sqlite3_io_methods::xUnlock>;
      all.xCheckReservedLock = forward<&sqlite3_io_methods::xCheckReservedLock>;
      all.xFileControl = forward<&sqlite3_io_methods::xFileControl>;
      all.xSectorSize = forward<&sqlite3_io_methods::xSectorSize>;
      all.xDeviceCharacteristics = forward<&sqlite3_io_methods::xDeviceCharacteristics>;
      all.xShmMap = forward<&sqlite3_io_methods::xShmMap>;
      all.xShmLock = forward<&sqlite3_io_methods::xShmLock>;
      all.xShmBarrier = barrier;
      all.xShmUnmap = forward<&sqlite3_io_methods::xShmUnmap>;
      return all;
    }();
    return kMethods;
  }
  template <auto Method, class... Arguments>
  static int forward(sqlite3_file* file, Arguments... arguments) {
    return (real(file)->pMethods->*Method)(real(file), arguments...);
  }

  static int close(sqlite3_file* file) {
    std::erase_if(unsynced_, [&](const Replaced& one) { return one.file == real(file); });
    return real(file)->pMethods->xClose(real(file));
  }
  static int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
    remember(real(file), offset, size);
    if (left_ == 1 && end_ == End::HalfWay)
      real(file)->pMethods->xWrite(real(file), bytes, size / 2, offset);
    count();
    return real(file)->pMethods->xWrite(real(file), bytes, size, offset);
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    const sqlite3_int64 before = size_of(real(file));
    if (size < before) remember(real(file), size, static_cast<int>(before - size));
    count();
    return real(file)->pMethods->xTruncate(real(file), size);
  }
  static int sync(sqlite3_file* file, int) {
    count();
    std::erase_if(unsynced_, [&](const Replaced& one) { return one.file == real(file); });
    return SQLITE_OK;
  }
  static void barrier(sqlite3_file* file) {
    count();
    real(file)->pMethods->xShmBarrier(real(file));
  }

  static sqlite3_int64 size_of(sqlite3_file* file) {
    sqlite3_int64 size = 0;
    file->pMethods->xFileSize(file, &size);
    return size;
  }
  static void remember(sqlite3_file* file, sqlite3_int64 offset, int size) {
    const sqlite3_int64 whole = size_of(file);
    const auto old = std::clamp<sqlite3_int64>(whole - offset, 0, size);
    Replaced replaced{file, whole, offset, std::string(static_cast<std::size_t>(old), '\0')};
    if (old > 0) file->pMethods->xRead(file, replaced.bytes.data(), static_cast<int>(old), offset);
    unsynced_.push_back(std::move(replaced));
  }
  static void lose_unsynced() {
    for (auto one = unsynced_.rbegin(); one != unsynced_.rend(); ++one) {
      const sqlite3_io_methods& does = *one->file->pMethods;
      does.xWrite(one->file, one->bytes.data(), static_cast<int>(one->bytes.size()), one->offset);
      does.xTruncate(one->file, one->size);
    }
  }
  static void count() {
    if (--left_ != 0) return;
    if (end_ == End::PowerLost) lose_unsynced();
    kill(getpid(), SIGKILL);
  }

  static inline sqlite3_vfs* real_ = nullptr;
  static inline sqlite3_vfs vfs_;
  static inline int left_ = 0;
  static inline End end_ = End::Before;
  static inline std::vector<Replaced> unsynced_;
};

// Longer than a page, so that a record is several writes.
ClientOwner owner(char name) {
  return {std::string(5000, name), std::string(300, name)};
}
Change add(state::ClientId client, char name) {
  return {Change::Kind::Add, client, owner(name)};
}
Change removal(state::ClientId client) {
  return {Change::Kind::Remove, client, {}};
}

// A step of the server's, and whose records there are once it has returned.
struct Step {
  std::function<bool(std::unique_ptr<Database>&)> run;
  std::string names;
  std::uint32_t starts;
};

Step start(std::uint32_t lease, std::string names, std::uint32_t starts, const std::string& path) {
  const auto run = [lease, path](std::unique_ptr<Database>& database) {
    // The last one to close the database moves all records from the log into it.
    database.reset();
    auto opened = Database::open(path, lease);
    if (opened) database = *std::move(opened);
    return opened.ok();
  };
  return {run, std::move(names), starts};
}
Step change(std::vector<Change> changes, std::string names, std::uint32_t starts) {
  const auto run = [changes = std::move(changes)](std::unique_ptr<Database>& database) {
    return database->apply(changes).ok();
  };
  return {run, std::move(names), starts};
}

std::vector<Step> steps_at(const std::string& path) {
  const auto end_grace = [](std::unique_ptr<Database>& database) {
    return database->remove_former().ok();
  };
  const auto adopt = [](std::unique_ptr<Database>& database) {
    return database->adopt(std::vector<ClientOwner>{owner('e'), owner('f')}, 70).ok();
  };
  return {
      start(100, "", 1, path),
      change({add(1, 'a')}, "a", 1),
      change({add(2, 'b'), removal(1), add(3, 'c')}, "bc", 1),
      change({add(4, 'a'), removal(3)}, "ab", 1),
      start(50, "ab", 2, path),
      change({add(1 << 20, 'a')}, "ab", 2),
      {end_grace, "a", 2},
      change({add(1 << 21, 'd')}, "ad", 2),
      {adopt, "adef", 2},
      start(60, "adef", 3, path),
      {end_grace, "", 3},
  };
}

// In the child. Tells `told` the number of the start once a step has returned.
[[noreturn]] void run_and_tell(const std::vector<Step>& steps, int told, int last, End end) {
  KillingVfs::kill_at(last, end);
  std::unique_ptr<Database> database;
  for (const Step& step : steps) {
    if (!step.run(database)) _exit(2);
    const std::uint32_t epoch = database->epoch();
    if (write(told, &epoch, sizeof(epoch)) != sizeof(epoch)) _exit(3);
  }
  database.reset();
  _exit(0);
}

struct Told {
  std::vector<std::uint32_t> epochs;  // one for each step that has returned
  int status = 0;                     // of the child
};

Told run_in_child(const std::vector<Step>& steps, int last, End end) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) run_and_tell(steps, ends[1], last, end);
  close(ends[1]);
  Told told;
  for (std::uint32_t epoch = 0; read(ends[0], &epoch, sizeof(epoch)) == sizeof(epoch);)
    told.epochs.push_back(epoch);
  close(ends[0]);
  waitpid(child, &told.status, 0);
  return told;
}

// The names of those whose records are whole; "?" of any other.
std::string names_of(const std::vector<ClientOwner>& clients) {
  std::string names;
  for (const ClientOwner& client : clients) {
    const char name = client.ownerid.empty() ? '?' : client.ownerid[0];
    names += client == owner(name) ? name : '?';
  }
  std::ranges::sort(names);
  return names;
}

class KilledRecords : public ::testing::TestWithParam<End> {
 protected:
  std::string path(int last) const {
    return folder_.path() / ("clients" + std::to_string(last) + ".db");
  }
  // What is found is as after the last step that has returned, or as after the one in progress.
  static void check(const std::string& path, const std::vector<Step>& steps, const Told& told) {
    const std::size_t returned = told.epochs.size();
    if (returned == 0 && !std::filesystem::exists(path)) return;
    auto found = Database::open_ended(path);
    ASSERT_TRUE(found.ok()) << found.error();
    const std::string before = returned == 0 ? "" : steps[returned - 1].names;
    const std::string after = returned == steps.size() ? before : steps[returned].names;
    const std::string names = names_of((*found)->former());
    EXPECT_TRUE(names == before || names == after)
        << names << ", not " << before << " or " << after;
    const std::uint32_t epoch = (*found)->epoch();
    if (returned > 0) {
      const std::uint32_t known = told.epochs.back();
      const bool starts =
          returned < steps.size() && steps[returned].starts > steps[returned - 1].starts;
      EXPECT_TRUE(epoch == known || (starts && epoch == known + 1)) << epoch << " of " << known;
    }
    found->reset();
    const auto next = Database::open(path, 90);
    ASSERT_TRUE(next.ok()) << next.error();
    EXPECT_TRUE(epoch == 0 || (*next)->epoch() == epoch + 1) << (*next)->epoch();
    EXPECT_EQ(names_of((*next)->former()), names);
  }

  vfs::testing::Folder folder_{"/tmp"};
  KillingVfs killing_;
};

TEST_P(KilledRecords, are_those_that_were_acknowledged_and_whole) {
  constexpr int kLeast = 100;
  int last = 1;
  for (bool ended = false; !ended; ++last) {
    SCOPED_TRACE(last);
    const std::vector<Step> steps = steps_at(path(last));
    const Told told = run_in_child(steps, last, GetParam());
    ended = WIFEXITED(told.status);
    if (ended) {
      ASSERT_EQ(WEXITSTATUS(told.status), 0);
      ASSERT_EQ(told.epochs.size(), steps.size());
    } else {
      ASSERT_EQ(WTERMSIG(told.status), SIGKILL);
    }
    check(path(last), steps, told);
    if (HasFailure()) return;
  }
  EXPECT_GT(last, kLeast) << "so often is a file changed, at least";
}

INSTANTIATE_TEST_SUITE_P(End, KilledRecords,
                         ::testing::Values(End::Before, End::HalfWay, End::PowerLost));

}  // namespace
}  // namespace stag::nfs::recovery
