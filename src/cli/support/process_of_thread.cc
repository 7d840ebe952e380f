#include "cli/support/process_of_thread.h"

#include <fmt/format.h>

#include <fstream>
#include <string>

namespace stag::cli {

// proc(5): Tgid.
std::optional<pid_t> process_of_thread(pid_t thread) {
  std::ifstream status(fmt::format("/proc/{}/status", thread));
  for (std::string word; status >> word;) {
    pid_t process = 0;
    if (word == "Tgid:" && status >> process) return process;
  }
  return std::nullopt;
}

}  // namespace stag::cli
