// The system calls that a loop's turns consist of, without what the C library does around each call
// that may wait: it makes the thread cancellable and takes that back. No thread cancels a loop.
// Sanitizers watch the C library's functions: with one of them it is those that are called.
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace stag::net {

#ifdef STAG_SANITIZED
using ::epoll_wait;
using ::recv;
using ::send;
#else
inline int epoll_wait(int epoll, epoll_event* events, int room, int timeout_ms) {
  return static_cast<int>(
      ::syscall(SYS_epoll_pwait, epoll, events, room, timeout_ms, nullptr, std::size_t{0}));
}
inline ssize_t recv(int fd, void* to, std::size_t room, int flags) {
  return ::syscall(SYS_recvfrom, fd, to, room, flags, nullptr, nullptr);
}
inline ssize_t send(int fd, const void* from, std::size_t size, int flags) {
  return ::syscall(SYS_sendto, fd, from, size, flags, nullptr, std::size_t{0});
}
#endif

}  // namespace stag::net
