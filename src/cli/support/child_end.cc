#include "cli/support/child_end.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace stag::cli {

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got > 0)
      text.append(buffer.data(), static_cast<std::size_t>(got));
    else if (got == 0 || errno != EINTR)
      return text;
  }
}

Result<int, std::string> end_of_child(pid_t child) {
  int status = 0;
  pid_t ended = -1;
  while ((ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  // Where SIGCHLD is ignored the system keeps no status.
  if (ended < 0) return Failure{std::string("has ended, and nobody knows how")};
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return Failure{
      fmt::format("was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))};
}

}  // namespace stag::cli
