#include "cli/support/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>

#include "base/late_detail.h"
#include "base/reason.h"
#include "cli/support/escape.h"
#include "cli/support/journal.h"
#include "cli/support/json.h"
#include "cli/support/log_limit.h"
#include "cli/support/log_sink.h"

namespace stag::cli {
namespace {

// Of traced calls a line is wanted for each.
constexpr std::uint32_t kTracedLines = 2000;

spdlog::level::level_enum level_of(Severity severity) {
  switch (severity) {
    case Severity::Debug:
      return spdlog::level::debug;
    case Severity::Info:
      return spdlog::level::info;
    case Severity::Warning:
      return spdlog::level::warn;
    case Severity::Error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

spdlog::level::level_enum level_of(const ReasonInfo& kind) {
  return level_of(kind.severity);
}

std::string text_line(const ReasonInfo& kind, std::string_view where, std::string_view detail) {
  return fmt::format("{}{}{}: {}{}{}{}", kind.name, where.empty() ? "" : " ", escaped(where),
                     kind.text, detail.empty() ? "" : " (", escaped(detail),
                     detail.empty() ? "" : ")");
}

std::string json_line(const ReasonInfo& kind, std::string_view where, std::string_view detail) {
  Json json;
  json.set("reason", kind.name).set("text", kind.text);
  if (!where.empty()) json.set("where", where);
  if (!detail.empty()) json.set("detail", detail);
  // The pattern writes the members in front of these.
  return json.line().substr(1);
}

using Line = std::string (*)(const ReasonInfo& kind, std::string_view where,
                             std::string_view detail);
constexpr const char* kTextPattern = "%Y-%m-%d %H:%M:%S.%e %-7l %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v)";
// Held while a line is written: one that begins in one format does not end in the other.
std::mutex format_mutex;
Line line_of = text_line;  // as the format says

void write_line(const ReasonInfo& kind, std::string_view where, std::string_view detail) {
  const std::lock_guard lock(format_mutex);
  spdlog::log(level_of(kind), "{}", line_of(kind, where, detail));
}

// Asked for while another line is written.
std::string lost_line(std::uint64_t count) {
  return line_of(info(Event::LogLinesLost), {}, fmt::format("{} lines", count));
}

// Peers can cause most lines as often as they like, so those of each kind are limited.
template <class Kind, std::size_t kinds>
void log_limited(Kind kind, std::string_view where, std::string_view detail, std::uint32_t most) {
  if (!spdlog::should_log(level_of(info(kind)))) return;
  static std::mutex mutex;
  static LogLimits<Kind, kinds> limit;
  const std::lock_guard lock(mutex);
  const TimePoint now = std::chrono::steady_clock::now();
  limit.settle(now, [](Kind often, std::uint64_t count) {
    write_line(info(often), {}, fmt::format("{} more", count));
  });
  if (!limit.admit(kind, log_source(where), now, most)) return;
  if (detail.empty()) return write_line(info(kind), where, late_detail());
  write_line(info(kind), where, detail);
}

void log_reason(Reason reason, std::string_view where, std::string_view detail) {
  log_limited<Reason, kReasonCount>(reason, where, detail, LogLimit::kLines);
}

// "%*" in a pattern: the priority as sd-daemon(3) has it in front of a line.
class PriorityFlag final : public spdlog::custom_flag_formatter {
  void format(const spdlog::details::log_msg& line, const std::tm&,
              spdlog::memory_buf_t& to) override {
    fmt::format_to(std::back_inserter(to), "<{}>", syslog_priority(line.level));
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<PriorityFlag>();
  }
};

std::unique_ptr<spdlog::pattern_formatter> formatter_of(const std::string& pattern,
                                                        const std::string& end) {
  auto formatter =
      std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::local, end);
  formatter->add_flag<PriorityFlag>('*').set_pattern(pattern);
  return formatter;
}

void begin_log(spdlog::sink_ptr sink, const std::string& level, const std::string& pattern,
               Line form, const std::string& end = "\n") {
  const auto logger = std::make_shared<spdlog::logger>("stag", std::move(sink));
  logger->set_level(spdlog::level::from_str(level));
  logger->set_formatter(formatter_of(pattern, end));
  spdlog::set_default_logger(logger);
  line_of = form;
  set_trace_sink(log_reason);
}

// Of what start_log() has started.
std::string pattern_of(LogFormat format) {
  const bool text = format == LogFormat::Text;
  const std::string pattern = text ? kTextPattern : kJsonPattern;
  // The journal has the time and the priority of each line beside the text.
  if (!is_journal(STDERR_FILENO)) return pattern;
  return text ? "%*%v" : "%*" + pattern;
}

Line line_in(LogFormat format) {
  return format == LogFormat::Text ? text_line : json_line;
}

}  // namespace

void log_notice(const ReasonInfo& about, std::string_view where, std::string_view detail) {
  if (spdlog::should_log(level_of(about))) write_line(about, where, detail);
}

void log_notice(Event event, std::string_view where, std::string_view detail) {
  count_event(event);
  log_notice(info(event), where, detail);
}

void set_log_level(const std::string& level) {
  spdlog::default_logger_raw()->set_level(spdlog::level::from_str(level));
}

void start_log(const std::string& level, LogFormat format) {
  begin_log(std::make_shared<LogSink>(STDERR_FILENO, lost_line), level, pattern_of(format),
            line_in(format));
}

void set_log_format(LogFormat format) {
  auto formatter = formatter_of(pattern_of(format), "\n");
  const std::lock_guard lock(format_mutex);
  spdlog::default_logger_raw()->set_formatter(std::move(formatter));
  line_of = line_in(format);
}

void start_file_log(const std::string& level, int fd) {
  begin_log(std::make_shared<LogSink>(fd, lost_line), level, kTextPattern, text_line);
}

void start_system_log(const std::string& level, std::string_view about, const std::string& path) {
  std::string pattern;
  for (const char c : escaped(about)) pattern.append(c == '%' ? 2 : 1, c);
  constexpr const char* kNoEnd = "";
  begin_log(std::make_shared<SystemLogSink>(path, lost_line), level, pattern + ": %v", text_line,
            kNoEnd);
}

void log_event(Event event, std::string_view where, std::string_view detail) noexcept {
  count_event(event);
  try {
    log_limited<Event, kEventCount>(event, where, detail,
                                    event == Event::CallTraced ? kTracedLines : LogLimit::kLines);
  } catch (...) {
    // As with a Reason, only the line is lost.
  }
}

}  // namespace stag::cli
