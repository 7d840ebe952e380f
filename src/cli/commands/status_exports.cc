#include "cli/commands/status_exports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/network.h"
#include "cli/serve/host_lookup.h"
#include "cli/support/escape.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

std::string name_in(const JsonObject& row, std::string_view key) {
  const std::string bytes = row.bytes(key).value_or("");
  return bytes.empty() ? "-" : escaped(bytes);
}

// A host by its name with its addresses.
std::string client_in(const JsonObject& row) {
  const std::vector<std::string> addresses = row.texts("addresses");
  if (!row.has("addresses")) return name_in(row, "client");
  return fmt::format("{} ({})", name_in(row, "client"),
                     addresses.empty() ? "unknown" : fmt::format("{}", fmt::join(addresses, ", ")));
}

std::string options_in(const JsonObject& row) {
  if (row.is_true("undecided")) return "not known: the name service does not answer";
  if (!row.has("options")) return "not open to it";
  const std::string of_export = row.bytes("export_options").value_or("");
  return text_in(row, "options") + (of_export.empty() ? "" : "," + escaped(of_export));
}

void show(const ServerListing& listing) {
  constexpr std::string_view kLine = "{:<20} {:<24} {:<32} {}\n";
  write_out(fmt::format(fmt::runtime(kLine), "EXPORT", "STORE", "CLIENT", "OPTIONS"));
  for (const JsonObject& row : listing.rows)
    write_out(fmt::format(fmt::runtime(kLine), name_in(row, "export"), name_in(row, "store"),
                          client_in(row), options_in(row)));
}

void show_for(const ServerListing& listing) {
  constexpr std::string_view kLine = "{:<24} {:<20} {:<32} {:<32} {}\n";
  for (const JsonObject& row : listing.rows)
    write_out(fmt::format(fmt::runtime(kLine), text_in(row, "address"), name_in(row, "export"),
                          client_in(row), name_in(row, "where"), options_in(row)));
}

void head_for() {
  write_out(fmt::format("{:<24} {:<20} {:<32} {:<32} {}\n", "ADDRESS", "EXPORT", "BY CLIENT", "OF",
                        "OPTIONS"));
}

}  // namespace

Result<std::vector<std::string>, std::string> addresses_to_ask_for(const std::string& host) {
  if (IpAddress::parse(host)) return std::vector<std::string>{host};
  if (!is_host_name(host))
    return Failure{fmt::format("'{}' is neither an address nor the name of a host", host)};
  return system_addresses_of(host);
}

Task<std::string> show_exports(Run& run, AskedServer& server,
                               const std::vector<std::string>& addresses, bool json) {
  std::vector<ServerListing> listings;
  const std::size_t asked = std::max<std::size_t>(addresses.size(), 1);
  for (std::size_t i = 0; i < asked; ++i) {
    Json request;
    request.set("command", "exports");
    if (!addresses.empty()) request.set("address", addresses[i]);
    ServerListing listing = co_await server.list(run, std::move(request));
    if (!listing.error.empty()) co_return listing.error;
    listings.push_back(std::move(listing));
  }
  if (json) {
    ServerListing all;
    for (ServerListing& each : listings)
      all.lines.insert(all.lines.end(), each.lines.begin(), each.lines.end());
    put("{{\"exports\":{}}}\n", all.json());
    co_return std::string();
  }
  if (!addresses.empty()) head_for();
  for (const ServerListing& each : listings)
    if (addresses.empty())
      show(each);
    else
      show_for(each);
  co_return std::string();
}

}  // namespace stag::cli
