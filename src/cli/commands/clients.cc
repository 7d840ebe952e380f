#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/commands/ask.h"
#include "cli/serve/records_place.h"
#include "cli/support/arguments.h"
#include "cli/support/escape.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

std::string text(const JsonObject& row, std::string_view key) {
  return row.text(key).value_or("-");
}
std::string number(const JsonObject& row, std::string_view key) {
  const auto found = row.number(key);
  return found ? std::to_string(*found) : "-";
}
// Bytes of a peer: never as they are.
std::string name(const JsonObject& row, std::string_view key) {
  return escaped(text(row, key));
}

// One that was removed has its former path.
std::string export_name(const JsonObject& row) {
  return name(row, "export") + (row.is_true("removed") ? " (removed)" : "");
}

// Bytes as the server takes them, for arguments too: percent-encoded where they are not printable.
std::string client(const JsonObject& row) {
  const std::string bytes = row.bytes("client").value_or("-");
  return is_printable(bytes) ? bytes : percent_encoded(bytes);
}
// Either form leaves the longest name of a host within the 4 KiB of a request: a byte takes three
// at most.
void set_argument(Json& json, const std::string& key, const std::string& bytes) {
  if (is_printable(bytes))
    json.set(key, bytes);
  else
    json.set(key + "_bytes", percent_encoded(bytes));
}

// Of the name of a lock by NLM; a stateid has 24.
constexpr std::size_t kLockDigits = 16;

constexpr std::string_view kClientLine =
    "{:<20} {:<15} {:<4} {:<11} {:>5} {:>6} {:>6} {:>6} {:>5} {:<8} {}";
constexpr std::string_view kOpenLine = "{:<20} {:<24} {:<6} {:<4} {:<16} {:<32} {}";
constexpr std::string_view kLockLine = "{:<20} {:<24} {:<6} {:>12} {:>12} {:<16} {:<32} {}";
constexpr std::string_view kDelegationLine = "{:<20} {:<24} {:<6} {:<9} {:<16} {}";

std::string client_line(const JsonObject& row) {
  return fmt::format(kClientLine, client(row), text(row, "address"), text(row, "version"),
                     text(row, "state"), number(row, "idle"), number(row, "opens"),
                     number(row, "locks"), number(row, "delegations"), number(row, "sessions"),
                     text(row, "callbacks"), name(row, "name"));
}
std::string open_line(const JsonObject& row) {
  const bool revoked = row.is_true("revoked");
  return fmt::format(kOpenLine, client(row), text(row, "stateid"),
                     revoked ? "gone" : text(row, "access"), text(row, "deny"), export_name(row),
                     text(row, "file"), name(row, "owner"));
}
// A lock by NLM has a name of its own, which is shorter.
std::string lock_line(const JsonObject& row) {
  const bool revoked = row.is_true("revoked");
  const bool to_end = row.number("first") && !row.number("last");
  return fmt::format(kLockLine, client(row), text(row, row.has("lock") ? "lock" : "stateid"),
                     revoked ? "gone" : text(row, "mode"), number(row, "first"),
                     to_end ? "end" : number(row, "last"), export_name(row), text(row, "file"),
                     name(row, "owner"));
}
std::string delegation_line(const JsonObject& row) {
  const bool recalled = row.is_true("recalled"), revoked = row.is_true("revoked");
  return fmt::format(kDelegationLine, client(row), text(row, "stateid"), text(row, "mode"),
                     revoked    ? "gone"
                     : recalled ? "recalled"
                                : "held",
                     export_name(row), text(row, "file"));
}

std::string header_of(std::string_view what) {
  if (what == "opens")
    return fmt::format(kOpenLine, "CLIENT", "STATEID", "ACCESS", "DENY", "EXPORT", "FILE", "OWNER");
  if (what == "locks")
    return fmt::format(kLockLine, "CLIENT", "STATEID", "MODE", "FIRST", "LAST", "EXPORT", "FILE",
                       "OWNER");
  if (what == "delegations")
    return fmt::format(kDelegationLine, "CLIENT", "STATEID", "MODE", "STATE", "EXPORT", "FILE");
  return fmt::format(kClientLine, "CLIENT", "ADDRESS", "VERS", "STATE", "IDLE", "OPENS", "LOCKS",
                     "DELEGS", "SESS", "CALLBACK", "NAME");
}

std::string adopted_line(const JsonObject& row) {
  std::string line = row.number("adopted") == 0
                         ? "There are no clients to be adopted."
                         : fmt::format("{} adopted; they may reclaim for {} s.",
                                       number(row, "adopted"), number(row, "grace"));
  if (row.is_true("unrecorded"))
    line +=
        " No clients of version 4 are recorded there: if the lost gateway had --records, adopt "
        "them there, too.";
  return line;
}

std::string line_of(std::string_view what, const JsonObject& row) {
  if (what == "end-grace")
    return fmt::format("The grace period is over; {} clients were awaited still.",
                       number(row, "cut_off"));
  if (what == "adopt") return adopted_line(row);
  if (what == "revoke") return fmt::format("{} revoked.", number(row, "revoked"));
  if (what == "opens") return open_line(row);
  if (what == "locks") return lock_line(row);
  if (what == "delegations") return delegation_line(row);
  return client_line(row);
}

class Clients final : public Command {
 public:
  About about() const override;
  void declare(Arguments& arguments) override;
  Exit run() override;

 private:
  bool adopts() const { return what_ == "adopt"; }
  bool ends_grace() const { return what_ == "end-grace"; }
  bool names_one() const { return what_ == "expire" || what_ == "revoke" || adopts(); }
  bool changes() const { return names_one() || ends_grace(); }
  Json request() const;
  Task<Exit> work(Run& run);

  std::string what_ = "list";
  std::string target_;
  std::string client_;
  std::string export_;
  AskedServer server_;
  bool json_ = false;
};

About Clients::about() const {
  return {"clients", "list and end clients of a running server, and what they hold",
          "  stag clients list\n"
          "  stag clients opens --client 6442450945\n"
          "  stag clients expire 6442450945\n"
          "  stag clients revoke 5f3a00010000004000000001\n"
          "  stag clients revoke --export /data\n"
          "  stag clients adopt /srv/gateways/a\n"
          "  stag clients adopt ceph:nfs/a\n"
          "  stag clients end-grace\n",
          "WHAT is one of:\n"
          "  list             the clients of NFS version 4, and hosts with locks by NLM\n"
          "                   (ADDRESS/NAME; as in a URL where it is not printable) [the\n"
          "                   default]\n"
          "  opens, locks, delegations\n"
          "                   what they hold; --client for those of one\n"
          "  expire CLIENT    end a client: what it holds is free at once\n"
          "  revoke ID        take away one open, lock or delegation, by its stateid; a lock by\n"
          "                   NLM by the 16 digits in its place (its host is not told); with\n"
          "                   --export PATH in place of ID all of an export that was removed, so\n"
          "                   that its disk can be unmounted\n"
          "  adopt DIR        take over the clients of another gateway of the same file system\n"
          "                   that is lost, by its state directory, or as its --records says\n"
          "                   (ceph:POOL/NAMESPACE), before its address is moved here: they\n"
          "                   reclaim their opens and locks, and nobody gets new ones until they\n"
          "                   have, or their time is over (--grace, --lease of serve)\n"
          "  end-grace        end the grace period after a restart or 'adopt' now, because those\n"
          "                   whom 'stag status' shows to be away do not come back: they reclaim\n"
          "                   nothing any more, and others get what they had\n"
          "\nA client is 'confirmed', 'unconfirmed', or 'courtesy': its lease has run out, and it\n"
          "keeps what it holds until somebody wants it. IDLE is the time in seconds since it\n"
          "renewed its lease. CALLBACK says whether the server can call it: up, down, unknown\n"
          "(not tried), none (it did not say how) or fault (it does not understand).\n"
          "A file is shown as its export and the file handle within; of an export that was\n"
          "removed it is the former path. It is asked at the server's control socket, as root\n"
          "or as the user of the server.\n"};
}

void Clients::declare(Arguments& arguments) {
  arguments.text("--client", client_, "CLIENT", "only what this client holds");
  arguments.text("--export", export_, "PATH", "of revoke: all that is held of this removed export");
  arguments.flag("--json", json_, "an object per line");
  server_.declare(arguments);
  arguments.positional_choice(
      "WHAT", what_,
      {"list", "opens", "locks", "delegations", "expire", "revoke", "adopt", "end-grace"},
      "what to list, or what to do", false);
  arguments.positional(
      "ID", target_, "client, stateid, or directory or place, of expire, revoke and adopt", false);
}

Exit Clients::run() {
  if (!export_.empty() && (what_ != "revoke" || !target_.empty()))
    return misused("--export is for revoke, and stands in place of the ID");
  if (export_.empty() && ends_grace() && !target_.empty())
    return misused("end-grace takes no ID: a grace period is that of all exports");
  if (export_.empty() && names_one() != !target_.empty())
    return misused(
        names_one()
            ? fmt::format("{} {}", what_,
                          adopts()
                              ? "whose clients? It wants a state directory, or ceph:POOL/NAMESPACE"
                              : "whom or what? 'stag clients' shows which there are")
            : fmt::format("{} takes no '{}'; --client {} names a client", what_, target_, target_));
  if (changes() && !client_.empty()) return misused("--client is for listings");
  std::error_code ignored;
  if (adopts() && !is_records_place(target_))
    target_ = std::filesystem::absolute(target_, ignored).string();
  return on_loop([this](Run& run) { return work(run); });
}

Json Clients::request() const {
  Json json;
  json.set("command", what_ == "list" ? "clients" : what_);
  if (!export_.empty())
    set_argument(json, "export", export_);
  else if (what_ == "revoke")
    json.set(target_.size() == kLockDigits ? "lock" : "stateid", target_);
  else if (adopts())
    set_argument(json, "directory", target_);
  else if (what_ == "expire")
    set_argument(json, "client", target_);
  else if (!client_.empty())
    set_argument(json, "client", client_);
  return json;
}

Task<Exit> Clients::work(Run& run) {
  bool begun = json_ || changes();
  const auto begin = [&] {
    if (!std::exchange(begun, true)) put("{}\n", header_of(what_));
  };
  ControlPatience patience =
      changes() ? server_.patience_for_change() : server_.patience_for_listing();
  // The lost gateway's directory or cluster may take its time, and once the server has adopted,
  // the clients' time to reclaim runs: the program that moves their address has to be told then.
  if (adopts()) patience.answer = std::chrono::hours(24 * 365);
  const auto show = [&](const JsonObject& row, std::string_view line) {
    begin();
    put("{}\n", json_ ? std::string(line) : line_of(what_, row));
  };
  const std::string error = co_await ask_server(run, server_.path(), request(), show, patience);
  if (!error.empty()) co_return failed(error);
  begin();
  co_return Exit::Done;
}

}  // namespace

std::unique_ptr<Command> make_clients() {
  return std::make_unique<Clients>();
}

}  // namespace stag::cli
