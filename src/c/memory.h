// Registered memory of the C API.
//
// Thread: any. Its uses are counted by the threads that begin and end calls and replies.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>

#include "c/support.h"
#include "endpoint/kept_memory.h"

struct stag_memory {
  // `belongs_to`: the client or the server; compared, never followed.
  stag_memory(const void* belongs_to, stag::MutableBytes range, std::uint32_t rights)
      : owner(belongs_to), memory(range), access(rights) {}

  const void* const owner;
  const stag::MutableBytes memory;
  const std::uint32_t access;
  std::unique_ptr<stag::endpoint::KeptMemory> kept;
  std::atomic<std::size_t> uses{0};
};

namespace stag::c {

// What stag_memory_register() and its like of servers do.
stag_error register_memory(const void* owner, const std::shared_ptr<endpoint::Loops>& loops,
                           MutableBytes memory, std::uint32_t access, stag_memory** registered);

// What is wrong with bulk that is said to lie in `memory`, of `owner`, to be used for `access`;
// empty: nothing, or there is no such memory.
std::string_view memory_fault(const stag_memory* memory, const void* owner, Bytes bulk,
                              std::uint32_t access);

// From begin_use() to end_use() it cannot be released. Null is ignored.
inline void begin_use(stag_memory* memory) noexcept {
  if (memory != nullptr) memory->uses.fetch_add(1, std::memory_order_relaxed);
}
inline void end_use(stag_memory* memory) noexcept {
  if (memory != nullptr) memory->uses.fetch_sub(1, std::memory_order_release);
}

// A call's registered memory; callers of older versions have none.
inline stag_memory* bulk_memory(const stag_call& call) {
  constexpr std::size_t kEnd = offsetof(stag_call, bulk_memory) + sizeof(stag_call::bulk_memory);
  return call.size < kEnd ? nullptr : call.bulk_memory;
}
inline stag_memory* results_memory(const stag_call& call) {
  constexpr std::size_t kEnd =
      offsetof(stag_call, results_bulk_memory) + sizeof(stag_call::results_bulk_memory);
  return call.size < kEnd ? nullptr : call.results_bulk_memory;
}

}  // namespace stag::c
