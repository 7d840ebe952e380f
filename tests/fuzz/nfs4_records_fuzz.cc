// The records of clients as SQLite gives them back: rows of any type and length, and files in which
// bytes were changed. What opens works: who is read may reclaim, and the next start finds the same.
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/check.h"
#include "input.h"
#include "nfs/recovery/recovery.h"

using namespace stag;
using nfs::recovery::Recovery;

namespace {

std::string path() {
  static const std::string folder = "/dev/shm/stag-records-fuzz-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  return folder + "/db";
}

void remove_files() {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"})
    std::filesystem::remove(path() + suffix);
}

// The file of a start with two clients, made once.
const std::string& template_file() {
  static const std::string bytes = [] {
    remove_files();
    {
      const auto first = Recovery::open(path(), 90, nullptr);
      STAG_CHECK(first.ok());
      using nfs::recovery::Change;
      STAG_CHECK((*first)->write({Change::Kind::Add, 7, {"anna", "1:0"}}));
      STAG_CHECK((*first)->write({Change::Kind::Add, 8, {"SETCLIENTID:bert", "1:0"}}));
    }
    std::ifstream file(path(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return bytes;
}

void write_file(const std::string& bytes) {
  remove_files();
  std::ofstream(path(), std::ios::binary) << bytes;
}

void bind(sqlite3_stmt* statement, int at, fuzz::Input& input) {
  const std::uint8_t kind = input.octet() % 5;
  const Bytes bytes = input.take(kind < 2 ? input.octet() : 8);
  const auto size = static_cast<int>(bytes.size());
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  std::int64_t number = 0;
  std::copy_n(bytes.begin(), std::min(bytes.size(), sizeof(number)),
              reinterpret_cast<std::byte*>(&number));
  if (kind == 0) sqlite3_bind_blob(statement, at, text, size, SQLITE_TRANSIENT);
  if (kind == 1) sqlite3_bind_text(statement, at, text, size, SQLITE_TRANSIENT);
  if (kind == 2) sqlite3_bind_int64(statement, at, number);
  if (kind == 3) sqlite3_bind_double(statement, at, static_cast<double>(number));
}

void add_rows(fuzz::Input& input) {
  write_file(template_file());
  sqlite3* database = nullptr;
  STAG_CHECK(sqlite3_open(path().c_str(), &database) == SQLITE_OK);
  constexpr const char* kInserts[] = {"INSERT OR REPLACE INTO clients VALUES (?, ?, ?, ?)",
                                      "INSERT OR REPLACE INTO epochs VALUES (?, ?)"};
  for (int rows = 0; !input.empty() && rows < 8; ++rows) {
    sqlite3_stmt* statement = nullptr;
    const bool clients = input.octet() % 2 == 0;
    STAG_CHECK(sqlite3_prepare_v2(database, kInserts[clients ? 0 : 1], -1, &statement, nullptr) ==
               SQLITE_OK);
    for (int at = 1; at <= (clients ? 4 : 2); ++at) bind(statement, at, input);
    sqlite3_step(statement);  // Not everything may stand everywhere.
    sqlite3_finalize(statement);
  }
  sqlite3_close(database);
}

void change_bytes(fuzz::Input& input) {
  std::string bytes = template_file();
  while (!input.empty()) {
    const std::size_t at = std::size_t{input.octet()} << 8 | input.octet();
    bytes[at % bytes.size()] = static_cast<char>(input.octet());
  }
  write_file(bytes);
}

void start_twice() {
  std::vector<nfs::recovery::ClientOwner> former;
  {
    const auto opened = Recovery::open(path(), 90, nullptr);
    if (!opened) {
      STAG_CHECK(!opened.error().empty());
      return;
    }
    nfs::state::GracePeriod period;
    (*opened)->begin_grace(period, TimePoint() + std::chrono::hours(1));
    STAG_CHECK(period.active() == (*opened)->anybody_left());
    (*opened)->write({nfs::recovery::Change::Kind::Add, 9, {"carl", "1:0"}});
    if (!(*opened)->remove_former()) return;
  }
  (void)Recovery::open(path(), 90, nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  if (input.octet() % 2 == 0)
    add_rows(input);
  else
    change_bytes(input);
  start_twice();
  remove_files();
  return 0;
}
