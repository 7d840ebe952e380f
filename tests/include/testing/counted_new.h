// Replaces operator new and delete of the whole program by ones that count. One source of a test
// program includes this, and only one: [replacement.functions] forbids them to be inline. The
// thread sanitizer has its own, so such a source is called allocation_test.cc, which is left out
// there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace stag::testing {

inline std::atomic<std::size_t> heap_allocations{0};

}  // namespace stag::testing

void* operator new(std::size_t size) {
  stag::testing::heap_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  std::abort();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return ::operator new(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
