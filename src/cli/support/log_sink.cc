#include "cli/support/log_sink.h"

#include <fmt/format.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <ctime>
#include <utility>

#include "cli/support/event.h"
#include "net/passed_sockets.h"

namespace stag::cli {
int syslog_priority(spdlog::level::level_enum level) {
  if (level >= spdlog::level::err) return LOG_ERR;
  if (level == spdlog::level::warn) return LOG_WARNING;
  return level == spdlog::level::info ? LOG_INFO : LOG_DEBUG;
}

LossySink::LossySink(LostText lost) : lost_text_(std::move(lost)) {}

void LossySink::sink_it_(const spdlog::details::log_msg& line) {
  if (lost_ > 0) {
    const std::string text = lost_text_(lost_);
    if (!take({line.logger_name, spdlog::level::warn, text})) return lose();
    lost_ = 0;
  }
  if (!take(line)) lose();
}

// Counted at once: as long as the log stands still nobody reads in it that lines are missing.
void LossySink::lose() {
  ++lost_;
  count_event(Event::LogLinesLost);
}

LogSink::LogSink(int fd, LostText lost) : LossySink(std::move(lost)), output_(fd) {}

bool LogSink::take(const spdlog::details::log_msg& line) {
  spdlog::memory_buf_t text;
  formatter_->format(line, text);
  if (torn_ && !write("\n")) return false;
  torn_ = false;
  return write(std::string_view(text.data(), text.size()));
}

bool LogSink::write(std::string_view bytes) {
  const std::size_t whole = bytes.size();
  while (!bytes.empty()) {
    // A pipe takes that many whole or not at all.
    const ssize_t count = output_.write(bytes.substr(0, PIPE_BUF));
    if (count <= 0) {
      torn_ = torn_ || bytes.size() < whole;
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

SystemLogSink::SystemLogSink(std::string path, LostText lost)
    : LossySink(std::move(lost)), path_(std::move(path)) {}

bool SystemLogSink::take(const spdlog::details::log_msg& line) {
  spdlog::memory_buf_t text;
  formatter_->format(line, text);
  const time_t now = spdlog::log_clock::to_time_t(line.time);
  tm local{};
  std::array<char, 32> stamp{};
  ::localtime_r(&now, &local);
  // RFC 3164 4.1.2, as the C library writes it.
  std::strftime(stamp.data(), stamp.size(), "%b %e %T", &local);
  return net::send_datagram(
             path_, fmt::format("<{}>{} {}[{}]: {}", LOG_DAEMON | syslog_priority(line.level),
                                stamp.data(), line.logger_name, ::getpid(),
                                std::string_view(text.data(), text.size())))
      .ok();
}

}  // namespace stag::cli
