#include "nfs/recovery/database.h"

#include <algorithm>
#include <string_view>

#include "base/sqlite_files.h"

namespace stag::nfs::recovery {
namespace {

constexpr int kFormat = 1;

// synchronous = FULL syncs the log at each COMMIT, so a row is on disk before COMMIT returns.
constexpr const char* kSchema =
    "PRAGMA synchronous = FULL;"
    "CREATE TABLE IF NOT EXISTS epochs (epoch INTEGER PRIMARY KEY, lease INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS clients ("
    "  client INTEGER PRIMARY KEY, epoch INTEGER NOT NULL,"
    "  ownerid BLOB NOT NULL, principal BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS server (id INTEGER PRIMARY KEY);"
    "CREATE TABLE IF NOT EXISTS handles (id INTEGER NOT NULL);"
    "PRAGMA user_version = 1;";

// Of a database in RADOS, before all else: the lock is taken once, not for each transaction.
constexpr const char* kAlone = "PRAGMA locking_mode = EXCLUSIVE;";

bool is_in_rados(sqlite3* database) {
  return sqlite3_uri_parameter(sqlite3_db_filename(database, "main"), "vfs") != nullptr;
}

// In RADOS the database itself is written by each transaction: it is there that the VFS knows of a
// lost lock, and refuses. To a log beside it, it would go on to write, and notice no error.
const char* journal_of(sqlite3* database) {
  return is_in_rados(database) ? "PRAGMA journal_mode = PERSIST;" : "PRAGMA journal_mode = WAL;";
}

// Ceph's VFS loses the error of a write that it waits for
// (SimpleRADOSStriper::wait_for_aios, 16.2), so that a server that is shut out of the cluster takes
// its records for written until the lock is to be renewed. But what that one reads is nothing: to
// be read, they have to have arrived.
bool can_be_read(sqlite3* database) {
  sqlite3_file* file = nullptr;
  char first = 0;
  return sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK &&
         file->pMethods->xRead(file, &first, sizeof(first), 0) == SQLITE_OK;
}

constexpr const char* kRemedyInRados =
    "see that the cluster is healthy and has room, and that the Ceph user may read, write and "
    "lock in the pool, and blocklist";

// No start has it: clients of other servers are recorded with it, by numbers from 1.
constexpr sqlite3_int64 kEpochOfAdopted = 0;

// Client IDs are made of 24 bits of an epoch; half of them are left to count.
std::uint32_t epoch_to_begin_with() {
  std::uint32_t number = 0;
  sqlite3_randomness(sizeof(number), &number);
  return number & 0x7fffff;
}

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

// What loses records is named only where nothing else is left.
std::string remedy_for(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
      return "end the other program that uses the file";
    case SQLITE_FULL:
      return "make room";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return "restore the file from a backup, or remove it and have clients lose the locks they "
             "held";
    default:
      return "see that the disk is sound and has room, and that the server may read and write the "
             "file and its directory";
  }
}

// Whether the cluster is to blame, and neither what is in the records nor the version of stag.
bool is_of_the_place(int code) {
  const auto others = {SQLITE_OK, SQLITE_ROW, SQLITE_DONE, SQLITE_CORRUPT, SQLITE_NOTADB};
  return std::ranges::find(others, code) == others.end();
}

// Rolls back what was not committed when it goes; SQLite has done so by itself when the disk is
// full.
class Undo {
 public:
  explicit Undo(sqlite3& database) : database_(database) {}
  Undo(const Undo&) = delete;
  ~Undo() {
    if (sqlite3_get_autocommit(&database_) == 0)
      sqlite3_exec(&database_, "ROLLBACK", nullptr, nullptr, nullptr);
  }

 private:
  sqlite3& database_;
};

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

std::string Database::unusable(const Location& location, const Trouble& trouble) {
  const auto* const place = std::get_if<RadosPlace>(&location);
  const std::string where = place != nullptr ? name_of(*place) : std::get<std::string>(location);
  return "cannot use the records of NFSv4 clients in " + where + ": " + trouble.what +
         (trouble.remedy.empty() ? "" : "; " + trouble.remedy);
}

Database::Trouble Database::trouble() const {
  if (handle_ == nullptr) return {"out of memory", "make room"};
  return {sqlite3_errmsg(handle_.get()), remedy_for(sqlite3_errcode(handle_.get()))};
}

std::optional<Database::Trouble> Database::open_at(const Location& location, int flags) {
  if (const auto* const place = std::get_if<RadosPlace>(&location))
    return open_object(*place, flags);
  return open_file(std::get<std::string>(location), flags);
}

std::optional<Database::Trouble> Database::open_file(const std::string& path, int flags) {
  if ((flags & SQLITE_OPEN_CREATE) != 0) create_private(path);
  sqlite3* handle = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &handle,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | flags, nullptr);
  handle_.reset(handle);
  // Others may pass through the directory, to the control socket.
  make_private(path);
  if (opened != SQLITE_OK || sqlite3_busy_timeout(handle, 5000) != SQLITE_OK) return trouble();
  return read_all();
}

std::optional<Database::Trouble> Database::open_object(const RadosPlace& place, int flags) {
  const bool makes = (flags & SQLITE_OPEN_CREATE) != 0;
  if (const auto ready = make_ready(place, makes ? Existing::Maybe : Existing::Wanted); !ready)
    return Trouble{ready.error(), {}};
  sqlite3* handle = nullptr;
  const int opened = sqlite3_open_v2(
      uri_of(place).c_str(), &handle,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | flags, nullptr);
  handle_.reset(handle);
  if (opened != SQLITE_OK || !run(kAlone)) return Trouble{trouble().what, kRemedyInRados};
  auto failed = read_all();
  if (failed && is_of_the_place(sqlite3_errcode(handle) & 0xff)) failed->remedy = kRemedyInRados;
  return failed;
}

std::optional<Database::Trouble> Database::read_all() {
  const std::optional<int> format = read_format();
  if (!format) return trouble();
  if (*format > kFormat)
    return Trouble{"they are of a newer version of stag", "start that version again"};
  const bool ready = run(journal_of(handle_.get())) && run(kSchema) && prepare_all() &&
                     read_former() && read_starts() && read_handles();
  if (!ready) return trouble();
  return std::nullopt;
}

Result<std::unique_ptr<Database>, std::string> Database::open(const Location& location,
                                                              std::uint32_t lease_seconds,
                                                              std::uint64_t handles) {
  std::unique_ptr<Database> made(new Database);
  std::optional<Trouble> trouble = made->open_at(location, SQLITE_OPEN_CREATE);
  if (!trouble)
    trouble = made->transact([&] {
      return made->count_start(lease_seconds) && made->name_server() && made->name_handles(handles);
    });
  if (trouble) return Failure{unusable(location, *trouble)};
  return made;
}

Result<std::unique_ptr<Database>, std::string> Database::open_ended(const Location& location) {
  std::unique_ptr<Database> made(new Database);
  if (const auto trouble = made->open_at(location, 0)) return Failure{unusable(location, *trouble)};
  return made;
}

bool Database::prepare_all() {
  return prepare("INSERT OR REPLACE INTO clients VALUES (?, ?, ?, ?)", add_) &&
         prepare("DELETE FROM clients WHERE client = ?", remove_) &&
         prepare(
             "DELETE FROM clients WHERE client = ? OR"
             " (ownerid = ? AND principal = ? AND epoch < ?)",
             forget_);
}

std::optional<int> Database::read_format() {
  Statement version;
  if (!prepare("PRAGMA user_version", version) || sqlite3_step(version.get()) != SQLITE_ROW)
    return std::nullopt;
  return sqlite3_column_int(version.get(), 0);
}

bool Database::read_former() {
  Statement clients;
  if (!prepare("SELECT DISTINCT ownerid, principal FROM clients", clients)) return false;
  int status = SQLITE_OK;
  while ((status = sqlite3_step(clients.get())) == SQLITE_ROW)
    former_.push_back({text_at(clients.get(), 0), text_at(clients.get(), 1)});
  return status == SQLITE_DONE;
}

Result<std::vector<Database::Record>, std::string> Database::records() {
  Statement clients;
  if (!prepare("SELECT client, epoch, ownerid, principal FROM clients", clients))
    return Failure{trouble().what};
  std::vector<Record> found;
  int status = SQLITE_OK;
  while ((status = sqlite3_step(clients.get())) == SQLITE_ROW)
    found.push_back({static_cast<state::ClientId>(sqlite3_column_int64(clients.get(), 0)),
                     static_cast<std::uint32_t>(sqlite3_column_int64(clients.get(), 1)),
                     {text_at(clients.get(), 2), text_at(clients.get(), 3)}});
  if (status != SQLITE_DONE) return Failure{trouble().what};
  return found;
}

// The last start, and the longest lease of those whose clients there are.
bool Database::read_starts() {
  Statement last;
  if (!prepare("SELECT COALESCE(MAX(epoch), 0), COALESCE(MAX(lease), 0) FROM epochs", last) ||
      sqlite3_step(last.get()) != SQLITE_ROW)
    return false;
  epoch_ = static_cast<std::uint32_t>(sqlite3_column_int64(last.get(), 0));
  if (!former_.empty())
    former_lease_ = static_cast<std::uint32_t>(sqlite3_column_int64(last.get(), 1));
  return true;
}

// Removes the starts that no client record refers to, except the last, whose number counts on.
bool Database::count_start(std::uint32_t lease_seconds) {
  Statement add;
  if (epoch_ == 0) epoch_ = epoch_to_begin_with();
  ++epoch_;
  if (former_.empty() && !run("DELETE FROM epochs")) return false;
  if (!prepare("INSERT INTO epochs VALUES (?, ?)", add)) return false;
  sqlite3_bind_int64(add.get(), 1, epoch_);
  sqlite3_bind_int64(add.get(), 2, lease_seconds);
  return step(add.get());
}

bool Database::name_server() {
  Statement name;
  if (!run("INSERT INTO server SELECT random() WHERE NOT EXISTS (SELECT * FROM server)") ||
      !prepare("SELECT id FROM server", name) || sqlite3_step(name.get()) != SQLITE_ROW)
    return false;
  server_ = static_cast<std::uint64_t>(sqlite3_column_int64(name.get(), 0));
  return true;
}

bool Database::name_handles(std::uint64_t handles) {
  Statement name;
  if (!run("DELETE FROM handles") || !prepare("INSERT INTO handles VALUES (?)", name)) return false;
  sqlite3_bind_int64(name.get(), 1, static_cast<sqlite3_int64>(handles));
  return step(name.get());
}

bool Database::read_handles() {
  Statement name;
  if (!prepare("SELECT id FROM handles", name)) return false;
  const int status = sqlite3_step(name.get());
  if (status == SQLITE_ROW)
    handles_ = static_cast<std::uint64_t>(sqlite3_column_int64(name.get(), 0));
  return status == SQLITE_ROW || status == SQLITE_DONE;
}

bool Database::apply_one(const Change& change) {
  if (change.kind == Change::Kind::Forget) {
    sqlite3_bind_int64(forget_.get(), 1, static_cast<sqlite3_int64>(change.client));
    bind_text(forget_.get(), 2, change.owner.ownerid);
    bind_text(forget_.get(), 3, change.owner.principal);
    sqlite3_bind_int64(forget_.get(), 4, epoch_);
    return step(forget_.get());
  }
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
std::optional<Database::Trouble> Database::transact(Work work) {
  // Also where `work` finds no memory: what is not ended would take in all that is written later.
  const Undo undo(*handle_);
  if (!run("BEGIN IMMEDIATE") || !work()) return trouble();
  in_doubt_ = !run("COMMIT");
  if (in_doubt_) return trouble();
  in_doubt_ = is_in_rados(handle_.get()) && !can_be_read(handle_.get());
  if (in_doubt_)
    return Trouble{"what was written cannot be read: the cluster has shut this server out",
                   kRemedyInRados};
  return std::nullopt;
}

template <class Work>
Result<Ok, std::string> Database::in_transaction(Work work) {
  if (auto trouble = transact(std::move(work))) return Failure{std::move(trouble->what)};
  return Ok{};
}

Result<Ok, std::string> Database::apply(std::span<const Change> changes) {
  return in_transaction([&] {
    for (const Change& change : changes)
      if (!apply_one(change)) return false;
    return true;
  });
}

Result<Ok, std::string> Database::remove_former(const std::set<ClientOwner>& incomplete) {
  std::vector<Change> changes;
  if (!incomplete.empty()) {
    const auto found = records();
    if (!found) return Failure{found.error()};
    for (const Record& each : *found)
      if (incomplete.contains(each.owner)) changes.push_back({Change::Kind::Remove, each.client});
  }
  const std::string epoch = std::to_string(epoch_);
  return in_transaction([&] {
    return run(("DELETE FROM clients WHERE epoch < " + epoch).c_str()) &&
           run(("DELETE FROM epochs WHERE epoch < " + epoch).c_str()) &&
           std::ranges::all_of(changes, [&](const Change& change) { return apply_one(change); });
  });
}

bool Database::adopt_one(sqlite3_int64 row, const ClientOwner& owner) {
  sqlite3_bind_int64(add_.get(), 1, row);
  sqlite3_bind_int64(add_.get(), 2, kEpochOfAdopted);
  bind_text(add_.get(), 3, owner.ownerid);
  bind_text(add_.get(), 4, owner.principal);
  return step(add_.get());
}

// A client that is adopted again has two records, which are read as one.
Result<Ok, std::string> Database::adopt(std::span<const ClientOwner> clients,
                                        std::uint32_t lease_seconds) {
  const std::string epoch = std::to_string(kEpochOfAdopted);
  const std::string lease = std::to_string(lease_seconds);
  return in_transaction([&] {
    Statement last;
    if (!run(("INSERT INTO epochs VALUES (" + epoch + ", " + lease +
              ") ON CONFLICT (epoch) DO UPDATE SET lease = MAX(lease, excluded.lease)")
                 .c_str()) ||
        !prepare(("SELECT COALESCE(MAX(client), 0) FROM clients WHERE epoch = " + epoch).c_str(),
                 last) ||
        sqlite3_step(last.get()) != SQLITE_ROW)
      return false;
    sqlite3_int64 row = sqlite3_column_int64(last.get(), 0);
    last.reset();
    return std::ranges::all_of(clients,
                               [&](const ClientOwner& owner) { return adopt_one(++row, owner); });
  });
}

// Its starts stay: they count on.
Result<Ok, std::string> Database::give_away() {
  return in_transaction([&] { return run("DELETE FROM clients"); });
}

}  // namespace stag::nfs::recovery
