#include "cli/serve/wanted_sockets.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "cli/observe/metrics_server.h"
#include "net/socket_address.h"

namespace stag::cli {
namespace {

constexpr std::string_view kMetrics = "--metrics";

using HostOf = std::optional<std::string>(const std::string& name);

std::optional<std::string> numeric_host(const std::string& name) {
  const auto found = net::numeric_address({name, 0});
  if (!found) return std::nullopt;
  return found->address().host;
}

// The first address is the one that is listened at.
std::optional<std::string> resolved_host(const std::string& name) {
  const auto found = net::resolve_blocking({name, 0});
  if (!found) return std::nullopt;
  return found->front().address().host;
}

std::string in_the_way(const WantedSocket& one, const WantedSocket& other) {
  if (other.option == kMetrics)
    return fmt::format("--metrics {} is where {} listens, too; give it another port",
                       to_string(other.at), one.option);
  return fmt::format(
      "--listen {} and --listen {} have an address in common, at which {} can listen once; leave "
      "out one of the two",
      one.at.host, other.at.host, one.option);
}

Result<Ok, std::string> are_apart(const ServeOptions& options, HostOf& host_of) {
  std::vector<WantedSocket> wanted = wanted_sockets(options);
  if (const auto metrics = MetricsServer::parse_address(options.observe.metrics()))
    wanted.push_back({*metrics, net::SocketUse::Stream, kMetrics});
  std::map<std::string, std::optional<std::string>> hosts;
  const auto host = [&](const std::string& name) -> const std::optional<std::string>& {
    const auto [found, is_new] = hosts.try_emplace(name);
    if (is_new) found->second = host_of(name);
    return found->second;
  };
  // Port 0 is any that is free. The name service is asked only where it matters.
  const auto clash = [&](const WantedSocket& one, const WantedSocket& other) {
    if (one.use != other.use || one.at.port != other.at.port || one.at.port == 0) return false;
    if (one.at.host == other.at.host) return true;
    const auto &first = host(one.at.host), &second = host(other.at.host);
    return first && second && net::overlaps({*first, one.at.port}, {*second, one.at.port});
  };
  for (auto one = wanted.begin(); one != wanted.end(); ++one)
    for (auto other = one + 1; other != wanted.end(); ++other)
      if (clash(*one, *other)) return Failure{in_the_way(*one, *other)};
  return Ok{};
}

}  // namespace

std::vector<WantedSocket> wanted_sockets(const ServeOptions& options) {
  std::vector<WantedSocket> wanted;
  const auto want = [&](const std::string& host, std::uint32_t port, net::SocketUse use,
                        std::string_view option) {
    wanted.push_back({{host, static_cast<std::uint16_t>(port)}, use, option});
  };
  for (const std::string& host : options.hosts) {
    if (std::ranges::count(options.fabrics, "iwarp") != 0)
      want(host, options.rdma_port, net::SocketUse::Stream, "--rdma-port");
    want(host, options.tcp_port, net::SocketUse::Stream, "--tcp-port");
    if (options.udp)
      want(host, options.udp_port != 0 ? options.udp_port : options.tcp_port,
           net::SocketUse::Datagram, kUdpOptions);
  }
  return wanted;
}

Result<Ok, std::string> numeric_sockets_are_apart(const ServeOptions& options) {
  return are_apart(options, numeric_host);
}

Result<Ok, std::string> sockets_are_apart(const ServeOptions& options) {
  return are_apart(options, resolved_host);
}

}  // namespace stag::cli
