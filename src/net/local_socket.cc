#include "net/local_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "net/socket_address.h"

namespace stag::net {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr mode_t kOwnerAndGroup = 0660;

std::string trouble(int error) {
  return std::strerror(error);
}

Result<SocketAddress, std::string> address_of(const std::string& path) {
  const auto address = numeric_address({path, 0});
  if (path.starts_with('/') && address) return *address;
  return Failure{std::string("the path must begin with / and have at most 107 bytes")};
}

enum class Found { Nothing, DeadSocket };

// The error: why the path is not to be had.
Result<Found, std::string> look_at(const std::string& path, const SocketAddress& address) {
  struct stat there {};
  if (lstat(path.c_str(), &there) != 0) {
    if (errno == ENOENT) return Found::Nothing;
    return Failure{trouble(errno)};
  }
  if (!S_ISSOCK(there.st_mode)) return Failure{std::string("there is a file that is no socket")};
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!probe) return Failure{trouble(errno)};
  // A full backlog is EAGAIN: a server listens, and is busy.
  if (::connect(probe.fd(), address.data(), address.size()) == 0 || errno == EAGAIN)
    return Failure{std::string("another server listens there")};
  if (errno != ECONNREFUSED) return Failure{trouble(errno)};
  return Found::DeadSocket;
}

}  // namespace

Result<UniqueFd, std::string> listen_locally(const LocalListenOptions& options) {
  const auto address = address_of(options.path);
  if (!address) return Failure{address.error()};
  const auto found = look_at(options.path, *address);
  if (!found) return Failure{found.error()};
  if (*found == Found::DeadSocket && unlink(options.path.c_str()) != 0 && errno != ENOENT)
    return Failure{trouble(errno)};
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // Linux makes the file with the mode of the socket: nobody else can connect in between.
  if (!fd || fchmod(fd.fd(), kOwnerOnly) != 0) return Failure{trouble(errno)};
  if (::bind(fd.fd(), address->data(), address->size()) != 0) return Failure{trouble(errno)};
  const char* path = options.path.c_str();
  const bool shared =
      !options.group || (lchown(path, static_cast<uid_t>(-1), *options.group) == 0 &&
                         chmod(path, kOwnerAndGroup) == 0);
  if (!shared || ::listen(fd.fd(), options.backlog) != 0) {
    const int error = errno;
    unlink(path);
    return Failure{trouble(error)};
  }
  return fd;
}

Result<Ok, std::string> may_listen_locally(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return Failure{address.error()};
  if (const auto found = look_at(path, *address); !found) return Failure{found.error()};
  return Ok{};
}

std::optional<PeerCredentials> peer_credentials(int fd) {
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || size != sizeof who)
    return std::nullopt;
  if (SocketAddress::local_of(fd).family() != AF_UNIX) return std::nullopt;
  return PeerCredentials{who.pid, who.uid, who.gid};
}

}  // namespace stag::net
