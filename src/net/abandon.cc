#include "net/abandon.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>

#include "base/unique_fd.h"

namespace stag::net {
namespace {

void abandon(int fd) {
  if (fd <= STDERR_FILENO) return;
  // Nothing is asked of a descriptor that is no socket: its file system may be the one that hangs.
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return;
  // Another thread may be within a call on a connection, which would keep it open. What listens, by
  // UDP, too, another process may have as well, and shutdown() would end it there.
  sockaddr_storage peer{};
  size = sizeof peer;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0) ::shutdown(fd, SHUT_RDWR);
  ::close(fd);
}

// False where the kernel does not list them. Allocates nothing: memory may be what is missing.
bool abandon_listed() {
  const UniqueFd folder(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return false;
  alignas(dirent64) std::array<std::byte, 4096> entries;
  ssize_t size = 0;
  while ((size = ::getdents64(folder.fd(), entries.data(), entries.size())) > 0) {
    for (ssize_t at = 0; at < size;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      abandon(std::atoi(entry->d_name));
      at += entry->d_reclen;
    }
  }
  return size == 0;
}

}  // namespace

void abandon_sockets() {
  rlimit limit{};
  if (abandon_listed() || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  for (int fd = 0; static_cast<rlim_t>(fd) < limit.rlim_cur; ++fd) abandon(fd);
}

}  // namespace stag::net
