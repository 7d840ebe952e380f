// The sockets at which `stag serve` will listen, as its settings have it, and whether one process
// can have them all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "cli/serve/options.h"
#include "net/passed_sockets.h"

namespace stag::cli {

struct WantedSocket {
  Address at;
  net::SocketUse use;
  std::string_view option;
};

inline constexpr std::string_view kUdpOptions = "--udp-port, or --no-udp";

// RDMA devices have none.
std::vector<WantedSocket> wanted_sockets(const ServeOptions& options);

// Whether none of them is in the way of another, or of that of the metrics. The error is one
// sentence. This one leaves out those at host names.
Result<Ok, std::string> numeric_sockets_are_apart(const ServeOptions& options);
// And this one resolves names, of which it leaves out those that are not known. Blocking.
Result<Ok, std::string> sockets_are_apart(const ServeOptions& options);

}  // namespace stag::cli
