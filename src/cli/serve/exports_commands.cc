#include "cli/serve/exports_commands.h"

#include <algorithm>
#include <chrono>

namespace stag::cli {
namespace {

// Of an export that is served and is not among `all` there is no more than its path: the next ones
// are about to be shown.
ShownExport shown_of(const nfs::Export& served, const std::vector<ShownExport>& all) {
  const auto found = std::ranges::find(all, served.path(), &ShownExport::path);
  if (found != all.end()) return *found;
  ShownExport shown;
  shown.path = served.path();
  return shown;
}

Json row_of(const ShownExport& shown) {
  Json row;
  row.set_bytes("export", shown.path).set_bytes("store", shown.store);
  if (!shown.options.empty()) row.set_bytes("export_options", shown.options);
  row.set_bytes("where", shown.where);
  return row;
}

void set_options(Json& row, const nfs::ExportOptions& options) {
  Json flavors = Json::array();
  for (const oncrpc::AuthFlavor flavor : options.flavors) flavors.add(nfs::flavor_name(flavor));
  row.set("options", words_of(options)).set("flavors", std::move(flavors));
}

// The addresses of a client that is a host by its name, and why they are not known, if they are
// not.
void set_client(Json& row, const std::string& match, const ShownExport& shown) {
  row.set_bytes("client", match);
  const auto host = shown.hosts.find(match);
  if (host == shown.hosts.end()) return;
  Json addresses = Json::array();
  for (const std::string& each : host->second.addresses) addresses.add(each);
  row.set("addresses", std::move(addresses));
  if (!host->second.why.empty()) row.set("unknown", host->second.why);
}

}  // namespace

void ExportsCommands::list_all(ControlReply& reply) const {
  const ShownExports all = exports_.shown();
  const auto exports = nfs_.exports();
  for (const nfs::Export& each : exports->all()) {
    const ShownExport shown = shown_of(each, *all);
    const auto add = [&](const std::string& match, const nfs::ExportOptions& options) {
      Json row = row_of(shown);
      set_client(row, match, shown);
      set_options(row, options);
      reply.add(row);
    };
    if (each.spec.clients.empty()) add("*", each.spec.options);
    const std::string* before = nullptr;
    for (const nfs::ClientRule& rule : each.spec.clients) {
      // A host has a rule for each of its addresses.
      if (before == nullptr || *before != rule.match) add(rule.match, rule.options);
      before = &rule.match;
    }
  }
}

Task<void> ExportsCommands::list_for(std::string address, ControlReply& reply) const {
  constexpr Duration kPatience = std::chrono::seconds(3);  // for its name
  const TimePoint until = reply.loop().now() + kPatience;
  rpc::Origin origin;
  origin.peer.host = address;
  origin.loop = &reply.loop();
  const ShownExports all = exports_.shown();
  const auto exports = nfs_.exports();
  for (const nfs::Export& each : exports->all()) {
    const Duration left = until - reply.loop().now();
    if (left > Duration::zero()) co_await each.settle(origin, left);
    const nfs::Export::RuleFound found = each.rule_for(origin);
    const ShownExport shown = shown_of(each, *all);
    Json row = row_of(shown);
    row.set("address", address);
    if (found.undecided) row.set("undecided", true);
    if (found.rule != nullptr) {
      set_client(row, found.rule->match, shown);
      set_options(row, found.rule->options);
    } else if (each.spec.clients.empty()) {
      set_client(row, "*", shown);
      set_options(row, each.spec.options);
    }
    reply.add(row);
  }
}

Task<std::string> ExportsCommands::list(const ControlRequest& request, ControlReply& reply) const {
  if (!request.members.has("address")) {
    list_all(reply);
    co_return std::string();
  }
  const auto address = request.members.text("address");
  if (!address || !IpAddress::parse(*address))
    co_return "'address' is no address: '" + address.value_or("") + "'";
  co_await list_for(*address, reply);
  co_return std::string();
}

void ExportsCommands::add_to(ControlCommands& commands) const {
  commands["exports"] = [this](const ControlRequest& request, ControlReply& reply,
                               const ControlPeer&) { return list(request, reply); };
}

}  // namespace stag::cli
