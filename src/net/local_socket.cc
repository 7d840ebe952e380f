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

// Removes what is at the path, if it is a socket that nobody listens at. Empty: nothing is there
// any more. Else why not.
std::string make_way(const std::string& path, const SocketAddress& address) {
  struct stat there {};
  if (lstat(path.c_str(), &there) != 0) return errno == ENOENT ? std::string() : trouble(errno);
  if (!S_ISSOCK(there.st_mode)) return "there is a file that is no socket";
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!probe) return trouble(errno);
  // A full backlog is EAGAIN: somebody listens, and is busy.
  if (::connect(probe.fd(), address.data(), address.size()) == 0 || errno == EAGAIN)
    return "another server listens there";
  if (errno != ECONNREFUSED) return trouble(errno);
  return unlink(path.c_str()) == 0 || errno == ENOENT ? std::string() : trouble(errno);
}

}  // namespace

Result<UniqueFd, std::string> listen_locally(const LocalListenOptions& options) {
  const auto address = numeric_address({options.path, 0});
  if (!options.path.starts_with('/') || !address)
    return Failure{std::string("the path must begin with / and have at most 107 bytes")};
  if (std::string why = make_way(options.path, *address); !why.empty()) return Failure{why};
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

std::optional<PeerCredentials> peer_credentials(int fd) {
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || size != sizeof who)
    return std::nullopt;
  if (SocketAddress::local_of(fd).family() != AF_UNIX) return std::nullopt;
  return PeerCredentials{who.pid, who.uid, who.gid};
}

}  // namespace stag::net
