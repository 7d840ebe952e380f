#include "cli/support/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <mutex>

#include "base/reason.h"
#include "cli/support/escape.h"
#include "cli/support/json.h"
#include "cli/support/log_limit.h"

namespace stag::cli {
namespace {

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

void write_text(const ReasonInfo& about, std::string_view where, std::string_view detail) {
  spdlog::log(level_of(about.severity), "{}{}{}: {}{}{}{}", about.name, where.empty() ? "" : " ",
              escaped(where), about.text, detail.empty() ? "" : " (", escaped(detail),
              detail.empty() ? "" : ")");
}

void write_json(const ReasonInfo& about, std::string_view where, std::string_view detail) {
  Json json;
  json.set("reason", about.name).set("text", about.text);
  if (!where.empty()) json.set("where", where);
  if (!detail.empty()) json.set("detail", detail);
  const std::string members = json.line();
  // The pattern writes the members in front of these.
  spdlog::log(level_of(about.severity), "{}", std::string_view(members).substr(1));
}

using Writer = void (*)(const ReasonInfo&, std::string_view, std::string_view);
// That of the format.
Writer writer = write_text;

// Peers can cause most reasons as often as they like, so the lines of each are limited.
template <Writer write>
void log(Reason reason, std::string_view where, std::string_view detail) {
  if (!spdlog::should_log(level_of(info(reason).severity))) return;
  static std::mutex mutex;
  static LogLimit limit;
  const std::lock_guard lock(mutex);
  const TimePoint now = std::chrono::steady_clock::now();
  limit.settle(now, [](Reason often, std::uint64_t count) {
    write(info(often), {}, fmt::format("{} more", count));
  });
  if (limit.admit(reason, now)) write(info(reason), where, detail);
}

}  // namespace

void log_notice(const ReasonInfo& about, std::string_view where, std::string_view detail) {
  if (spdlog::should_log(level_of(about.severity))) writer(about, where, detail);
}

void set_log_level(const std::string& level) {
  spdlog::default_logger_raw()->set_level(spdlog::level::from_str(level));
}

void start_log(const std::string& level, LogFormat format) {
  const auto logger =
      std::make_shared<spdlog::logger>("stag", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(spdlog::level::from_str(level));
  const bool text = format == LogFormat::Text;
  logger->set_pattern(text ? "%Y-%m-%d %H:%M:%S.%e %-7l %v"
                           : R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v)");
  spdlog::set_default_logger(logger);
  writer = text ? write_text : write_json;
  set_trace_sink(text ? log<write_text> : log<write_json>);
}

}  // namespace stag::cli
