// Pooled: the memory of objects that every call makes and drops again comes from the per-thread
// lists of coroutine frames (base/task.h), so that a steady flow of them allocates nothing. A class
// derives from it; objects up to 4 KiB. Thread: any; an object may be dropped on another one.
#pragma once

#include "base/task.h"

namespace stag {

struct Pooled {
  static void* operator new(std::size_t size) { return detail::allocate_frame(size); }
  static void operator delete(void* object, std::size_t size) noexcept {
    detail::free_frame(object, size);
  }
};

}  // namespace stag
