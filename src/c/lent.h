// Memory of a C program's that the library uses for a while: what a reply is sent from, and where
// the bulk of arguments is placed.
#pragma once

#include <cstddef>

#include "base/buffer.h"
#include "base/pooled.h"
#include "c/memory.h"

namespace stag::c {

// The owner of Buffers of such memory. With the last of them it gives the memory back.
class Lent final : public Storage, public Pooled {
 public:
  // `block_size`: as of Buffer::block_size().
  explicit Lent(std::size_t block_size = 0) : Storage(block_size) {}
  // From then on `release` is called with `context` at the end, and `memory`, in which it may lie,
  // is in use.
  void begin(void (*release)(void*), void* context, stag_memory* memory) {
    release_ = release;
    context_ = context;
    memory_ = memory;
    begin_use(memory_);
  }
  void* context() const { return context_; }
  // The program has it back already.
  void forget() { release_ = nullptr; }

 private:
  void release() noexcept override {
    const auto give_back = release_;
    void* const context = context_;
    end_use(memory_);
    delete this;
    if (give_back != nullptr) give_back(context);
  }
  void (*release_)(void*) = nullptr;  // null: there is nothing to give back
  void* context_ = nullptr;
  stag_memory* memory_ = nullptr;
};

}  // namespace stag::c
