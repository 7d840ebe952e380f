#include "cli/serve/host_lookup.h"

#include <algorithm>

#include "base/reason.h"
#include "net/socket_address.h"

namespace stag::cli {

bool is_host_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto other = [](char c) { return (c >= '0' && c <= '9') || c == '-' || c == '.'; };
  return std::any_of(text.begin(), text.end(), letter) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || other(c); });
}

HostAnswer system_addresses_of(const std::string& host) {
  const auto found = net::resolve_blocking({host, 0});
  if (!found) return Failure{std::string(info(found.error()).text)};
  std::vector<std::string> addresses;
  for (const net::SocketAddress& each : *found) {
    std::string address = each.address().host;
    address.resize(std::min(address.find('%'), address.size()));
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end())
      addresses.push_back(std::move(address));
  }
  return addresses;
}

}  // namespace stag::cli
