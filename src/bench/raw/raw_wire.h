// A TCP socket that is waited for as patiently as the loops wait (net/spin_policy.h, then epoll),
// for the raw references.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

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

 private:
  ssize_t look_and_read(std::byte* to, std::size_t size);
  bool look_for_room();
  void sleep(std::uint32_t events);

  int socket_;
  int epoll_;
  net::SpinPolicy spin_policy_;
  std::uint32_t armed_;
};

}  // namespace stag::bench
