// Where the arguments of a COMPOUND lie: those of most in place, further ones on the heap. Freed
// together.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <optional>

namespace stag::nfs::nfs4 {

class ArgumentMemory {
 public:
  ArgumentMemory() {}  // does not fill the place
  ArgumentMemory(const ArgumentMemory&) = delete;
  ArgumentMemory& operator=(const ArgumentMemory&) = delete;
  ~ArgumentMemory() = default;

  // `alignment` is a power of two, that of std::max_align_t at most. In place; null: there is no
  // room left.
  void* take(std::size_t size, std::size_t alignment) {
    const std::size_t at = (used_ + alignment - 1) & ~(alignment - 1);
    if (size > sizeof(place_) - at) return nullptr;
    used_ = at + size;
    return place_ + at;
  }
  // On the heap.
  void* allocate(std::size_t size, std::size_t alignment) {
    if (!further_) further_.emplace();
    return further_->allocate(size, alignment);
  }

 private:
  alignas(std::max_align_t) std::byte place_[1024];
  std::size_t used_ = 0;  // at most sizeof(place_), also when rounded up
  std::optional<std::pmr::monotonic_buffer_resource> further_{};
};

}  // namespace stag::nfs::nfs4
