#include "cli/serve/copy_from.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/serve/late_hosts.h"
#include "cli/support/log.h"

namespace stag::cli {

void CopyFromOptions::declare(Arguments& arguments) {
  arguments.texts(
      "--copy-from", texts_, "HOST|NETWORK[,HOST|NETWORK]...",
      "servers that clients of version 4.2 may have this one copy files from, without "
      "the data passing through the client (RFC 7862 4.5); it connects to them, at "
      "whatever port a client says, and reads as the client's user; not with --no-callbacks "
      "or --no-nfs4, for a callback tells how a copy has ended [none]");
}

Result<Ok, std::string> CopyFromOptions::take(std::string_view text) {
  if (is_host_name(text)) {
    line_.clients.push_back(host_rule(std::string(text), {}));
    line_.hosts[std::string(text)];
    return Ok{};
  }
  const auto rule = nfs::make_client_rule(text, {});
  if (rule && rule->network) {
    line_.clients.push_back(*rule);
    return Ok{};
  }
  return Failure{fmt::format(
      "--copy-from '{}' is no server; write an address, a host, or a network like 192.0.2.0/24 or "
      "2001:db8::/32",
      text)};
}

Result<Ok, std::string> CopyFromOptions::check() {
  for (std::string_view rest : texts_) {
    for (bool more = true; more;) {
      const std::size_t comma = rest.find(',');
      more = comma != rest.npos;
      if (const auto taken = take(rest.substr(0, comma)); !taken) return taken;
      if (more) rest.remove_prefix(comma + 1);
    }
  }
  return Ok{};
}

CopyFromHosts::CopyFromHosts(ExportLine written, HostLookup lookup)
    : lookup_(std::move(lookup)), written_(std::move(written)) {
  ask_again({});
}

void CopyFromHosts::replace(ExportLine written) {
  ExportLine now = written;
  const std::lock_guard lock(mutex_);
  keep_addresses(now, line_);
  written_ = std::move(written);
  line_ = std::move(now);
  find_networks();
}

void CopyFromHosts::ask_again(const std::stop_token& stop) {
  std::vector<ExportLine> lines;
  {
    const std::lock_guard lock(mutex_);
    lines.push_back(written_);
  }
  ask_for_hosts(lines, stop, lookup_);
  const std::lock_guard lock(mutex_);
  keep_addresses(lines.front(), line_);
  line_ = std::move(lines.front());
  find_networks();
  if (stop.stop_requested()) return;
  for (const std::string& unknown : unknown_clients(line_))
    log_notice(Event::CopySourceUnknown, "--copy-from", unknown);
}

void CopyFromHosts::find_networks() {
  networks_.clear();
  for (const nfs::ClientRule& rule : line_.clients)
    if (!line_.hosts.contains(rule.match) && rule.network) networks_.push_back(*rule.network);
  for (const auto& [name, host] : line_.hosts)
    for (const std::string& address : host.addresses)
      if (const auto network = IpNetwork::parse(address)) networks_.push_back(*network);
}

bool CopyFromHosts::any() const {
  const std::lock_guard lock(mutex_);
  return !written_.clients.empty();
}

bool CopyFromHosts::admits(std::string_view host) const {
  const std::optional<IpAddress> address = IpAddress::parse(host);
  const std::lock_guard lock(mutex_);
  return address && std::ranges::any_of(networks_, [&](const IpNetwork& network) {
           return network.contains(*address);
         });
}

std::set<std::string> CopyFromHosts::late() const {
  const std::lock_guard lock(mutex_);
  return late_hosts(line_);
}

void CopyFromHosts::take(const HostAnswers& answers) {
  const std::lock_guard lock(mutex_);
  for (const std::string& each : take_answers(line_, answers))
    log_notice(Event::CopySourceKnown, "--copy-from", each);
  find_networks();
}

}  // namespace stag::cli
