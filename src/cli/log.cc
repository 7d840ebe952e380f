#include "cli/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/reason.h"
#include "cli/json.h"

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

void log_text(Reason reason, std::string_view where, std::string_view detail) {
  const ReasonInfo& about = info(reason);
  spdlog::log(level_of(about.severity), "{}{}{}: {}{}{}{}", about.name, where.empty() ? "" : " ",
              where, about.text, detail.empty() ? "" : " (", detail, detail.empty() ? "" : ")");
}

void log_json(Reason reason, std::string_view where, std::string_view detail) {
  const ReasonInfo& about = info(reason);
  if (!spdlog::should_log(level_of(about.severity))) return;
  Json json;
  json.set("reason", about.name).set("text", about.text);
  if (!where.empty()) json.set("where", where);
  if (!detail.empty()) json.set("detail", detail);
  const std::string members = json.line();
  // The pattern writes the members in front of these.
  spdlog::log(level_of(about.severity), "{}", std::string_view(members).substr(1));
}

}  // namespace

void start_log(const std::string& level, LogFormat format) {
  const auto logger =
      std::make_shared<spdlog::logger>("stag", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(spdlog::level::from_str(level));
  const bool text = format == LogFormat::Text;
  logger->set_pattern(text ? "%Y-%m-%d %H:%M:%S.%e %-7l %v"
                           : R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v)");
  spdlog::set_default_logger(logger);
  set_trace_sink(text ? log_text : log_json);
}

}  // namespace stag::cli
