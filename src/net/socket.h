// TCP streams. Two ways to use one: the readiness style (try_read, try_write, when_readable,
// when_writable) for code that schedules its own I/O, and awaitable calls for straight-line code.
// One reader and one writer at a time.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/cancel.h"
#include "base/loop.h"
#include "base/reason.h"
#include "base/result.h"
#include "base/rope.h"
#include "base/task.h"
#include "base/unique_fd.h"
#include "net/descriptor.h"
#include "net/socket_address.h"
#include "net/tcp_options.h"

namespace stag::net {

// What one non-blocking read or write did.
struct Transfer {
  // Moved now; may be less than asked for.
  std::size_t bytes = 0;
  // None: go on (with bytes == 0: wait for readiness). ConnectionClosed: the peer has sent its last
  // byte. Otherwise the connection is broken.
  Reason reason = Reason::None;
  // The socket had nothing more to give or take just now: wait for readiness instead of trying
  // again.
  bool drained = false;
};

// A connection that no loop has. Give it to TcpSocket::adopt(), on this loop or (moved through
// post()) on another.
struct AcceptedSocket {
  UniqueFd fd;
  // As accepted: the system does not tell any more once the peer has reset the connection, while
  // what it sent before can still be read.
  Address peer;
};

class TcpSocket {
 public:
  TcpSocket() = default;
  static Result<TcpSocket, Reason> adopt(EpollLoop& loop, AcceptedSocket accepted,
                                         const TcpOptions& options = {});
  // The same for one that is watched already; of the options only `no_delay` is left to choose.
  static TcpSocket adopt(Descriptor connected, Address peer, const TcpOptions& options);

  // At most 1024 pieces; the bytes asked for must not be zero.
  Transfer try_read(std::span<const iovec> pieces);
  Transfer try_read(const iovec& piece);
  Transfer try_write(std::span<const iovec> pieces);
  Transfer try_write(const iovec& piece);
  // See Descriptor.
  void when_readable(Descriptor::Function&& function) {
    descriptor_.when_readable(std::move(function));
  }
  void when_readable(Reader& reader) { descriptor_.when_readable(reader); }
  void when_writable(Descriptor::Function&& function) {
    descriptor_.when_writable(std::move(function));
  }
  bool crowded() const { return descriptor_.crowded(); }
  void ignore_readable() { descriptor_.ignore_readable(); }

  // At least one byte of what comes next, into the front of `to` (not empty). The end of the stream
  // is ConnectionClosed. The socket must outlive the call; close() ends it with SocketClosed.
  Task<Result<std::size_t, Reason>> read_some(MutableBytes to);
  // All of `bytes`, or the connection is broken.
  Task<Result<Ok, Reason>> write_all(Rope bytes);

  // Bytes of those written that the peer's system has not acknowledged: what shows that a peer
  // still takes some, where a write does not. A system call; 0 when closed.
  std::size_t unacknowledged() const;

  // TCP's user timeout (RFC 9293 3.8.3): from adopt() on the connection ends where the peer's
  // system leaves bytes unacknowledged for 90 s. Linux counts a window that is closed, too, which
  // takes connections from peers that are slow. For owners that look at unacknowledged() themselves
  // there is none: the system ends its retransmissions after some 15 minutes.
  void drop_user_timeout();

  // Ends the outgoing stream; what was written still arrives.
  void shutdown_write();
  // Ends the incoming stream, so that who waits to read is told; asks for no memory.
  void shutdown_read();
  // Idempotent; ends both directions, and what waits.
  void close() { descriptor_.close(); }
  bool closed() const { return descriptor_.closed(); }
  // To go on on another loop: adopt() it there.
  AcceptedSocket release() { return {descriptor_.release(), std::move(peer_)}; }

  Address local() const;
  const Address& peer() const { return peer_; }
  int fd() const { return descriptor_.fd(); }
  EpollLoop& loop() const { return descriptor_.loop(); }

 private:
  TcpSocket(Descriptor descriptor, Address peer)
      : descriptor_(std::move(descriptor)), peer_(std::move(peer)) {}
  // What a system call that was asked for `wanted` bytes has moved.
  Transfer has_read(ssize_t moved, std::size_t wanted);
  Transfer has_written(ssize_t moved, std::size_t wanted);
  Descriptor descriptor_;
  Address peer_;
};

struct ConnectOptions {
  // No aggregate: of one that is made for a co_await GCC 12 destroys a copy that it took bit by
  // bit.
  ConnectOptions() {}

  // For everything: name service, all addresses. Each of them has an equal part of what the others
  // before it have left.
  Duration timeout = std::chrono::seconds(10);
  TcpOptions tcp;
  std::string from{};  // see leave_from()
};

// Tries the addresses of `to` one after the other. Fails with the reason of the last one,
// ConnectTimedOut or Cancelled.
Task<Result<TcpSocket, Reason>> connect(EpollLoop& loop, Address to, ConnectOptions options = {},
                                        CancelToken token = {});
// The same with the addresses of one host.
Task<Result<TcpSocket, Reason>> connect_to_one_of(EpollLoop& loop,
                                                  std::vector<SocketAddress> addresses,
                                                  ConnectOptions options = {},
                                                  CancelToken token = {});

}  // namespace stag::net
