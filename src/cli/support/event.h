// What a server does that is neither a drop nor an error, and that an operator may want to see.
// Like a Reason (base/reason.h) each Event has a name, a line of the log and a counter.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/reason.h"

namespace stag::cli {

enum class Event : std::uint8_t {
#define STAG_EVENT(name, severity, text) name,
#include "cli/support/event.def"
#undef STAG_EVENT
  Count_,
};
inline constexpr std::size_t kEventCount = static_cast<std::size_t>(Event::Count_);

// Static data.
const ReasonInfo& info(Event event);

// Of this process, whatever of it was logged. Thread: any; neither waits for another one.
void count_event(Event event);
std::uint64_t event_count(Event event);

}  // namespace stag::cli
