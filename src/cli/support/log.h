// Log lines on standard error, in a file, or in the system's log: one for every Reason that is
// traced (base/reason.h), and for every Event, at or above a level. Names that peers have chosen
// are escaped (cli/support/escape.h).
#pragma once

#include <string>
#include <string_view>

#include "base/reason.h"
#include "cli/support/event.h"

namespace stag::cli {

enum class LogFormat { Text, Json };

// `level` is one of debug, info, warning, error and off. Before any thread is started. Where
// systemd's journal reads standard error, it is told the priority of each line (journal.h).
void start_log(const std::string& level, LogFormat format);
// The same as text, appended to an open file, which stays the caller's.
void start_file_log(const std::string& level, int fd);
// The same as by syslog(3), for a process without a terminal; each line begins with `about`, which
// says what the process does.
void start_system_log(const std::string& level, std::string_view about,
                      const std::string& path = "/dev/log");

// A line about the program itself, which no peer can cause as often as it likes: in the form of
// those of Reasons. A server's is an Event, and counted. Thread: any.
void log_notice(const ReasonInfo& about, std::string_view where, std::string_view detail = {});
void log_notice(Event event, std::string_view where, std::string_view detail = {});
// Changes the level while other threads run.
void set_log_level(const std::string& level);
// The same of the format of a log that start_log() has started: lines are of one or the other.
void set_log_format(LogFormat format);

// An Event that clients can cause: counted, and logged as a Reason is. `where` is who, `detail`
// says more. Thread: any.
void log_event(Event event, std::string_view where, std::string_view detail) noexcept;

}  // namespace stag::cli
