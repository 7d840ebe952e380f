#include "cli/serve/service_manager.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "cli/support/log.h"
#include "net/passed_sockets.h"

namespace stag::cli {
namespace {

// Of the sockets that are kept.
constexpr std::string_view kStoredName = "stag";

std::string taken_from_environment(const char* variable) {
  const char* value = std::getenv(variable);
  std::string text = value != nullptr ? value : "";
  unsetenv(variable);
  return text;
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

std::uint64_t microseconds(Duration time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

}  // namespace

ServiceManager ServiceManager::from_environment() {
  std::string socket = taken_from_environment("NOTIFY_SOCKET");
  const auto limit = whole_number(taken_from_environment("WATCHDOG_USEC"));
  const std::string process = taken_from_environment("WATCHDOG_PID");
  const bool ours =
      process.empty() || whole_number(process) == static_cast<std::uint64_t>(getpid());
  std::optional<Duration> watchdog;
  if (limit.value_or(0) != 0 && ours) watchdog = std::chrono::microseconds(*limit);
  return {std::move(socket), watchdog};
}

ServiceManager::ServiceManager(std::string socket, std::optional<Duration> watchdog)
    : socket_(std::move(socket)), watchdog_(watchdog) {
  if (!socket_.empty()) sending_ = net::local_datagram_socket();
}

void ServiceManager::ready(std::string_view status) {
  std::string text;
  try {
    text = fmt::format("READY=1\nSTATUS={}\n", status);
  } catch (const std::bad_alloc&) {
    // What it waits for takes no memory.
    text = "READY=1\n";
  }
  tell(text);
}

void ServiceManager::reloading() {
  // With the time systemd 253 wants for Type=notify-reload; others leave it alone.
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  tell(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=Reading the configuration\n",
                   microseconds(now)));
}

void ServiceManager::stopping(std::string_view status, Duration limit) {
  tell(fmt::format("STOPPING=1\nSTATUS={}\nEXTEND_TIMEOUT_USEC={}\n", status, microseconds(limit)));
}

void ServiceManager::alive() {
  // The next one is due soon.
  tell("WATCHDOG=1\n", {}, 0);
}

void ServiceManager::keep(const std::vector<UniqueFd>& sockets) {
  tell(fmt::format("FDSTOREREMOVE=1\nFDNAME={}\n", kStoredName));
  if (!sockets.empty()) tell(fmt::format("FDSTORE=1\nFDNAME={}\nFDPOLL=0\n", kStoredName), sockets);
}

void ServiceManager::tell(std::string_view text, const std::vector<UniqueFd>& sockets,
                          unsigned patience_seconds) {
  if (socket_.empty()) return;
  const auto sent = net::send_datagram(sending_, socket_, text, sockets, patience_seconds);
  if (!sent) log_notice(Event::ServiceManagerUnheard, socket_, sent.error());
}

}  // namespace stag::cli
