#include "cli/serve/observe_options.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <limits>
#include <optional>

#include "cli/observe/metrics_server.h"

namespace stag::cli {
namespace {

// "0.25"; zero: never.
std::optional<Duration> parse_slow(const std::string& text) {
  constexpr double kMost = 86400;
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || last != end || !(value >= 0 && value <= kMost)) return std::nullopt;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

}  // namespace

void ObserveOptions::declare(Arguments& arguments) {
  arguments.text("--metrics", metrics_, "ADDR:PORT",
                 "where Prometheus may read metrics by HTTP, without a password; port 0 takes a "
                 "free one [nowhere]");
  arguments.text("--slow-call", slow_, "SECONDS",
                 "a call that takes longer is logged and listed by 'stag status'; 0: none [1]");
  arguments.texts("--trace-client", traced_, "ADDR",
                  "log every step of the calls of the clients at this address, or in this network");
  arguments.text("--capture", capture_, "FILE",
                 "write what goes over RDMA connections to this file, in the form that Wireshark "
                 "reads (pcapng) [nowhere]");
  arguments.size("--capture-max", capture_max_, CaptureFile::kLeast,
                 std::numeric_limits<std::int64_t>::max(),
                 "bytes that this file may have; what comes later is counted, not written");
}

Result<Ok, std::string> ObserveOptions::check() const {
  if (!metrics_.empty() && !MetricsServer::parse_address(metrics_))
    return Failure{fmt::format(
        "--metrics '{}' is no address; write one like 127.0.0.1:9469 or [::1]:9469", metrics_)};
  if (!parse_slow(slow_))
    return Failure{fmt::format("--slow-call '{}' is no number of seconds, such as 0.5", slow_)};
  for (const std::string& text : traced_)
    if (!IpNetwork::parse(text))
      return Failure{fmt::format(
          "--trace-client '{}' is no address; write one like 192.0.2.7 or 2001:db8::7", text)};
  return Ok{};
}

EventOptions ObserveOptions::events() const {
  EventOptions options;
  options.slow = *parse_slow(slow_);
  for (const std::string& text : traced_) options.traced.push_back(*IpNetwork::parse(text));
  return options;
}

}  // namespace stag::cli
