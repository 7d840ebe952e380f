// A file descriptor with one owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace stag::vfs::posix {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  explicit operator bool() const { return fd_ >= 0; }
  int number() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace stag::vfs::posix
