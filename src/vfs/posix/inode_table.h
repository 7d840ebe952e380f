// InodeTable: a table of the names that lead to each object, kept over restarts. It makes handles
// last where the kernel cannot open by handle (without root, and on some file systems). A row says
// that (directory, name) led to an object when the row was written; its reader verifies that it
// still does. The table is in SQLite: a killed process loses no row, a machine that loses power at
// most the newest rows, whose handles become stale.
//
// Names that cannot be written, on a full disk for example, are kept in memory: the kMostUnwritten
// that came last. They are written once another name could be, or when the table is closed; if the
// process ends without that, their handles become stale.
//
// A name that leads nowhere is retired, since a program of this machine may have moved its object,
// or a directory above it, and may move it back, or a client may look the directory up where it is
// now. The kMostRetired that were retired last still count among the names of their objects.
//
// Where a file system tells neither times of birth nor anything else by which an inode differs from
// the one that had its number before, the table counts: an inode whose last name goes leaves a
// number that is above all others, which is the "time of birth" of what has its number next. The
// kMostReused that were left last are kept; handles of objects beneath those become stale.
//
// Thread: any that may block.
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

// The key of an object: its inode number and its time of birth in nanoseconds, because inode
// numbers are reused; or, where the file system tells no times of birth, another number in place of
// it that an object with the same inode number does not have.
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
  static constexpr std::uint32_t kMostUnwritten = 1 << 14;
  static constexpr std::uint32_t kMostRetired = 1 << 16;
  static constexpr std::uint32_t kMostReused = 1 << 20;

  // The `path` of a table that keeps nothing.
  static constexpr const char* kNoFile = ":memory:";
  // A damaged table is set aside, as `path`.damaged, and an empty one takes its place: its names
  // are recorded anew, until then their handles are stale. Fails with SQLite's words.
  static Result<std::unique_ptr<InodeTable>, std::string> open(const std::string& path);
  ~InodeTable();

  enum class Recorded : std::uint8_t { New, Known };
  // (directory, name) leads to `object` now. Costs a lookup when that is known already.
  Recorded record(InodeKey directory, std::string_view name, InodeKey object);
  // (directory, name) does not lead to `object` any more; what the table has of others stays.
  void forget(InodeKey directory, std::string_view name, InodeKey object);
  // In no order. nullopt: they cannot be read.
  std::optional<std::vector<NameOfInode>> names_of(InodeKey object);

  struct Row {
    InodeKey directory;
    std::string name;
    InodeKey object;
  };
  // At most `most` rows behind `last`, by directory; none that are retired or unwritten. nullopt:
  // they cannot be read.
  std::optional<std::vector<Row>> rows_behind(const Row& last, std::uint32_t most);
  // Stands before all rows: SQLite's integers have a sign.
  static Row before_all() { return {{kLowest, kLowest}, {}, {}}; }
  // Rows stay as they are where that cannot be written.
  void retire(const std::vector<Row>& rows);

  // The inode is gone; what has its number next is another one.
  void note_gone(std::uint64_t inode);
  // What the last inode of that number has left; 0: none was noted to be gone.
  std::uint64_t number_left(std::uint64_t inode);

 private:
  struct CloseDatabase {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;
  class Use;  // a statement between its first binding and its reset

  static constexpr std::uint64_t kLowest = std::uint64_t{1} << 63;

  explicit InodeTable(std::string path) : path_(std::move(path)) {}
  bool open_database();
  static Result<std::unique_ptr<InodeTable>, std::string> open_once(const std::string& path,
                                                                    bool& damaged);
  bool prepare_statements();
  bool run(const char* text);
  bool is_written(InodeKey directory, std::string_view name, InodeKey object);
  void keep_unwritten(InodeKey directory, std::string_view name, InodeKey object);
  // Writes the oldest of them. False when that fails.
  bool write_back();

  const std::string path_;
  std::mutex mutex_;
  std::unique_ptr<sqlite3, CloseDatabase> database_;
  Statement find_;
  Statement record_;
  Statement forget_;
  Statement names_;
  Statement rows_behind_;
  Statement retire_;
  Statement trim_retired_;
  Statement note_gone_;
  Statement trim_gone_;
  Statement number_left_;
  bool has_unwritten_ = false;
  Statement keep_unwritten_;
  Statement trim_unwritten_;
  Statement forget_unwritten_;
  Statement supersede_unwritten_;
  Statement write_back_;
  Statement drop_written_;
};

}  // namespace stag::vfs::posix
