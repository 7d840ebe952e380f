#include "vfs/posix/inode_table.h"

#include <cerrno>
#include <cstdio>

#include "base/reason.h"
#include "base/sqlite_files.h"

namespace stag::vfs::posix {
namespace {

// Names that are written at once, when they can be again.
constexpr std::uint32_t kBatch = 256;

constexpr const char* kDamaged = ".damaged";

// `unwritten` is in memory, as all that is TEMP; lower numbers are older.
constexpr const char* kSchema =
    "PRAGMA temp_store = MEMORY;"
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = NORMAL;"
    "CREATE TABLE IF NOT EXISTS names ("
    "  directory INTEGER NOT NULL, directory_born INTEGER NOT NULL, name BLOB NOT NULL,"
    "  inode INTEGER NOT NULL, born INTEGER NOT NULL,"
    "  PRIMARY KEY (directory, directory_born, name)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS objects ON names (inode, born);"
    "CREATE TABLE IF NOT EXISTS retired (number INTEGER PRIMARY KEY,"
    "  directory INTEGER NOT NULL, directory_born INTEGER NOT NULL, name BLOB NOT NULL,"
    "  inode INTEGER NOT NULL, born INTEGER NOT NULL,"
    "  UNIQUE (inode, born, directory, directory_born, name));"
    "CREATE TABLE IF NOT EXISTS reused (number INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  inode INTEGER NOT NULL UNIQUE);"
    "CREATE TEMP TABLE unwritten (number INTEGER PRIMARY KEY,"
    "  directory INTEGER NOT NULL, directory_born INTEGER NOT NULL, name BLOB NOT NULL,"
    "  inode INTEGER NOT NULL, born INTEGER NOT NULL,"
    "  UNIQUE (directory, directory_born, name));"
    "CREATE INDEX temp.unwritten_objects ON unwritten (inode, born);";

// Nothing stays that SQLite would take for a part of the next table.
bool set_aside(const std::string& path) {
  for (const char* const each : kSqliteFiles)
    if (::rename((path + each).c_str(), (path + kDamaged + each).c_str()) != 0 && errno != ENOENT)
      return false;
  return true;
}

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
  Use& bind(std::uint64_t number) {
    sqlite3_bind_int64(statement_, ++bound_, static_cast<sqlite3_int64>(number));
    return *this;
  }
  Use& bind(std::string_view name) {
    sqlite3_bind_blob(statement_, ++bound_, name.data(), static_cast<int>(name.size()),
                      SQLITE_STATIC);
    return *this;
  }
  bool row() { return (last_ = sqlite3_step(statement_)) == SQLITE_ROW; }
  bool done() { return sqlite3_step(statement_) == SQLITE_DONE; }
  // Of rows that ended: whether all were read.
  bool read_all() const { return last_ == SQLITE_DONE; }
  InodeKey key(int column) const {
    return {static_cast<std::uint64_t>(sqlite3_column_int64(statement_, column)),
            static_cast<std::uint64_t>(sqlite3_column_int64(statement_, column + 1))};
  }
  std::uint64_t number(int column) const {
    return static_cast<std::uint64_t>(sqlite3_column_int64(statement_, column));
  }
  std::string text(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    return std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  }

 private:
  sqlite3_stmt* statement_;
  int bound_ = 0;
  int last_ = SQLITE_OK;
};

bool InodeTable::prepare_statements() {
  struct Text {
    Statement InodeTable::*statement;
    const char* text;
  };
  static constexpr Text kTexts[] = {
      {&InodeTable::find_,
       "SELECT inode, born FROM names WHERE directory = ? AND directory_born = ? AND name = ?"},
      {&InodeTable::record_, "INSERT OR REPLACE INTO names VALUES (?, ?, ?, ?, ?)"},
      {&InodeTable::forget_,
       "DELETE FROM names WHERE directory = ? AND directory_born = ? AND name = ?"
       " AND inode = ? AND born = ?"},
      {&InodeTable::names_,
       "SELECT directory, directory_born, name FROM names WHERE inode = ?1 AND born = ?2"
       " UNION ALL"
       " SELECT directory, directory_born, name FROM unwritten WHERE inode = ?1 AND born = ?2"
       " UNION ALL"
       " SELECT directory, directory_born, name FROM retired WHERE inode = ?1 AND born = ?2"},
      {&InodeTable::rows_behind_,
       "SELECT directory, directory_born, name, inode, born FROM names"
       " WHERE (directory, directory_born, name) > (?, ?, ?)"
       " ORDER BY directory, directory_born, name LIMIT ?"},
      {&InodeTable::retire_,
       "INSERT OR REPLACE INTO retired (directory, directory_born, name, inode, born)"
       " VALUES (?, ?, ?, ?, ?)"},
      {&InodeTable::trim_retired_,
       "DELETE FROM retired WHERE number <= (SELECT max(number) FROM retired) - ?"},
      {&InodeTable::note_gone_, "INSERT OR REPLACE INTO reused (inode) VALUES (?)"},
      {&InodeTable::trim_gone_,
       "DELETE FROM reused WHERE number <= (SELECT max(number) FROM reused) - ?"},
      {&InodeTable::number_left_, "SELECT number FROM reused WHERE inode = ?"},
      {&InodeTable::keep_unwritten_,
       "INSERT OR REPLACE INTO unwritten (directory, directory_born, name, inode, born)"
       " VALUES (?, ?, ?, ?, ?)"},
      {&InodeTable::trim_unwritten_,
       "DELETE FROM unwritten WHERE number <= (SELECT max(number) FROM unwritten) - ?"},
      {&InodeTable::forget_unwritten_,
       "DELETE FROM unwritten WHERE directory = ? AND directory_born = ? AND name = ?"
       " AND inode = ? AND born = ?"},
      {&InodeTable::supersede_unwritten_,
       "DELETE FROM unwritten WHERE directory = ? AND directory_born = ? AND name = ?"},
      {&InodeTable::write_back_,
       "INSERT OR REPLACE INTO names SELECT directory, directory_born, name, inode, born"
       " FROM unwritten ORDER BY number LIMIT ?"},
      {&InodeTable::drop_written_,
       "DELETE FROM unwritten WHERE number IN"
       " (SELECT number FROM unwritten ORDER BY number LIMIT ?)"},
  };
  for (const Text& each : kTexts) {
    sqlite3_stmt* prepared = nullptr;
    if (sqlite3_prepare_v2(database_.get(), each.text, -1, &prepared, nullptr) != SQLITE_OK)
      return false;
    (this->*each.statement).reset(prepared);
  }
  return true;
}

bool InodeTable::open_database() {
  if (path_ != kNoFile) create_private(path_);
  sqlite3* database = nullptr;
  const int opened =
      sqlite3_open_v2(path_.c_str(), &database,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(database);
  // It has the names of files that others may not list.
  make_private(path_);
  return opened == SQLITE_OK && sqlite3_busy_timeout(database, 5000) == SQLITE_OK &&
         sqlite3_exec(database, kSchema, nullptr, nullptr, nullptr) == SQLITE_OK &&
         prepare_statements();
}

Result<std::unique_ptr<InodeTable>, std::string> InodeTable::open_once(const std::string& path,
                                                                       bool& damaged) {
  std::unique_ptr<InodeTable> table(new InodeTable(path));
  if (table->open_database()) return table;
  sqlite3* const database = table->database_.get();
  if (database == nullptr) return Failure{path + ": out of memory"};
  const int code = sqlite3_errcode(database);
  damaged = code == SQLITE_NOTADB || code == SQLITE_CORRUPT;
  return Failure{path + ": " + sqlite3_errmsg(database)};
}

Result<std::unique_ptr<InodeTable>, std::string> InodeTable::open(const std::string& path) {
  bool damaged = false;
  auto table = open_once(path, damaged);
  if (table || !damaged || !set_aside(path)) return table;
  trace(Reason::InodeTableSetAside, path + kDamaged, table.error());
  return open_once(path, damaged);
}

InodeTable::~InodeTable() {
  while (has_unwritten_ && write_back()) {
  }
}

InodeTable::Recorded InodeTable::record(InodeKey directory, std::string_view name,
                                        InodeKey object) {
  std::string trouble;
  {
    std::lock_guard lock(mutex_);
    const bool known = is_written(directory, name, object);
    const bool written = known || Use(record_).bind(directory).bind(name).bind(object).done();
    if (!written && !has_unwritten_) trouble = sqlite3_errmsg(database_.get());
    if (!written) keep_unwritten(directory, name, object);
    if (written && has_unwritten_) {
      (void)Use(supersede_unwritten_).bind(directory).bind(name).done();
      if (!known) (void)write_back();
    }
    if (known) return Recorded::Known;
  }
  if (!trouble.empty()) trace(Reason::InodeTableUnwritten, path_, trouble);
  return Recorded::New;
}

bool InodeTable::is_written(InodeKey directory, std::string_view name, InodeKey object) {
  Use find(find_);
  return find.bind(directory).bind(name).row() && find.key(0) == object;
}

void InodeTable::keep_unwritten(InodeKey directory, std::string_view name, InodeKey object) {
  has_unwritten_ = true;
  (void)Use(keep_unwritten_).bind(directory).bind(name).bind(object).done();
  (void)Use(trim_unwritten_).bind(kMostUnwritten).done();
}

bool InodeTable::write_back() {
  if (!Use(write_back_).bind(kBatch).done() || !Use(drop_written_).bind(kBatch).done())
    return false;
  has_unwritten_ = sqlite3_changes(database_.get()) == static_cast<int>(kBatch);
  return true;
}

void InodeTable::forget(InodeKey directory, std::string_view name, InodeKey object) {
  std::lock_guard lock(mutex_);
  // A row that stays is found out when it is followed.
  (void)Use(forget_).bind(directory).bind(name).bind(object).done();
  if (has_unwritten_) (void)Use(forget_unwritten_).bind(directory).bind(name).bind(object).done();
}

std::optional<std::vector<InodeTable::Row>> InodeTable::rows_behind(const Row& last,
                                                                    std::uint32_t most) {
  std::lock_guard lock(mutex_);
  std::vector<Row> rows;
  Use use(rows_behind_);
  use.bind(last.directory).bind(last.name).bind(most);
  while (use.row()) rows.push_back({use.key(0), use.text(2), use.key(3)});
  if (!use.read_all()) return std::nullopt;
  return rows;
}

bool InodeTable::run(const char* text) {
  return sqlite3_exec(database_.get(), text, nullptr, nullptr, nullptr) == SQLITE_OK;
}

void InodeTable::retire(const std::vector<Row>& rows) {
  if (rows.empty()) return;
  std::lock_guard lock(mutex_);
  bool done = run("BEGIN IMMEDIATE");
  for (const auto& [directory, name, object] : rows)
    done = done && Use(retire_).bind(directory).bind(name).bind(object).done() &&
           Use(forget_).bind(directory).bind(name).bind(object).done();
  done = done && Use(trim_retired_).bind(kMostRetired).done();
  if (!done || !run("COMMIT")) (void)run("ROLLBACK");
}

void InodeTable::note_gone(std::uint64_t inode) {
  std::lock_guard lock(mutex_);
  (void)Use(note_gone_).bind(inode).done();
  (void)Use(trim_gone_).bind(kMostReused).done();
}

std::uint64_t InodeTable::number_left(std::uint64_t inode) {
  std::lock_guard lock(mutex_);
  Use use(number_left_);
  return use.bind(inode).row() ? use.number(0) : 0;
}

std::optional<std::vector<NameOfInode>> InodeTable::names_of(InodeKey object) {
  std::lock_guard lock(mutex_);
  std::vector<NameOfInode> names;
  Use use(names_);
  use.bind(object);
  while (use.row()) names.push_back({use.key(0), use.text(2)});
  if (!use.read_all()) return std::nullopt;
  return names;
}

}  // namespace stag::vfs::posix
