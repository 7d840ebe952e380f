#include "vfs/posix/inode_table.h"

#include <sys/stat.h>

namespace stag::vfs::posix {
namespace {

constexpr const char* kSchema =
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = NORMAL;"
    "CREATE TABLE IF NOT EXISTS names ("
    "  directory INTEGER NOT NULL, directory_born INTEGER NOT NULL, name BLOB NOT NULL,"
    "  inode INTEGER NOT NULL, born INTEGER NOT NULL,"
    "  PRIMARY KEY (directory, directory_born, name)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS objects ON names (inode, born);";

}  // namespace

class InodeTable::Use {
 public:
  explicit Use(const Statement& statement) : statement_(statement.get()) {}
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  Use& bind(InodeKey key) {
    sqlite3_bind_int64(statement_, ++bound_, static_cast<sqlite3_int64>(key.inode));
    sqlite3_bind_int64(statement_, ++bound_, static_cast<sqlite3_int64>(key.born));
    return *this;
  }
  Use& bind(std::string_view name) {
    sqlite3_bind_blob(statement_, ++bound_, name.data(), static_cast<int>(name.size()),
                      SQLITE_STATIC);
    return *this;
  }
  bool row() { return sqlite3_step(statement_) == SQLITE_ROW; }
  bool done() { return sqlite3_step(statement_) == SQLITE_DONE; }
  InodeKey key(int column) const {
    return {static_cast<std::uint64_t>(sqlite3_column_int64(statement_, column)),
            static_cast<std::uint64_t>(sqlite3_column_int64(statement_, column + 1))};
  }
  std::string text(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    return std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  }

 private:
  sqlite3_stmt* statement_;
  int bound_ = 0;
};

bool InodeTable::prepare(const char* text, Statement& statement) {
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(database_.get(), text, -1, &prepared, nullptr) != SQLITE_OK) return false;
  statement.reset(prepared);
  return true;
}

Result<std::unique_ptr<InodeTable>, std::string> InodeTable::open(const std::string& path) {
  std::unique_ptr<InodeTable> table(new InodeTable);
  sqlite3* database = nullptr;
  const int opened =
      sqlite3_open_v2(path.c_str(), &database,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  table->database_.reset(database);
  // It has the names of files that others may not list, and may lie where they can pass through.
  for (const char* const each : {"", "-wal", "-shm", "-journal"})
    ::chmod((path + each).c_str(), 0600);
  const bool ready =
      opened == SQLITE_OK && sqlite3_busy_timeout(database, 5000) == SQLITE_OK &&
      sqlite3_exec(database, kSchema, nullptr, nullptr, nullptr) == SQLITE_OK &&
      table->prepare(
          "SELECT inode, born FROM names WHERE directory = ? AND directory_born = ? AND name = ?",
          table->find_) &&
      table->prepare("INSERT OR REPLACE INTO names VALUES (?, ?, ?, ?, ?)", table->record_) &&
      table->prepare(
          "DELETE FROM names WHERE directory = ? AND directory_born = ? AND name = ?"
          " AND inode = ? AND born = ?",
          table->forget_) &&
      table->prepare(
          "SELECT directory, directory_born, name FROM names WHERE inode = ? AND born = ?",
          table->names_);
  if (!ready)
    return Failure{path + ": " +
                   (database != nullptr ? sqlite3_errmsg(database) : "out of memory")};
  return table;
}

InodeTable::Recorded InodeTable::record(InodeKey directory, std::string_view name,
                                        InodeKey object) {
  std::lock_guard lock(mutex_);
  {
    Use find(find_);
    if (find.bind(directory).bind(name).row() && find.key(0) == object) return Recorded::Known;
  }
  const bool kept = Use(record_).bind(directory).bind(name).bind(object).done();
  return kept ? Recorded::New : Recorded::Failed;
}

void InodeTable::forget(InodeKey directory, std::string_view name, InodeKey object) {
  std::lock_guard lock(mutex_);
  // A row that stays is found out when it is followed.
  (void)Use(forget_).bind(directory).bind(name).bind(object).done();
}

std::vector<NameOfInode> InodeTable::names_of(InodeKey object) {
  std::lock_guard lock(mutex_);
  std::vector<NameOfInode> names;
  Use use(names_);
  use.bind(object);
  while (use.row()) names.push_back({use.key(0), use.text(2)});
  return names;
}

}  // namespace stag::vfs::posix
