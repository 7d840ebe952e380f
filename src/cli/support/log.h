// Log lines on standard error: one for every Reason that is traced (base/reason.h), and for every
// Event, at or above a level. Names that peers have chosen are escaped (cli/support/escape.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/reason.h"

namespace stag::cli {

enum class LogFormat { Text, Json };

// `level` is one of debug, info, warning, error and off. Before any thread is started.
void start_log(const std::string& level, LogFormat format);

// A line about the program itself, which nobody can cause as often as he likes: in the form of
// those of Reasons. Thread: any.
void log_notice(const ReasonInfo& about, std::string_view where, std::string_view detail = {});
// Changes the level while other threads run.
void set_log_level(const std::string& level);

// What a server does that is neither a drop nor an error, and that an operator may want to see.
enum class Event : std::uint8_t {
  ClientConnected,
  ClientDisconnected,
  ExportMounted,
  ExportUnmounted,
  SessionMade,
  SessionEnded,
  // These are warnings, because somebody asked for them.
  CallSlow,
  CallTraced,
  Count_,
};
// As a Reason is logged: `where` is who, `detail` says more. Thread: any.
void log_event(Event event, std::string_view where, std::string_view detail) noexcept;

}  // namespace stag::cli
