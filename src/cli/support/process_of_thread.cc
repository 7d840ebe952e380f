#include "cli/support/process_of_thread.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace stag::cli {

// proc(5): Tgid. Lines, not words: a thread names itself as it likes, and the kernel writes a line
// break in that name as two characters.
std::optional<pid_t> process_of_thread(pid_t thread) {
  constexpr std::string_view kKey = "Tgid:\t";
  std::ifstream status(fmt::format("/proc/{}/status", thread));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kKey)) continue;
    pid_t process = 0;
    const auto read =
        std::from_chars(line.data() + kKey.size(), line.data() + line.size(), process);
    if (read.ec == std::errc()) return process;
  }
  return std::nullopt;
}

}  // namespace stag::cli
