// UDP: datagrams to and from many peers on one socket. Used and destroyed on its loop's thread.
#pragma once

#include <optional>

#include "base/address.h"
#include "base/bytes.h"
#include "base/reason.h"
#include "base/result.h"
#include "net/descriptor.h"
#include "net/socket_address.h"

namespace stag::net {

struct Datagram {
  std::size_t size = 0;
  SocketAddress from;
  // Which of this machine's addresses it was sent to; the port means nothing.
  SocketAddress at;
};

// A socket bound to `at`, a name or empty (every address), as UdpSocket::open() makes it. Blocking
// where it has to be resolved. Thread: any.
Result<UniqueFd, Reason> bound_datagram_socket(const Address& at);

class UdpSocket {
 public:
  // Bound to `at`, see bound_datagram_socket(); port 0 takes a free one.
  static Result<UdpSocket, Reason> open(EpollLoop& loop, const Address& at);
  // A socket that is bound already; its options become those of open().
  static Result<UdpSocket, Reason> adopt(EpollLoop& loop, UniqueFd bound);
  // From a free port, for one peer: datagrams of others are not received, and when the peer's
  // machine says that nobody listens, the next try_receive() says ConnectionRefused. `from`: see
  // net::leave_from().
  static Result<UdpSocket, Reason> connect(EpollLoop& loop, const SocketAddress& peer,
                                           const std::string& from = {});

  // Sent, or the reason why not. UDP promises no more: when the system's buffer is full the
  // datagram is lost. Leaves from the address `from` where one is given (Datagram::at), so that an
  // answer comes from the address that was asked; a machine may have several.
  Result<Ok, Reason> send_to(Bytes datagram, const SocketAddress& to,
                             const SocketAddress& from = {});
  // To the peer of connect().
  Result<Ok, Reason> send(Bytes datagram) { return send_to(datagram, {}); }
  // The next datagram, in the front of `to`; nothing when none waits. One that is longer than `to`
  // is DatagramTooLong and gone.
  Result<std::optional<Datagram>, Reason> try_receive(MutableBytes to);
  // See Descriptor.
  void when_readable(Descriptor::Function function) {
    descriptor_.when_readable(std::move(function));
  }

  // See Descriptor.
  bool crowded() const { return descriptor_.crowded(); }

  Address local() const { return SocketAddress::local_of(descriptor_.fd()).address(); }
  void close() { descriptor_.close(); }
  bool closed() const { return descriptor_.closed(); }

 private:
  explicit UdpSocket(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Descriptor descriptor_;
};

}  // namespace stag::net
