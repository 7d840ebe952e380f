// Registered memory of the C API.
//
// Thread: any. Its uses are counted by the threads that begin and end calls and replies.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/reason.h"
#include "c/support.h"
#include "endpoint/loops.h"
#include "endpoint/registered_memory.h"

struct stag_memory {
  // `of`: those of its client or server.
  stag_memory(std::shared_ptr<stag::endpoint::Loops> of, stag::MutableBytes range,
              std::uint32_t rights)
      : loops(std::move(of)), memory(range), access(rights) {}

  // Kept, so that nobody else's are ever at their address: they tell whose the memory is.
  const std::shared_ptr<stag::endpoint::Loops> loops;
  const stag::MutableBytes memory;
  const std::uint32_t access;
  std::optional<stag::endpoint::RegisteredMemory> kept;
  std::atomic<std::size_t> uses{0};
};

namespace stag::c {

// What stag_memory_register() and its like of servers do.
stag_error register_memory(const std::shared_ptr<endpoint::Loops>& loops, MutableBytes memory,
                           std::uint32_t access, stag_memory** registered);
// Why a device has not registered memory.
stag_error registration_error(Reason reason);

// What is wrong with bulk that is said to lie in `memory`, which a client or server with these
// `loops` is to use for `access`; empty: nothing, or there is no such memory.
std::string_view memory_fault(const stag_memory* memory, const endpoint::Loops& loops, Bytes bulk,
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
