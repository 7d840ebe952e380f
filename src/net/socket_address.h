// Addresses as the system takes them, and how a name becomes one.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/cancel.h"
#include "base/loop.h"
#include "base/reason.h"
#include "base/result.h"
#include "base/task.h"

namespace stag::net {

class EpollLoop;

// An IPv4 or IPv6 address and port, or the path of a Unix socket.
class SocketAddress {
 public:
  SocketAddress() = default;
  // The first `length` bytes of `from`, as the system gave them.
  SocketAddress(const sockaddr* from, socklen_t length);

  // Numeric form with a scope where IPv6 needs one ("fe80::1%eth0"); an IPv4 address mapped into
  // IPv6 appears as IPv4.
  Address address() const;
  std::uint16_t port() const;
  int family() const { return storage_.ss_family; }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  sockaddr* data() { return reinterpret_cast<sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }

  // The socket's own and its peer's; no address (family 0) when it has none.
  static SocketAddress local_of(int fd);
  static SocketAddress peer_of(int fd);

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

// What `address` means if its host is numeric or a path; never asks a name service. An empty host
// is the IPv6 wildcard, which takes IPv4 too.
std::optional<SocketAddress> numeric_address(const Address& address);

// Has a socket that is to be connected to `to` leave from the numeric address `from` of this
// machine. Where that is none of the machine's (any more), or empty, the system chooses.
void leave_from(int fd, const std::string& from, const SocketAddress& to);

// All addresses of `address`, in the order to try them; at least one. Blocks while it asks the name
// service.
Result<std::vector<SocketAddress>, Reason> resolve_blocking(const Address& address);

// The same off the loop. Ends with Cancelled or ConnectTimedOut when `token` is cancelled or
// `limit` has passed; the question to the name service then ends unheard, and nobody waits for it.
Task<Result<std::vector<SocketAddress>, Reason>> resolve(EpollLoop& loop, Address address,
                                                         Duration limit, CancelToken token = {});

}  // namespace stag::net
