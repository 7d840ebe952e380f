#include "cli/support/event.h"

#include <array>
#include <atomic>

namespace stag::cli {
namespace {

constexpr std::array<ReasonInfo, kEventCount> kInfo{{
#define STAG_EVENT(name, severity, text) {#name, Severity::severity, text},
#include "cli/support/event.def"
#undef STAG_EVENT
}};

constinit std::array<std::atomic<std::uint64_t>, kEventCount> counts{};

}  // namespace

const ReasonInfo& info(Event event) {
  return kInfo[static_cast<std::size_t>(event)];
}

void count_event(Event event) {
  counts[static_cast<std::size_t>(event)].fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t event_count(Event event) {
  return counts[static_cast<std::size_t>(event)].load(std::memory_order_relaxed);
}

}  // namespace stag::cli
