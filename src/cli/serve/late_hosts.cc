#include "cli/serve/late_hosts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>

#include "cli/serve/export_set.h"

namespace stag::cli {
namespace {

constexpr Duration kAgain = std::chrono::seconds(10);

// What else has this address: the rule that goes first stays.
void add_rule(std::vector<nfs::ClientRule>& rules, nfs::ClientRule rule) {
  const auto same = std::ranges::find_if(
      rules, [&](const nfs::ClientRule& each) { return each.same_clients(rule); });
  if (same == rules.end())
    rules.push_back(std::move(rule));
  else if (rule.rank < same->rank)
    *same = std::move(rule);
}

// A multicast address, which nobody calls from (RFC 4291 2.7); each host has another one, for an
// export has no two rules of one address.
std::optional<IpNetwork> nobody(std::string_view host) {
  const std::uint64_t number = std::hash<std::string_view>()(host);
  return IpNetwork::parse(fmt::format("ff0e::{:x}:{:x}:{:x}:{:x}", number >> 48,
                                      number >> 32 & 0xffff, number >> 16 & 0xffff,
                                      number & 0xffff));
}

}  // namespace

nfs::ClientRule late_rule(const std::string& host, const nfs::ExportOptions& options) {
  nfs::ClientRule rule;
  rule.match = host;
  rule.network = nobody(host);
  rule.options = options;
  return rule;
}

bool is_late(const nfs::ClientRule& rule) {
  return rule.network && rule.network == nobody(rule.match);
}

bool has_late(const ExportLine& line) {
  return std::ranges::any_of(line.clients, is_late);
}

std::vector<std::string> resolve_late(ExportLine& line, const HostLookup& addresses_of) {
  std::vector<std::string> found;
  std::vector<nfs::ClientRule> rules, fresh;
  for (nfs::ClientRule& rule : line.clients) {
    std::optional<Result<std::vector<std::string>, std::string>> asked;
    if (is_late(rule)) asked = addresses_of(rule.match);
    if (!asked || !*asked) {
      rules.push_back(std::move(rule));
      continue;
    }
    const std::vector<std::string>& addresses = **asked;
    found.push_back(fmt::format("client '{}': {}", rule.match, fmt::join(addresses, ", ")));
    std::erase_if(line.unknown, [&](const auto& each) { return each.match == rule.match; });
    for (const std::string& address : addresses) {
      auto made = nfs::make_client_rule(address, rule.options);
      if (!made) continue;
      made->match = rule.match;
      made->rank = rule.rank;
      fresh.push_back(*std::move(made));
    }
  }
  for (nfs::ClientRule& rule : fresh) add_rule(rules, std::move(rule));
  line.clients = std::move(rules);
  return found;
}

// The exports are looked at while nobody changes them.
void LateHosts::arm() {
  timer_ = loop_.after(kAgain, [this] {
    if (reloads_.idle() && exports_.has_late()) reloads_.look();
    arm();
  });
}

}  // namespace stag::cli
