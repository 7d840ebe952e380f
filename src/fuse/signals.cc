#include "fuse/signals.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace stag::fuse {
namespace {

constexpr std::uint64_t set_of(std::initializer_list<int> signals) {
  std::uint64_t set = 0;
  for (const int signal : signals) set |= std::uint64_t{1} << (signal - 1);
  return set;
}

// Those that end no program which has not said what they mean to it.
constexpr std::uint64_t kHarmless =
    set_of({SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH});
constexpr std::uint64_t kAskToEnd = set_of({SIGHUP, SIGINT, SIGQUIT, SIGTERM});

// "SigPnd:\t0000000000004000"
std::optional<std::uint64_t> set_in(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return std::nullopt;
  line.remove_prefix(name.size());
  std::uint64_t set = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), set, 16);
  if (error != std::errc{}) return std::nullopt;
  return set;
}

// Whether /proc numbers threads as the kernel does in its requests: it may be one of another
// namespace of processes.
bool has_our_numbers() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self", unknown) == fmt::format("{}", getpid());
}

}  // namespace

bool is_to_end(std::istream& status) {
  std::optional<std::uint64_t> of_thread, of_process, blocked, ignored, caught;
  for (std::string line; std::getline(status, line);) {
    if (const auto set = set_in(line, "SigPnd:\t")) of_thread = set;
    if (const auto set = set_in(line, "ShdPnd:\t")) of_process = set;
    if (const auto set = set_in(line, "SigBlk:\t")) blocked = set;
    if (const auto set = set_in(line, "SigIgn:\t")) ignored = set;
    if (const auto set = set_in(line, "SigCgt:\t")) caught = set;
  }
  if (!of_thread || !of_process || !blocked || !ignored || !caught) return true;
  const std::uint64_t heeded = (*of_thread | *of_process) & ~*blocked & ~*ignored;
  const std::uint64_t fatal = ~*caught & ~kHarmless;
  return (heeded & (fatal | kAskToEnd)) != 0;
}

bool is_to_end(pid_t thread) {
  try {
    if (thread == 0 || !has_our_numbers()) return true;
    std::ifstream status(fmt::format("/proc/{}/status", thread));
    return is_to_end(status);
  } catch (const std::bad_alloc&) {
    return true;
  }
}

}  // namespace stag::fuse
