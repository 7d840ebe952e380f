#include "cli/serve/callbacks.h"

#include <fmt/format.h>

#include "endpoint/connector.h"

namespace stag::cli {

namespace {

// What a client answers to a callback is short.
constexpr std::uint32_t kLongestAnswer = 64 << 10;

}  // namespace

void CallbackOptions::declare(Arguments& arguments) {
  arguments.flag("--callbacks,!--no-callbacks", wanted_,
                 "call version 4 clients back: 4.1 and 4.2 on their own connections, 4.0 over TCP "
                 "at the address that they name; without this they get no delegations [yes]");
  arguments.flag(
      "--rdma-callbacks,!--no-rdma-callbacks", over_rdma_,
      "let connections over RDMA carry callbacks of versions 4.1 and 4.2, in the reverse "
      "direction (RFC 8167); without this only those over TCP do that a client binds to "
      "its session [yes]");
  arguments.texts("--callback-network", network_texts_, "NETWORK",
                  "where a version 4.0 client may have itself called back besides the address "
                  "that it calls from: 192.0.2.0/24, 2001:db8::/32 [nowhere]");
}

Result<Ok, std::string> CallbackOptions::check() {
  for (const std::string& text : network_texts_) {
    const std::optional<IpNetwork> network = IpNetwork::parse(text);
    if (!network)
      return Failure{fmt::format(
          "--callback-network '{}' is no network; write one like 192.0.2.0/24 or 2001:db8::/32",
          text)};
    networks_.push_back(*network);
  }
  return Ok{};
}

std::unique_ptr<rpc::Connector> callback_connector(net::EpollLoop& loop) {
  endpoint::ConnectorOptions options;
  options.transport = endpoint::Transport::Tcp;
  options.tcp.connect_timeout = std::chrono::seconds(5);
  options.tcp.stream.records.record = kLongestAnswer;
  return endpoint::make_connector(loop, options);
}

}  // namespace stag::cli
