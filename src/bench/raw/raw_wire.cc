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

std::size_t Wire::read_some(std::byte* to, std::size_t size) {
  while (true) {
    const ssize_t n = look_and_read(to, size);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno != EAGAIN && errno != EINTR) return 0;
    sleep(EPOLLIN);
  }
}

// The shortest way to see that something came is to read it, as our loops do.
ssize_t Wire::look_and_read(std::byte* to, std::size_t size) {
  ssize_t n = recv(socket_, to, size, 0);
  if (n >= 0 || errno != EAGAIN || !spin_policy_.worthwhile()) return n;
  const auto end = std::chrono::steady_clock::now() + spin_policy_.limit();
  do {
    n = recv(socket_, to, size, 0);
  } while (n < 0 && errno == EAGAIN && std::chrono::steady_clock::now() < end);
  spin_policy_.found(n >= 0);
  return n;
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

bool Wire::write_all(const std::byte* from, std::size_t size) {
  while (size > 0) {
    const ssize_t n = send(socket_, from, size, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (n < 0) {
      if (!look_for_room()) sleep(EPOLLOUT);
      continue;
    }
    from += n;
    size -= static_cast<std::size_t>(n);
  }
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
