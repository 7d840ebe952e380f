// Database: the client records in SQLite: one row for each client ID that may hold state, with the
// start of the server (epoch) that wrote it. Once a method has returned Ok, its change survives
// SIGKILL and loss of power. It is a file, or in RADOS (rados.h), where no other process has it as
// long as it is open.
//
// Blocking; not synchronised: Recovery is.
#pragma once

#include <sqlite3.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "nfs/recovery/rados.h"
#include "nfs/state/types.h"

namespace stag::nfs::recovery {

// Identifies a client over restarts of both sides (RFC 8881 2.4): co_ownerid, and the principal
// that made the client ID, so that nobody else reclaims its state.
struct ClientOwner {
  std::string ownerid;
  std::string principal;
  friend auto operator<=>(const ClientOwner&, const ClientOwner&) = default;
};

struct Change {
  // Forget: the client, and what earlier starts recorded of its owner.
  enum class Kind : std::uint8_t { Add, Remove, Forget };
  Kind kind = Kind::Add;
  state::ClientId client = 0;
  ClientOwner owner{};  // Add, Forget
  // Add: asked under the lock of the disk, for it may have lost something since it asked, and told
  // there that it is recorded. Null: of nobody who can lose anything.
  state::LifePtr life{};
};

// The path of a file, or a place in RADOS.
using Location = std::variant<std::string, RadosPlace>;

class Database {
 public:
  // Opens or makes the database and counts this start, with its lease and what identifies the key
  // of its file handles. The error is one sentence.
  static Result<std::unique_ptr<Database>, std::string> open(const Location& location,
                                                             std::uint32_t lease_seconds,
                                                             std::uint64_t handles = 0);
  // Opens the database of a server that has ended, and will not begin meanwhile, to adopt its
  // clients: this is no start of that server. epoch() is its last, former() are all of its clients.
  // The error is one sentence.
  static Result<std::unique_ptr<Database>, std::string> open_ended(const Location& location);

  // Of a database that begins it is a random number, so that clients are not taken for those of
  // another server. 0: it has not counted any start.
  std::uint32_t epoch() const { return epoch_; }
  // What tells this server from every other, over its starts.
  std::uint64_t server() const { return server_; }
  // Of open_ended(): the `handles` of its last start; nullopt where it was of a version that did
  // not write it down.
  std::optional<std::uint64_t> handles() const { return handles_; }
  // The longest lease of the starts that wrote former(), in seconds; 0 when former() is empty.
  std::uint32_t former_lease() const { return former_lease_; }
  // The clients of earlier starts, as they were when this one began.
  const std::vector<ClientOwner>& former() const { return former_; }

  struct Record {
    state::ClientId client = 0;
    std::uint32_t epoch = 0;  // of the start that wrote it; 0: an adopted client's
    ClientOwner owner;
  };
  // All that are there now. The error is SQLite's message.
  Result<std::vector<Record>, std::string> records();

  // Applies all changes or none. The error is SQLite's message.
  Result<Ok, std::string> apply(std::span<const Change> changes);
  // Whether a COMMIT has failed, and none has succeeded since: what failed may be on disk all the
  // same.
  bool in_doubt() const { return in_doubt_; }
  // Removes what earlier starts wrote, and of this one the records of `incomplete`.
  Result<Ok, std::string> remove_former(const std::set<ClientOwner>& incomplete = {});
  // Adds clients of another server, all or none: they are gone with remove_former(), else former()
  // of the next start.
  Result<Ok, std::string> adopt(std::span<const ClientOwner> clients, std::uint32_t lease_seconds);
  // Of open_ended(): removes all clients, which are another server's now.
  Result<Ok, std::string> give_away();

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

  Database() = default;
  struct Trouble {
    std::string what;
    std::string remedy;
  };
  static std::string unusable(const Location& location, const Trouble& trouble);
  // Of the last step that failed.
  Trouble trouble() const;
  // nullopt: it is open, and former() is read.
  std::optional<Trouble> open_at(const Location& location, int flags);
  std::optional<Trouble> open_file(const std::string& path, int flags);
  std::optional<Trouble> open_object(const RadosPlace& place, int flags);
  std::optional<Trouble> read_all();
  bool run(const char* text);
  bool prepare(const char* text, Statement& statement);
  bool prepare_all();
  std::optional<int> read_format();
  bool count_start(std::uint32_t lease_seconds);
  bool name_server();
  bool name_handles(std::uint64_t handles);
  bool read_handles();
  bool read_starts();
  bool read_former();
  bool adopt_one(sqlite3_int64 row, const ClientOwner& owner);
  bool apply_one(const Change& change);
  template <class Work>
  std::optional<Trouble> transact(Work work);
  template <class Work>
  Result<Ok, std::string> in_transaction(Work work);

  std::unique_ptr<sqlite3, Close> handle_;
  Statement add_, remove_, forget_;
  std::uint32_t epoch_ = 0;
  std::uint64_t server_ = 0;
  std::optional<std::uint64_t> handles_{};
  std::uint32_t former_lease_ = 0;
  bool in_doubt_ = false;
  std::vector<ClientOwner> former_;
};

}  // namespace stag::nfs::recovery
