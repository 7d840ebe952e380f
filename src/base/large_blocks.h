// Memory for Blocks that are too large for a thread's free lists: pages from the system, outside
// the heap, so that unused pages can be returned whatever lies beside them. The process keeps some
// pages for its next calls, since fresh pages cost more than copying into them; pages that were not
// used for a while go back to the system (release_idle_pages()). Thread: any; no function waits for
// a lock.
#pragma once

#include <cstddef>

#include "base/loop.h"

namespace stag {

struct Pages {
  void* memory = nullptr;  // null: there was no memory
  std::size_t bytes = 0;   // at least as many as were requested
};
// Contents undefined.
Pages take_pages(std::size_t bytes) noexcept;
// Gives back pages that take_pages() returned.
void give_pages(Pages pages) noexcept;

// Bytes that are kept for later; never more than kMostKeptBytes.
std::size_t kept_page_bytes() noexcept;
inline constexpr std::size_t kMostKeptBytes = std::size_t{64} << 20;

// Pages go back to the system when no thread took them between two of these intervals.
inline constexpr Duration kIdleInterval = std::chrono::seconds(1);
// To be called now and then while kept_page_bytes() is not 0. Does nothing when kIdleInterval has
// not passed since the last time.
void release_idle_pages(TimePoint now) noexcept;
// Gives back all that is kept.
void release_kept_pages() noexcept;

}  // namespace stag
