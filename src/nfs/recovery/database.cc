#include "nfs/recovery/database.h"

#include <string_view>

namespace stag::nfs::recovery {
namespace {

constexpr int kFormat = 1;

// synchronous = FULL syncs the log at each COMMIT, so a row is on disk before COMMIT returns.
constexpr const char* kSchema =
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = FULL;"
    "CREATE TABLE IF NOT EXISTS epochs (epoch INTEGER PRIMARY KEY, lease INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS clients ("
    "  client INTEGER PRIMARY KEY, epoch INTEGER NOT NULL,"
    "  ownerid BLOB NOT NULL, principal BLOB NOT NULL);"
    "PRAGMA user_version = 1;";

void bind_text(sqlite3_stmt* statement, int at, std::string_view text) {
  // A null pointer would bind NULL, which is not the empty string.
  sqlite3_bind_blob(statement, at, text.empty() ? "" : text.data(), static_cast<int>(text.size()),
                    SQLITE_TRANSIENT);
}

std::string text_at(sqlite3_stmt* statement, int column) {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  return bytes == nullptr ? std::string() : std::string(bytes, size);
}

bool step(sqlite3_stmt* statement) {
  const bool done = sqlite3_step(statement) == SQLITE_DONE;
  sqlite3_reset(statement);
  return done;
}

}  // namespace

bool Database::run(const char* text) {
  return sqlite3_exec(handle_.get(), text, nullptr, nullptr, nullptr) == SQLITE_OK;
}

bool Database::prepare(const char* text, Statement& statement) {
  sqlite3_stmt* prepared = nullptr;
  const bool done = sqlite3_prepare_v2(handle_.get(), text, -1, &prepared, nullptr) == SQLITE_OK;
  statement.reset(prepared);
  return done;
}

Result<std::unique_ptr<Database>, std::string> Database::open(const std::string& path,
                                                              std::uint32_t lease_seconds) {
  std::unique_ptr<Database> made(new Database);
  sqlite3* handle = nullptr;
  const int opened =
      sqlite3_open_v2(path.c_str(), &handle,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  made->handle_.reset(handle);
  const auto failed = [&](const std::string& why) {
    return Failure{
        "cannot use the records of NFSv4 clients in " + path + ": " + why +
        "; make room, restore the file from a backup, or remove it and have clients lose "
        "the locks they held"};
  };
  if (opened != SQLITE_OK || sqlite3_busy_timeout(handle, 5000) != SQLITE_OK)
    return failed(handle != nullptr ? sqlite3_errmsg(handle) : "out of memory");
  if (!made->check_version()) return failed("they are of a newer version, or damaged");
  const bool ready = made->run(kSchema) && made->prepare_all() && made->read_former() &&
                     made->in_transaction([&] { return made->count_start(lease_seconds); }).ok();
  if (!ready) return failed(sqlite3_errmsg(handle));
  return made;
}

bool Database::prepare_all() {
  return prepare("INSERT OR REPLACE INTO clients VALUES (?, ?, ?, ?)", add_) &&
         prepare("DELETE FROM clients WHERE client = ?", remove_);
}

bool Database::check_version() {
  Statement version;
  return prepare("PRAGMA user_version", version) && sqlite3_step(version.get()) == SQLITE_ROW &&
         sqlite3_column_int(version.get(), 0) <= kFormat;
}

bool Database::read_former() {
  Statement clients;
  if (!prepare("SELECT DISTINCT ownerid, principal FROM clients", clients)) return false;
  int status = SQLITE_OK;
  while ((status = sqlite3_step(clients.get())) == SQLITE_ROW)
    former_.push_back({text_at(clients.get(), 0), text_at(clients.get(), 1)});
  return status == SQLITE_DONE;
}

// Removes the starts that no client record refers to, except the last, whose number counts on.
bool Database::count_start(std::uint32_t lease_seconds) {
  Statement last, add;
  if (!prepare("SELECT COALESCE(MAX(epoch), 0), COALESCE(MAX(lease), 0) FROM epochs", last) ||
      sqlite3_step(last.get()) != SQLITE_ROW)
    return false;
  epoch_ = static_cast<std::uint32_t>(sqlite3_column_int64(last.get(), 0)) + 1;
  if (!former_.empty())
    former_lease_ = static_cast<std::uint32_t>(sqlite3_column_int64(last.get(), 1));
  last.reset();
  if (former_.empty() && !run("DELETE FROM epochs")) return false;
  if (!prepare("INSERT INTO epochs VALUES (?, ?)", add)) return false;
  sqlite3_bind_int64(add.get(), 1, epoch_);
  sqlite3_bind_int64(add.get(), 2, lease_seconds);
  return step(add.get());
}

bool Database::apply_one(const Change& change) {
  sqlite3_stmt* const statement = (change.kind == Change::Kind::Add ? add_ : remove_).get();
  sqlite3_bind_int64(statement, 1, static_cast<sqlite3_int64>(change.client));
  if (change.kind == Change::Kind::Add) {
    sqlite3_bind_int64(statement, 2, epoch_);
    bind_text(statement, 3, change.owner.ownerid);
    bind_text(statement, 4, change.owner.principal);
  }
  return step(statement);
}

template <class Work>
Result<Ok, std::string> Database::in_transaction(Work work) {
  if (run("BEGIN IMMEDIATE") && work() && run("COMMIT")) return Ok{};
  std::string why = sqlite3_errmsg(handle_.get());
  // SQLite has rolled back by itself when the disk is full.
  if (sqlite3_get_autocommit(handle_.get()) == 0) run("ROLLBACK");
  return Failure{std::move(why)};
}

Result<Ok, std::string> Database::apply(std::span<const Change> changes) {
  return in_transaction([&] {
    for (const Change& change : changes)
      if (!apply_one(change)) return false;
    return true;
  });
}

Result<Ok, std::string> Database::remove_former() {
  const std::string epoch = std::to_string(epoch_);
  return in_transaction([&] {
    return run(("DELETE FROM clients WHERE epoch < " + epoch).c_str()) &&
           run(("DELETE FROM epochs WHERE epoch < " + epoch).c_str());
  });
}

}  // namespace stag::nfs::recovery
