// Replaces operator new and delete of the whole program: the n-th allocation of a thread that asked
// for it fails, and what is allocated is counted. One source of a test program includes this, and
// only one, called allocation_test.cc (see testing/counted_new.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace stag::testing {

// Of this thread: allocations until one fails; 0: none does.
inline thread_local std::size_t allocations_until_failure = 0;
// Whether all behind that one fail, too, until allocations_until_failure is set again.
inline thread_local bool failure_lasts = false;
inline thread_local std::size_t failed_allocations = 0;
inline std::atomic<std::ptrdiff_t> live_allocations{0};

}  // namespace stag::testing

void* operator new(std::size_t size) {
  using namespace stag::testing;
  if (allocations_until_failure != 0 && --allocations_until_failure == 0) {
    if (failure_lasts) allocations_until_failure = 1;
    ++failed_allocations;
    throw std::bad_alloc();
  }
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  live_allocations.fetch_add(1, std::memory_order_relaxed);
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return ::operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr) stag::testing::live_allocations.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  ::operator delete(memory);
}
