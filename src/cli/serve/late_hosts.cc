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

// A multicast address, which nobody calls from (RFC 4291 2.7); each host has another one, for an
// export has no two rules of one address.
std::optional<IpNetwork> nobody(std::string_view host) {
  const std::uint64_t number = std::hash<std::string_view>()(host);
  return IpNetwork::parse(fmt::format("ff0e::{:x}:{:x}:{:x}:{:x}", number >> 48,
                                      number >> 32 & 0xffff, number >> 16 & 0xffff,
                                      number & 0xffff));
}

void take(HostClient& host, const HostAnswer& answer) {
  if (!answer) {
    host.why = answer.error();
    return;
  }
  host.addresses = *answer;
  std::erase_if(host.addresses, [](const auto& each) { return !IpAddress::parse(each); });
  host.why = host.addresses.empty() ? "it has no IP address" : "";
}

// Null: the rule is not for a host by its name.
const HostClient* host_of(const ExportLine& line, const nfs::ClientRule& rule) {
  const auto host = line.hosts.find(rule.match);
  return host == line.hosts.end() ? nullptr : &host->second;
}

void add_rule(std::vector<nfs::ClientRule>& rules, nfs::ClientRule rule) {
  const auto same = [&](const nfs::ClientRule& each) { return each.same_clients(rule); };
  if (std::ranges::none_of(rules, same)) rules.push_back(std::move(rule));
}

bool is_for_one_host(const nfs::ClientRule& rule) {
  constexpr unsigned kWhole = 128;
  return rule.network && rule.network->prefix() == kWhole;
}

// Nobody acts as more than `least` lets him by a rule for more than one host.
void narrow(std::vector<nfs::ClientRule>& rules, const nfs::ExportOptions& least) {
  std::erase_if(rules, [&](nfs::ClientRule& rule) {
    if (is_for_one_host(rule)) return false;
    nfs::ExportOptions& options = rule.options;
    options.read_only |= least.read_only;
    options.root_squash |= least.root_squash;
    options.all_squash |= least.all_squash;
    options.secure |= least.secure;
    std::erase_if(options.flavors, [&](oncrpc::AuthFlavor flavor) {
      return std::ranges::count(least.flavors, flavor) == 0;
    });
    return options.flavors.empty();
  });
}

}  // namespace

nfs::ClientRule host_rule(const std::string& host, const nfs::ExportOptions& options) {
  nfs::ClientRule rule;
  rule.match = host;
  rule.network = nobody(host);
  rule.options = options;
  return rule;
}

bool has_late(const ExportLine& line) {
  return std::ranges::any_of(line.hosts, [](const auto& each) { return !each.second.why.empty(); });
}

std::vector<std::string> resolve_late(ExportLine& line, const HostLookup& addresses_of) {
  std::vector<std::string> found;
  for (auto& [name, host] : line.hosts) {
    if (host.why.empty()) continue;
    take(host, addresses_of(name));
    if (host.why.empty())
      found.push_back(fmt::format("client '{}': {}", name, fmt::join(host.addresses, ", ")));
  }
  return found;
}

void keep_addresses(ExportLine& line, const ExportLine& before) {
  for (auto& [name, host] : line.hosts) {
    const auto old = before.hosts.find(name);
    if (host.addresses.empty() && old != before.hosts.end()) host.addresses = old->second.addresses;
  }
}

std::vector<nfs::ClientRule> rules_of(const ExportLine& line) {
  std::vector<nfs::ClientRule> rules;
  for (const nfs::ClientRule& written : line.clients) {
    const HostClient* const host = host_of(line, written);
    if (host == nullptr || host->addresses.empty()) {
      add_rule(rules, written);
      continue;
    }
    for (const std::string& address : host->addresses) {
      nfs::ClientRule rule = written;
      rule.network = IpNetwork::parse(address);
      add_rule(rules, std::move(rule));
    }
  }
  for (const nfs::ClientRule& written : line.clients) {
    const HostClient* const host = host_of(line, written);
    if (host != nullptr && host->addresses.empty()) narrow(rules, written.options);
  }
  return rules;
}

std::vector<std::string> unknown_clients(const ExportLine& line) {
  std::vector<std::string> sentences;
  for (const auto& [name, host] : line.hosts) {
    if (host.why.empty()) continue;
    std::string kept;
    if (!host.addresses.empty())
      kept = fmt::format("; it stays {}", fmt::join(host.addresses, ", "));
    sentences.push_back(fmt::format("'{}': {}{}", name, host.why, kept));
  }
  for (const UnknownClient& each : line.unknown)
    sentences.push_back(fmt::format("'{}': {}", each.match, each.why));
  return sentences;
}

// The exports are looked at while nobody changes them.
void LateHosts::arm() {
  timer_ = loop_.after(kAgain, [this] {
    if (reloads_.idle() && exports_.has_late()) reloads_.look();
    arm();
  });
}

}  // namespace stag::cli
