#include "cli/support/log_sink.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace stag::cli {
namespace {

bool takes_bytes(int fd) {
  pollfd asked{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&asked, 1, 0) == 1 && (asked.revents & POLLOUT) != 0;
}

}  // namespace

LogSink::LogSink(int fd, std::function<std::string(std::uint64_t count)> lost)
    : fd_(fd), lost_text_(std::move(lost)) {}

void LogSink::sink_it_(const spdlog::details::log_msg& line) {
  if (lost_ > 0) {
    const std::string text = lost_text_(lost_);
    if (!write({line.logger_name, spdlog::level::warn, text})) {
      ++lost_;
      return;
    }
    lost_ = 0;
  }
  if (!write(line)) ++lost_;
}

bool LogSink::write(const spdlog::details::log_msg& line) {
  spdlog::memory_buf_t text;
  formatter_->format(line, text);
  if (torn_ && !write("\n")) return false;
  torn_ = false;
  return write(std::string_view(text.data(), text.size()));
}

// A pipe or socket that poll() calls writable takes this many bytes without waiting.
bool LogSink::write(std::string_view bytes) {
  const std::size_t whole = bytes.size();
  while (!bytes.empty()) {
    const ssize_t count =
        takes_bytes(fd_) ? ::write(fd_, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF))
                         : -1;
    if (count < 0) {
      torn_ = torn_ || bytes.size() < whole;
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace stag::cli
