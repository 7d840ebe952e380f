// A TCP socket that is waited for as patiently as the loops wait (net/spin_policy.h, then epoll),
// for the raw references.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "net/spin_policy.h"

namespace stag::bench {

class Wire {
 public:
  // Makes the socket non-blocking; it stays the caller's.
  Wire(int socket, std::uint32_t busy_poll_us);
  ~Wire();
  Wire(const Wire&) = delete;

  // Up to `size` bytes, waiting for the first; 0 at the end of the connection.
  std::size_t read_some(std::byte* to, std::size_t size);
  // False when the connection was lost.
  bool read_all(std::byte* to, std::size_t size);
  bool write_all(const std::byte* from, std::size_t size);
  // The same of several ranges by one system call where it goes; they are used up.
  bool read_all(std::span<iovec> pieces);
  bool write_all(std::span<iovec> pieces);

 private:
  template <class Receive>
  std::size_t read_some(const Receive& receive);
  template <class Receive>
  ssize_t look_and_read(const Receive& receive);
  // Behind a call that failed: whether another one makes sense, for which there may be room by now.
  bool wait_to_write();
  bool look_for_room();
  void sleep(std::uint32_t events);

  int socket_;
  int epoll_;
  net::SpinPolicy spin_policy_;
  std::uint32_t armed_;
};

}  // namespace stag::bench
