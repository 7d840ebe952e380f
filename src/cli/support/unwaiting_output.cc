#include "cli/support/unwaiting_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "net/passed_sockets.h"

namespace stag::cli {
namespace {

bool is_of(int fd, mode_t type) {
  struct stat about {};
  return ::fstat(fd, &about) == 0 && (about.st_mode & S_IFMT) == type;
}

// Another terminal comes of opening the end that an emulator has.
bool is_terminal(int fd) {
  unsigned number = 0;
  return ::isatty(fd) == 1 && ::ioctl(fd, TIOCGPTN, &number) != 0;
}

// What poll() says does not hold for a whole line on a terminal, nor where others write, too. But
// the open file that was given is theirs as well, and they do not reckon with EAGAIN.
UniqueFd open_unwaiting(int fd) {
  if (!is_of(fd, S_IFIFO) && !is_terminal(fd)) return {};
  // Also where there is no memory left.
  std::array<char, 32> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "/proc/self/fd/{}", fd);
  return UniqueFd(::open(path.data(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

UnwaitingOutput::UnwaitingOutput(int fd)
    : fd_(fd),
      file_(is_of(fd, S_IFREG) || is_of(fd, S_IFBLK)),
      socket_(is_of(fd, S_IFSOCK)),
      unwaiting_(open_unwaiting(fd)) {}

ssize_t UnwaitingOutput::write(std::string_view bytes) const {
  if (unwaiting_) return ::write(unwaiting_.fd(), bytes.data(), bytes.size());
  if (socket_) return net::send_at_once(fd_, bytes);
  if (file_) return ::write(fd_, bytes.data(), bytes.size());
  // A pipe takes that many whole or not at all, and without waiting when poll() calls it writable.
  if (wait(0)) return ::write(fd_, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
  errno = EAGAIN;
  return -1;
}

bool UnwaitingOutput::wait(int milliseconds) const {
  pollfd asked{.fd = fd_, .events = POLLOUT, .revents = 0};
  return ::poll(&asked, 1, milliseconds) == 1 && (asked.revents & (POLLOUT | POLLERR)) != 0;
}

}  // namespace stag::cli
