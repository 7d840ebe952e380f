// Sockets, and words, that go from process to process: descriptors over a Unix socket (SCM_RIGHTS),
// the sockets that a service manager passes at start (sd_listen_fds(3)), and what it is told
// (sd_notify(3)). Blocking; thread: any.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/socket_address.h"

namespace stag::net {

// At most so many go in one message.
inline constexpr std::size_t kMostPassed = 128;

// Sends `text` and with its first byte the descriptors, of which this process keeps its own. On a
// stream of which nothing waits to be sent. False when the other end is gone, or does not read.
bool send_with_sockets(int unix_socket, std::string_view text, std::span<const UniqueFd> sockets);
// What one such message brought: up to `most` bytes of its text.
struct PassedMessage {
  std::string text;
  std::vector<UniqueFd> sockets;
};
// The error is one phrase; a message of more descriptors than kMostPassed is one.
Result<PassedMessage, std::string> receive_with_sockets(int unix_socket, std::size_t most);

// A datagram to a Unix socket: its path, or '@' and the name of an abstract one. The error is one
// phrase. For a receiver that is behind it waits at most `patience_seconds`.
Result<Ok, std::string> send_datagram(const std::string& path, std::string_view text,
                                      std::span<const UniqueFd> sockets = {},
                                      unsigned patience_seconds = 0);
// The same by a socket of local_datagram_socket(), so that it takes no descriptor. Of those who use
// one socket at a time, each that waits does so for the same time.
Result<Ok, std::string> send_datagram(const UniqueFd& by, const std::string& path,
                                      std::string_view text, std::span<const UniqueFd> sockets,
                                      unsigned patience_seconds);
// Invalid where the system has no descriptor left.
UniqueFd local_datagram_socket();
// Gives bytes to a connected socket, in whatever mode, and says how many it took without waiting;
// -1: none.
ssize_t send_at_once(int socket, std::string_view bytes);
// Connects a stream to the path; every read of it fails after `patience_seconds`. The error is the
// errno of connect().
Result<UniqueFd, int> connect_locally(const std::string& path, unsigned patience_seconds);

// The sockets that the service manager passed to this process ($LISTEN_FDS, for $LISTEN_PID), not
// inherited by its children from now on. Once: the variables are removed. Before other threads run.
std::vector<UniqueFd> sockets_from_service_manager();

// Whether it is a TCP socket that listens at `at`, or a UDP socket bound there.
enum class SocketUse { Stream, Datagram };
bool serves_at(int fd, SocketUse use, const SocketAddress& at);
// Whether it is such a socket, and overlaps() with `at`.
bool is_in_the_way(int fd, SocketUse use, const SocketAddress& at);
// Whether a socket at one of these numeric addresses may keep the system from making one at the
// other: they have the same port, and the same host or a wildcard that covers the other's.
bool overlaps(const Address& one, const Address& other);

}  // namespace stag::net
