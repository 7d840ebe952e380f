#include "net/socket.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <coroutine>
#include <string_view>

#include "net/descriptor_state.h"
#include "net/loop.h"
#include "net/race.h"
#include "net/socket_address.h"
#include "net/system_call.h"
#include "net/system_error.h"

namespace stag::net {
namespace {

constexpr int kSendFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
constexpr int kKeepAliveIdle = 60;      // seconds
constexpr int kKeepAliveInterval = 10;  // seconds
constexpr int kKeepAliveCount = 3;
constexpr int kUserTimeoutMs = 90'000;

void set_option(int fd, int level, int name, int value) {
  // Best effort: a stream works without, only less well.
  setsockopt(fd, level, name, &value, sizeof value);
}

// Buffer sizes must be set before the connection exists to take part in the window's scale.
void apply_sizes(int fd, const TcpOptions& options) {
  if (options.send_buffer > 0) set_option(fd, SOL_SOCKET, SO_SNDBUF, options.send_buffer);
  if (options.receive_buffer > 0) set_option(fd, SOL_SOCKET, SO_RCVBUF, options.receive_buffer);
}

// The plainest congestion control there is. Where no network is crossed nothing gets congested, and
// one that measures and paces (the system's default may be BBR) only makes both ends wait.
constexpr std::string_view kNoNetwork = "reno";

bool stays_on_machine(int fd) {
  const SocketAddress local = SocketAddress::local_of(fd);
  return local.family() != AF_UNIX &&
         local.address().host == SocketAddress::peer_of(fd).address().host;
}

std::size_t total(std::span<const iovec> pieces) {
  std::size_t sum = 0;
  for (const iovec& piece : pieces) sum += piece.iov_len;
  return sum;
}

msghdr message_of(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  return message;
}

int fd_of(const Descriptor& descriptor) {
  return descriptor.state() == nullptr ? -1 : descriptor.state()->fd.fd();
}

// What a system call that was asked for `wanted` bytes says; of one that failed errno says more.
Transfer transfer_of(ssize_t moved, std::size_t wanted) {
  if (moved >= 0) {
    const auto bytes = static_cast<std::size_t>(moved);
    return {bytes, Reason::None, bytes < wanted};
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
    return {0, Reason::None, errno != EINTR};
  // No attempt to connect: the peer's system acknowledges nothing any more.
  if (errno == ETIMEDOUT) return {0, Reason::ConnectionLost, true};
  return {0, reason_of_errno(errno), true};
}

// co_await ready(socket, &TcpSocket::when_readable)
using WhenReady = void (TcpSocket::*)(Descriptor::Function&&);
auto ready(TcpSocket& socket, WhenReady when) {
  struct Awaiter {
    TcpSocket& socket;
    WhenReady when;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) {
      (socket.*when)([waiter] { waiter.resume(); });
    }
    void await_resume() const {}
  };
  return Awaiter{socket, when};
}

// What of a rope is still to be written, a window of pieces at a time.
class Unwritten {
 public:
  explicit Unwritten(const Rope& rope) : rope_(rope) {}
  bool empty() const { return piece_ == rope_.pieces().size(); }
  std::span<const iovec> window() {
    std::size_t count = 0;
    std::size_t offset = offset_;
    for (std::size_t i = piece_; i < rope_.pieces().size() && count < window_.size(); ++i) {
      const Bytes bytes = rope_.pieces()[i].bytes().subspan(std::exchange(offset, 0));
      window_[count++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
    }
    return std::span(window_).first(count);
  }
  void advance(std::size_t bytes) {
    offset_ += bytes;
    while (!empty() && offset_ >= rope_.pieces()[piece_].size())
      offset_ -= rope_.pieces()[piece_++].size();
  }

 private:
  const Rope& rope_;
  std::size_t piece_ = 0;
  std::size_t offset_ = 0;
  std::array<iovec, 64> window_;
};

Task<Result<Descriptor, Reason>> connect_one(EpollLoop& loop, SocketAddress to, TimePoint deadline,
                                             const ConnectOptions& options, CancelToken token) {
  UniqueFd fd(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) co_return Failure{reason_of_errno(errno)};
  apply_sizes(fd.fd(), options.tcp);
  leave_from(fd.fd(), options.from, to);
  const bool pending = ::connect(fd.fd(), to.data(), to.size()) != 0;
  if (pending && errno != EINPROGRESS) co_return Failure{reason_of_errno(errno)};
  Result<Descriptor, Reason> watched = Descriptor::watch(loop, std::move(fd));
  if (!watched || !pending) co_return watched;
  const auto race = Race::start(loop, deadline - loop.now(), token);
  watched->when_writable([race] { race->end(Reason::None); });
  Completion<Reason>& ended = race->ended();
  const Reason reason = co_await ended;
  if (reason != Reason::None) co_return Failure{reason};
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(watched->fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) co_return Failure{reason_of_errno(error)};
  co_return watched;
}

}  // namespace

Result<TcpSocket, Reason> TcpSocket::adopt(EpollLoop& loop, AcceptedSocket accepted,
                                           const TcpOptions& options) {
  apply_sizes(accepted.fd.fd(), options);
  Result<Descriptor, Reason> watched = Descriptor::watch(loop, std::move(accepted.fd));
  if (!watched) return Failure{watched.error()};
  return adopt(*std::move(watched), std::move(accepted.peer), options);
}

TcpSocket TcpSocket::adopt(Descriptor connected, Address peer, const TcpOptions& options) {
  if (options.no_delay) set_option(connected.fd(), IPPROTO_TCP, TCP_NODELAY, 1);
  if (stays_on_machine(connected.fd())) {
    setsockopt(connected.fd(), IPPROTO_TCP, TCP_CONGESTION, kNoNetwork.data(), kNoNetwork.size());
  }
  // A peer that vanished holds its place no longer than this: idle, or with bytes it never
  // acknowledged.
  set_option(connected.fd(), SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(connected.fd(), IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdle);
  set_option(connected.fd(), IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveInterval);
  set_option(connected.fd(), IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveCount);
  set_option(connected.fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
  connected.share_usage(peer.host);
  return TcpSocket(std::move(connected), std::move(peer));
}

// The kernel looks at a plain buffer sooner than at a list of one.
Transfer TcpSocket::try_read(std::span<const iovec> pieces) {
  if (pieces.size() == 1) return try_read(pieces.front());
  msghdr message = message_of(pieces);
  return has_read(recvmsg(fd(), &message, MSG_DONTWAIT), total(pieces));
}

Transfer TcpSocket::try_read(const iovec& piece) {
  return has_read(net::recv(fd_of(descriptor_), piece.iov_base, piece.iov_len, MSG_DONTWAIT),
                  piece.iov_len);
}

inline Transfer TcpSocket::has_read(ssize_t moved, std::size_t wanted) {
  const Transfer transfer =
      moved == 0 ? Transfer{0, Reason::ConnectionClosed, true} : transfer_of(moved, wanted);
  Descriptor::State* const state = descriptor_.state();
  if (transfer.bytes > 0) state->mark_read();
  if (transfer.drained && state != nullptr) state->mark_unreadable();
  return transfer;
}

Transfer TcpSocket::try_write(std::span<const iovec> pieces) {
  if (pieces.size() == 1) return try_write(pieces.front());
  const msghdr message = message_of(pieces);
  return has_written(sendmsg(fd(), &message, kSendFlags), total(pieces));
}

Transfer TcpSocket::try_write(const iovec& piece) {
  return has_written(net::send(fd_of(descriptor_), piece.iov_base, piece.iov_len, kSendFlags),
                     piece.iov_len);
}

inline Transfer TcpSocket::has_written(ssize_t moved, std::size_t wanted) {
  const Transfer transfer = transfer_of(moved, wanted);
  Descriptor::State* const state = descriptor_.state();
  if (transfer.drained && state != nullptr) state->mark_unwritable();
  return transfer;
}

Task<Result<std::size_t, Reason>> TcpSocket::read_some(MutableBytes to) {
  STAG_CHECK(!to.empty());
  const iovec piece{to.data(), to.size()};
  for (;;) {
    const Transfer transfer = try_read(std::span(&piece, 1));
    if (transfer.reason != Reason::None) co_return Failure{transfer.reason};
    if (transfer.bytes > 0) co_return transfer.bytes;
    co_await ready(*this, &TcpSocket::when_readable);
  }
}

Task<Result<Ok, Reason>> TcpSocket::write_all(Rope bytes) {
  Unwritten rest(bytes);
  while (!rest.empty()) {
    const Transfer transfer = try_write(rest.window());
    if (transfer.reason != Reason::None) co_return Failure{transfer.reason};
    rest.advance(transfer.bytes);
    if (transfer.drained && !rest.empty()) co_await ready(*this, &TcpSocket::when_writable);
  }
  co_return Ok{};
}

std::size_t TcpSocket::unacknowledged() const {
  int bytes = 0;
  return ioctl(fd(), SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

void TcpSocket::drop_user_timeout() {
  set_option(fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
}

void TcpSocket::shutdown_read() {
  ::shutdown(fd(), SHUT_RD);
}

void TcpSocket::shutdown_write() {
  ::shutdown(fd(), SHUT_WR);
}

Address TcpSocket::local() const {
  return SocketAddress::local_of(fd()).address();
}

Task<Result<TcpSocket, Reason>> connect(EpollLoop& loop, Address to, ConnectOptions options,
                                        CancelToken token) {
  const TimePoint deadline = loop.now() + options.timeout;
  auto addresses = co_await resolve(loop, std::move(to), options.timeout, token);
  if (!addresses) co_return Failure{addresses.error()};
  options.timeout = deadline - loop.now();
  co_return co_await connect_to_one_of(loop, *std::move(addresses), options, token);
}

Task<Result<TcpSocket, Reason>> connect_to_one_of(EpollLoop& loop,
                                                  std::vector<SocketAddress> addresses,
                                                  ConnectOptions options, CancelToken token) {
  const TimePoint deadline = loop.now() + options.timeout;
  Reason reason = Reason::HostNotFound;
  auto left = static_cast<std::int64_t>(addresses.size());
  for (const SocketAddress& address : addresses) {
    if (token.cancelled()) co_return Failure{Reason::Cancelled};
    // One that is silent leaves the others time.
    const TimePoint now = loop.now();
    const TimePoint until = now + (deadline - now) / left--;
    auto connected = co_await connect_one(loop, address, until, options, token);
    if (connected) {
      co_return TcpSocket::adopt(*std::move(connected), address.address(), options.tcp);
    }
    reason = connected.error();
    if (reason == Reason::Cancelled || loop.now() >= deadline) break;
  }
  co_return Failure{reason};
}

}  // namespace stag::net
