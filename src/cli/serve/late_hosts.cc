#include "cli/serve/late_hosts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>

namespace stag::cli {
namespace {

constexpr Duration kAgain = std::chrono::seconds(10);
constexpr Duration kListen = std::chrono::milliseconds(500);
// Longer than a resolver tries the first two of its servers.
constexpr Duration kHostPatience = std::chrono::seconds(15);

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

// The host may act as any user that it names, but for root where that is squashed.
bool acts_as_anybody(const nfs::ExportOptions& host) {
  return !host.all_squash && std::ranges::count(host.flavors, oncrpc::AuthFlavor::AUTH_SYS) != 0;
}
// An anonymous id that the host would not have is nobody's. Nor is it the host's: other callers
// would have what is the host's alone.
void narrow_id(std::uint32_t& id, std::uint32_t of_host, const nfs::ExportOptions& host) {
  const bool may_be_his = acts_as_anybody(host) && (id != 0 || !host.root_squash);
  if (id != of_host && !may_be_his) id = nfs::ExportOptions().anonymous_uid;
}

void narrow(nfs::ExportOptions& options, const nfs::ExportOptions& least) {
  narrow_id(options.anonymous_uid, least.anonymous_uid, least);
  narrow_id(options.anonymous_gid, least.anonymous_gid, least);
  options.read_only |= least.read_only;
  options.root_squash |= least.root_squash;
  options.all_squash |= least.all_squash;
  options.secure |= least.secure;
  options.rdma &= least.rdma;
}

// The same of each flavor, without those that `least` does not have.
void narrow_flavors(nfs::ExportOptions& options, const nfs::ExportOptions& least) {
  std::vector<nfs::ExportOptions> by_flavor;
  std::vector<oncrpc::AuthFlavor> flavors;
  for (const oncrpc::AuthFlavor flavor : options.flavors) {
    if (std::ranges::count(least.flavors, flavor) == 0) continue;
    flavors.push_back(flavor);
    narrow(by_flavor.emplace_back(options.of(flavor)), least.of(flavor));
  }
  const bool differ = !options.by_flavor.empty() || !least.by_flavor.empty();
  narrow(options, least);
  options.flavors = flavors;
  options.by_flavor.clear();
  if (!differ) return;
  for (nfs::ExportOptions& each : by_flavor) {
    each.flavors = flavors;
    each.by_flavor.clear();
  }
  options.by_flavor = std::move(by_flavor);
}

// By a rule for more than one host no client gets more rights than `least` gives.
void narrow(std::vector<nfs::ClientRule>& rules, const nfs::ExportOptions& least) {
  std::erase_if(rules, [&](nfs::ClientRule& rule) {
    if (is_for_one_host(rule)) return false;
    narrow_flavors(rule.options, least);
    return rule.options.flavors.empty();
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

std::set<std::string> late_hosts(const ExportLine& line) {
  std::set<std::string> late;
  for (const auto& [name, host] : line.hosts)
    if (!host.why.empty()) late.insert(name);
  return late;
}

std::vector<std::string> take_answers(ExportLine& line, const HostAnswers& answers) {
  std::vector<std::string> found;
  for (auto& [name, host] : line.hosts) {
    const auto answer = answers.find(name);
    if (host.why.empty() || answer == answers.end()) continue;
    take(host, answer->second);
    if (host.why.empty())
      found.push_back(fmt::format("'{}': {}", name, fmt::join(host.addresses, ", ")));
  }
  return found;
}

void ask_for_hosts(std::vector<ExportLine>& lines, const std::stop_token& stop,
                   const HostLookup& lookup) {
  std::set<std::string> hosts;
  for (const ExportLine& line : lines) hosts.merge(late_hosts(line));
  const HostInquiry inquiry(hosts, lookup);
  inquiry.wait(kHostPatience, stop);
  const HostAnswers answers = inquiry.answers();
  for (ExportLine& line : lines) take_answers(line, answers);
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

void LateHosts::ask() {
  timer_ = loop_.after(kAgain, [this] {
    // First, as in listen(): it is asked again although there is no memory for it now.
    ask();
    std::set<std::string> late;
    if (reloads_.idle()) late = steps_.late();
    if (late.empty()) return;
    inquiry_.emplace(late, steps_.lookup);
    listen();
  });
}

void LateHosts::listen() {
  timer_ = loop_.after(kListen, [this] {
    listen();
    if (!inquiry_->ended() || !reloads_.idle()) return;
    reloads_.look([this, answers = inquiry_->answers()] { steps_.known(answers); });
    ask();
    inquiry_.reset();
  });
}

}  // namespace stag::cli
