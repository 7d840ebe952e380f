// Tells the address sanitizer which bytes belong to nobody although they are not freed: an access
// to them is reported like one to freed memory. Nothing in other builds. Thread: any that owns the
// bytes.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define STAG_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STAG_ADDRESS_SANITIZER
#endif
#endif

#ifdef STAG_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace stag {

#ifdef STAG_ADDRESS_SANITIZER
inline constexpr bool kPoisons = true;
inline void poison(const void* from, std::size_t bytes) {
  __asan_poison_memory_region(from, bytes);
}
inline void unpoison(const void* from, std::size_t bytes) {
  __asan_unpoison_memory_region(from, bytes);
}
#else
inline constexpr bool kPoisons = false;
inline void poison(const void*, std::size_t) {}
inline void unpoison(const void*, std::size_t) {}
#endif

}  // namespace stag
