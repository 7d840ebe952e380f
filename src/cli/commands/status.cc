#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/commands/ask.h"
#include "cli/commands/status_exports.h"
#include "cli/support/commit.h"
#include "cli/support/escape.h"
#include "cli/support/format.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

// The listings of the server, in the order in which they are shown.
enum Section {
  kServer,
  kLimitsHit,
  kConnections,
  kMounts,
  kClients,
  kStores,
  kSlow,
  kAwaited,
  kSections
};
constexpr std::array<std::string_view, kSections> kCommandOf = {
    "status", "limits", "connections", "mounts", "clients", "stores", "slow", "awaited"};

std::string duration_text(std::uint64_t seconds) {
  const std::uint64_t days = seconds / 86400;
  return fmt::format("{}{:02}:{:02}:{:02}", days == 0 ? "" : fmt::format("{} d ", days),
                     seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
}

std::string size_in(const JsonObject& row, std::string_view key) {
  return human_size(static_cast<double>(number_in(row, key)));
}

void show_grace(const JsonObject& row) {
  const std::uint64_t left = number_in(row, "grace_seconds");
  const std::uint64_t reclaims = number_in(row, "grace_reclaims");
  if (left == 0 && reclaims == 0) return;
  put("grace period: {}, {} clients have reclaimed, {} opens, locks and delegations\n",
      left == 0 ? "over" : fmt::format("{} s left, more while clients reclaim", left),
      number_in(row, "grace_clients"), reclaims);
}

// Of many the server names some.
void show_awaited(const JsonObject& server, const std::vector<JsonObject>& rows) {
  const std::uint64_t all = number_in(server, "grace_awaited");
  if (all == 0) return;
  put("awaited, of version 4: {}{}\n", all,
      rows.size() < all ? fmt::format(", {} of them here", rows.size()) : "");
  for (const JsonObject& row : rows)
    put("  {:<10} {:<40} {}\n", text_in(row, "state"), text_in(row, "address"),
        text_in(row, row.has("name_bytes") ? "name_bytes" : "name"));
}

void show_settings(const JsonObject& row) {
  if (const std::string error = row.text("last_reload_error").value_or(""); !error.empty())
    put("the last reload failed: {}\n", escaped(error));
  const std::vector<std::string> settings = row.texts("settings_awaiting_restart");
  if (!settings.empty())
    put("settings that take effect when the server is started again: {}\n",
        fmt::join(settings, ", "));
}

void show_server(const JsonObject& row) {
  put("stag {}, up {}, {} resident, {} open files\n",
      build_name(text_in(row, "version"), escaped(row.text("commit").value_or(""))),
      duration_text(number_in(row, "uptime")), size_in(row, "memory_bytes"),
      number_in(row, "open_files"));
  put("calls: {}, with errors {}, slow {}\n", number_in(row, "calls"), number_in(row, "errors"),
      number_in(row, "slow_calls"));
  put("clients: {} addresses with {} connections, {} mounts by versions 2 and 3 (version 4 "
      "announces none)\n",
      number_in(row, "addresses"), number_in(row, "connections"), number_in(row, "mounts"));
  put("version 4: {} clients, {} sessions, {} opens, {} delegations; {} locks in all, {} security "
      "contexts\n",
      number_in(row, "nfs4_clients"), number_in(row, "sessions"), number_in(row, "opens"),
      number_in(row, "delegations"), number_in(row, "locks"), number_in(row, "gss_contexts"));
  show_grace(row);
  show_settings(row);
}

void show_limits(const std::vector<JsonObject>& rows) {
  if (rows.empty()) put("troubles: none\n");
  for (const JsonObject& row : rows)
    put("trouble: {} times {}: {}\n", number_in(row, "count"), text_in(row, "reason"),
        text_in(row, "text"));
}

void show_connections(const std::vector<JsonObject>& rows) {
  constexpr std::string_view kLine = "{:<40} {:<9} {:>14} {:>6} {:>12} {:>8} {:>10} {:>10} {:>7}\n";
  if (rows.empty()) return;
  put("\n");
  write_out(fmt::format(fmt::runtime(kLine), "CLIENT", "TRANSPORT", "AGE", "IDLE", "CALLS",
                        "ERRORS", "IN", "OUT", "CREDITS"));
  for (const JsonObject& row : rows)
    write_out(fmt::format(fmt::runtime(kLine),
                          text_in(row, "address") + " " + std::to_string(number_in(row, "port")),
                          text_in(row, "transport"), duration_text(number_in(row, "age")),
                          number_in(row, "idle"), number_in(row, "calls"), number_in(row, "errors"),
                          size_in(row, "bytes_in"), size_in(row, "bytes_out"),
                          row.has("credits") ? std::to_string(number_in(row, "credits")) : "-"));
}

void show_mounts(const std::vector<JsonObject>& rows) {
  if (rows.empty()) return;
  put("\n{:<40} {}\n", "MOUNTED BY", "EXPORT");
  for (const JsonObject& row : rows)
    put("{:<40} {}\n", text_in(row, "address"), text_in(row, "export"));
}

// Hosts with locks by NLM are among them.
void show_clients(const std::vector<JsonObject>& rows) {
  constexpr std::string_view kLine = "{:<40} {:<4} {:<11} {:>6} {:>6} {:>6} {:>6} {}\n";
  if (rows.empty()) return;
  put("\n");
  write_out(fmt::format(fmt::runtime(kLine), "CLIENT OF VERSION 4, OR NLM", "VERS", "STATE", "IDLE",
                        "OPENS", "LOCKS", "DELEGS", "NAME"));
  for (const JsonObject& row : rows)
    write_out(fmt::format(fmt::runtime(kLine), text_in(row, "address"), text_in(row, "version"),
                          text_in(row, "state"), number_in(row, "idle"), number_in(row, "opens"),
                          number_in(row, "locks"), number_in(row, "delegations"),
                          text_in(row, row.has("name_bytes") ? "name_bytes" : "name")));
}

void show_stores(const std::vector<JsonObject>& rows) {
  constexpr std::string_view kLine = "{:<40} {:>8} {:>8} {:>8} {:>8} {:>10}\n";
  if (rows.empty()) return;
  put("\n");
  write_out(fmt::format(fmt::runtime(kLine), "STORE", "RUNNING", "WAITING", "SYNCING", "WAITING",
                        "OLDEST ms"));
  for (const JsonObject& row : rows)
    write_out(fmt::format(fmt::runtime(kLine), text_in(row, "store"), number_in(row, "running"),
                          number_in(row, "waiting"), number_in(row, "sync_running"),
                          number_in(row, "sync_waiting"), number_in(row, "oldest_milliseconds")));
}

void show_slow(const std::vector<JsonObject>& rows) {
  constexpr std::string_view kLine = "{:<19} {:>10} {:<28} {:<10} {:<24} {:<20} {}\n";
  if (rows.empty()) return;
  put("\n");
  write_out(fmt::format(fmt::runtime(kLine), "SLOW CALL ENDED", "SECONDS", "CLIENT", "XID", "CALL",
                        "STATUS", "EXPORT"));
  for (const JsonObject& row : rows)
    write_out(fmt::format(
        fmt::runtime(kLine), time_text({static_cast<std::int64_t>(number_in(row, "ended")), 0}),
        fmt::format("{:.3f}", static_cast<double>(number_in(row, "microseconds")) / 1e6),
        text_in(row, "client"), text_in(row, "xid"), text_in(row, "call"), text_in(row, "status"),
        text_in(row, "export")));
}

bool waits_for_none(const ServerListing& server) {
  return server.rows.empty() || number_in(server.rows[0], "grace_awaited") == 0;
}

class Status final : public Command {
 public:
  About about() const override {
    return {
        "status", "what a running server serves, and whether all is well",
        "  stag status\n"
        "  stag status --json | jq .limits\n"
        "  stag status exports\n"
        "  stag status exports --for build.example.org\n",
        "It shows connections, mounts by versions 2 and 3, clients of version 4 (which announces\n"
        "no mounts) and hosts with locks by NLM, the queues of the stores, the limits that were\n"
        "hit and the calls that took longer than --slow-call of 'stag serve'; in a grace period\n"
        "also the clients of version 4 that are awaited: 'away', 'back', or 'reclaiming' ('stag\n"
        "clients end-grace' waits no longer). 'stag clients' says more of clients.\n"
        "\nWith 'exports' it shows the exports that are in effect, as 'exportfs -v' does: the\n"
        "folder of each, the clients that may mount it ('*' is everybody, a host has the\n"
        "addresses that are known of it), and all options of each client. With --for HOST it\n"
        "shows what that one host gets of each export, by which client, and where that is\n"
        "written. Over TCP 'secure' wants a port below 1024, whoever asks.\n"
        "\nIt is asked at the server's control socket, as root or as the user of the server.\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("--json", json_, "one object");
    arguments.text("--for", host_, "HOST", "of exports: what this host, or address, gets");
    server_.declare(arguments);
    arguments.positional_choice("WHAT", what_, {"all", "exports"},
                                "what to show: that all is well, or the exports [all]", false);
  }
  Exit run() override {
    const bool exports = what_ == "exports";
    if (!exports && host_) return misused("--for is for 'stag status exports'");
    if (host_) {
      auto found = addresses_to_ask_for(*host_);
      if (!found) return failed("--for: " + found.error());
      addresses_ = *std::move(found);
    }
    return on_loop([this, exports](Run& run) { return exports ? list_exports(run) : work(run); });
  }

 private:
  Task<Exit> work(Run& run);
  Task<Exit> list_exports(Run& run);

  std::string what_ = "all";
  std::optional<std::string> host_;
  std::vector<std::string> addresses_;  // of the host
  AskedServer server_;
  bool json_ = false;
};

Task<Exit> Status::list_exports(Run& run) {
  const std::string error = co_await show_exports(run, server_, addresses_, json_);
  co_return error.empty() ? Exit::Done : failed(error);
}

Task<Exit> Status::work(Run& run) {
  std::array<ServerListing, kSections> sections;
  for (std::size_t i = 0; i < kSections; ++i) {
    // An older server does not know that.
    if (i == kAwaited && waits_for_none(sections[kServer])) continue;
    sections[i] = co_await server_.list(run, kCommandOf[i]);
    if (!sections[i].error.empty()) co_return failed(sections[i].error);
  }
  if (sections[kServer].rows.size() != 1)
    co_return failed("the answer is not that of a stag server");
  if (json_) {
    put("{{\"server\":{}", sections[kServer].lines[0]);
    for (std::size_t i = kServer + 1; i < kSections; ++i)
      put(",\"{}\":{}", kCommandOf[i], sections[i].json());
    put("}}\n");
    co_return Exit::Done;
  }
  show_server(sections[kServer].rows[0]);
  show_awaited(sections[kServer].rows[0], sections[kAwaited].rows);
  show_limits(sections[kLimitsHit].rows);
  show_connections(sections[kConnections].rows);
  show_mounts(sections[kMounts].rows);
  show_clients(sections[kClients].rows);
  show_stores(sections[kStores].rows);
  show_slow(sections[kSlow].rows);
  co_return Exit::Done;
}

}  // namespace

std::unique_ptr<Command> make_status() {
  return std::make_unique<Status>();
}

}  // namespace stag::cli
