#include "net/abandon.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace stag::net {

void abandon_sockets() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  // Nothing is asked of a descriptor that is no socket: its file system may be the one that hangs.
  for (int fd = STDERR_FILENO + 1; static_cast<rlim_t>(fd) < limit.rlim_cur; ++fd) {
    int type = 0;
    socklen_t size = sizeof type;
    if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) continue;
    // Another thread may be within a call on it, which would keep it open.
    ::shutdown(fd, SHUT_RDWR);
    ::close(fd);
  }
}

}  // namespace stag::net
