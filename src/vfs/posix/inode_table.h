// Which names lead to an object, kept across restarts: what makes handles last where the kernel
// does not open by handle (without root, and on file systems that cannot). A row says that
// (directory, name) led to an object when it was last seen; whoever follows it verifies that it
// still does. Kept in SQLite: a process that is killed loses nothing, a machine that loses power at
// most the newest rows, whose handles become stale.
//
// Callable from any thread that may block.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfs/status.h"

namespace stag::vfs::posix {

// What an object is known by: its inode number and its time of birth in nanoseconds, because
// numbers are used again.
struct InodeKey {
  std::uint64_t inode = 0;
  std::uint64_t born = 0;
  friend bool operator==(const InodeKey&, const InodeKey&) = default;
};

struct NameOfInode {
  InodeKey directory;
  std::string name;
};

class InodeTable {
 public:
  // `path` ":memory:" keeps nothing. Fails with SQLite's words.
  static Result<std::unique_ptr<InodeTable>, std::string> open(const std::string& path);

  // (directory, name) leads to `object` now. Costs a lookup when that is known already. False: it
  // could not be kept.
  bool record(InodeKey directory, std::string_view name, InodeKey object);
  void forget(InodeKey directory, std::string_view name);
  // In no order.
  std::vector<NameOfInode> names_of(InodeKey object);

 private:
  struct CloseDatabase {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;
  class Use;  // a statement between its first binding and its reset

  InodeTable() = default;
  bool prepare(const char* text, Statement& statement);

  std::mutex mutex_;
  std::unique_ptr<sqlite3, CloseDatabase> database_;
  Statement find_;
  Statement record_;
  Statement forget_;
  Statement names_;
};

}  // namespace stag::vfs::posix
