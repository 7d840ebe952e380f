// Unix sockets that have a path: listening at one, and who is at the other end of a connection.
// Clients use net::connect() with the path as the host.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace stag::net {

struct LocalListenOptions {
  std::string path;
  // Members of this group may connect, too; else only the user of this process, and root.
  std::optional<gid_t> group{};
  int backlog = 16;
};

// Listens at a path. The file of a socket that no server listens at any more is replaced; a socket
// that a server answers, and a file of another kind, are left alone. The error is one phrase.
// Blocking.
Result<UniqueFd, std::string> listen_locally(const LocalListenOptions& options);
// Whether it could at this path, as far as can be known without making or removing anything.
// Likewise.
Result<Ok, std::string> may_listen_locally(const std::string& path);

// The process at the other end, as it was when it connected.
struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};
// nullopt when it is no connection of a Unix socket.
std::optional<PeerCredentials> peer_credentials(int fd);

}  // namespace stag::net
