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
};

class UdpSocket {
 public:
  // Bound to `at`, which is numeric or empty (every address); port 0 takes a free one.
  static Result<UdpSocket, Reason> open(AsioLoop& loop, const Address& at);

  // Sent, or the reason why not. UDP promises no more: when the system's buffer is full the
  // datagram is lost.
  Result<Ok, Reason> send_to(Bytes datagram, const SocketAddress& to);
  // The next datagram, in the front of `to`; nothing when none waits. One that is longer than `to`
  // is DatagramTooLong and gone.
  Result<std::optional<Datagram>, Reason> try_receive(MutableBytes to);
  // See Descriptor.
  void when_readable(Descriptor::Function function) {
    descriptor_.when_readable(std::move(function));
  }

  Address local() const { return SocketAddress::local_of(descriptor_.fd()).address(); }
  void close() { descriptor_.close(); }

 private:
  explicit UdpSocket(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Descriptor descriptor_;
};

}  // namespace stag::net
