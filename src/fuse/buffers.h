// Buffers: memory for requests and for data that was read, of one size, kept for the next request.
// Thread: the loop of the Mount.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/bytes.h"

namespace stag::fuse {

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
// From malloc(), as libfuse wants it.
using Memory = std::unique_ptr<std::byte, FreeMemory>;

class Buffers {
 public:
  Buffers(std::size_t size, std::size_t most_kept) : size_(size), most_kept_(most_kept) {
    kept_.reserve(most_kept);
  }

  std::size_t size() const { return size_; }
  // Null where there is no memory.
  Memory take() {
    Memory memory = take_kept();
    return memory ? std::move(memory) : Memory(static_cast<std::byte*>(std::malloc(size_)));
  }
  // Null where none was kept.
  Memory take_kept() {
    if (kept_.empty()) return nullptr;
    Memory memory = std::move(kept_.back());
    kept_.pop_back();
    return memory;
  }
  void give_back(Memory memory) {
    if (memory && kept_.size() < most_kept_) kept_.push_back(std::move(memory));
  }

 private:
  std::size_t size_;
  std::size_t most_kept_;
  std::vector<Memory> kept_;
};

}  // namespace stag::fuse
