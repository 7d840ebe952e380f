#include "bench/raw/raw_wire.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace stag::bench {

Wire::Wire(int socket, std::uint32_t busy_poll_us)
    : socket_(socket),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      spin_policy_(std::chrono::microseconds(busy_poll_us)),
      armed_(EPOLLIN) {
  fcntl(socket_, F_SETFL, O_NONBLOCK);
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // What our own connections within the machine are given (net/socket.cc).
  setsockopt(socket_, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
  const int size = 4 << 20;
  setsockopt(socket_, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  epoll_event event{EPOLLIN, {}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, socket_, &event);
}

Wire::~Wire() {
  close(epoll_);
}

namespace {

// What is left of `pieces` behind their first `size` bytes.
std::span<iovec> behind(std::span<iovec> pieces, std::size_t size) {
  while (!pieces.empty() && size >= pieces.front().iov_len) {
    size -= pieces.front().iov_len;
    pieces = pieces.subspan(1);
  }
  if (size > 0) {
    iovec& first = pieces.front();
    first = {static_cast<std::byte*>(first.iov_base) + size, first.iov_len - size};
  }
  return pieces;
}

msghdr message_of(std::span<iovec> pieces) {
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return message;
}

}  // namespace

template <class Receive>
std::size_t Wire::read_some(const Receive& receive) {
  while (true) {
    const ssize_t n = look_and_read(receive);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno != EAGAIN && errno != EINTR) return 0;
    sleep(EPOLLIN);
  }
}

// The shortest way to see that something came is to read it, as our loops do.
template <class Receive>
ssize_t Wire::look_and_read(const Receive& receive) {
  ssize_t n = receive();
  if (n >= 0 || errno != EAGAIN || !spin_policy_.worthwhile()) return n;
  const auto end = std::chrono::steady_clock::now() + spin_policy_.limit();
  do {
    n = receive();
  } while (n < 0 && errno == EAGAIN && std::chrono::steady_clock::now() < end);
  spin_policy_.found(n >= 0);
  return n;
}

std::size_t Wire::read_some(std::byte* to, std::size_t size) {
  return read_some([&] { return recv(socket_, to, size, 0); });
}

bool Wire::read_all(std::byte* to, std::size_t size) {
  while (size > 0) {
    const std::size_t n = read_some(to, size);
    if (n == 0) return false;
    to += n;
    size -= n;
  }
  return true;
}

bool Wire::read_all(std::span<iovec> pieces) {
  while (!pieces.empty()) {
    msghdr message = message_of(pieces);
    const std::size_t n = read_some([&] { return recvmsg(socket_, &message, 0); });
    if (n == 0) return false;
    pieces = behind(pieces, n);
  }
  return true;
}

bool Wire::write_all(const std::byte* from, std::size_t size) {
  while (size > 0) {
    const ssize_t n = send(socket_, from, size, MSG_NOSIGNAL);
    if (n < 0) {
      if (!wait_to_write()) return false;
      continue;
    }
    from += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool Wire::write_all(std::span<iovec> pieces) {
  while (!pieces.empty()) {
    const msghdr message = message_of(pieces);
    const ssize_t n = sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (n >= 0)
      pieces = behind(pieces, static_cast<std::size_t>(n));
    else if (!wait_to_write())
      return false;
  }
  return true;
}

bool Wire::wait_to_write() {
  if (errno != EAGAIN && errno != EINTR) return false;
  if (!look_for_room()) sleep(EPOLLOUT);
  return true;
}

bool Wire::look_for_room() {
  if (!spin_policy_.worthwhile()) return false;
  pollfd writable{socket_, POLLOUT, 0};
  const auto end = std::chrono::steady_clock::now() + spin_policy_.limit();
  do {
    if (poll(&writable, 1, 0) > 0) break;
  } while (std::chrono::steady_clock::now() < end);
  spin_policy_.found(writable.revents != 0);
  return writable.revents != 0;
}

void Wire::sleep(std::uint32_t events) {
  epoll_event event{events, {}};
  if (events != armed_) epoll_ctl(epoll_, EPOLL_CTL_MOD, socket_, &event);
  armed_ = events;
  epoll_wait(epoll_, &event, 1, -1);
}

}  // namespace stag::bench
