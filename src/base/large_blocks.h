// Memory for Blocks too large for a thread's free lists: pages of the system's own, outside the
// heap, so that pages nobody needs can be given back whatever lies beside them. The process keeps
// some for its next calls, since fresh pages cost more than copying into them; what nobody has
// taken for a while goes back (release_idle_pages()). Any thread may call; nothing waits for a
// lock.
#pragma once

#include <cstddef>

#include "base/loop.h"

namespace stag {

struct Pages {
  void* memory = nullptr;  // null: there was no memory
  std::size_t bytes = 0;   // at least those that were asked for
};
// Contents undefined.
Pages take_pages(std::size_t bytes) noexcept;
// Takes back what take_pages() returned.
void give_pages(Pages pages) noexcept;

// Bytes that are kept for later; never more than kMostKeptBytes.
std::size_t kept_page_bytes() noexcept;
inline constexpr std::size_t kMostKeptBytes = std::size_t{64} << 20;

// Pages go back to the system when nobody took them between two of these intervals.
inline constexpr Duration kIdleInterval = std::chrono::seconds(1);
// To be called now and then while kept_page_bytes() is not 0. Does nothing when kIdleInterval has
// not passed since the last time.
void release_idle_pages(TimePoint now) noexcept;
// Gives back all that is kept.
void release_kept_pages() noexcept;

}  // namespace stag
