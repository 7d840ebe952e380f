#include "cli/support/output.h"

#include <fcntl.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "cli/support/journal.h"
#include "cli/support/local_file.h"
#include "cli/support/log_sink.h"

namespace stag::cli {
namespace {

int first_output_error = 0;
UniqueFunction<void()> tell_of_lost_output;

void note_output_error() {
  if (first_output_error != 0) return;
  first_output_error = errno;
  if (tell_of_lost_output) tell_of_lost_output();
}

// Never destroyed: threads that main() does not wait for may still use it.
LogSink& unwaiting_sink(int fd, int priority) {
  auto sink = std::make_unique<LogSink>(fd, [](std::uint64_t count) {
    return fmt::format("{} lines before this one are lost", count);
  });
  sink->set_pattern(journal_prefix(fd, priority) + "%v");
  return *sink.release();
}

void offer(LogSink& sink, std::string_view line) {
  sink.log({spdlog::string_view_t(), spdlog::level::info, {line.data(), line.size()}});
}

}  // namespace

void write_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) note_output_error();
}

void write_error(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
  std::fflush(stderr);
}

void offer_out(std::string_view line) {
  static LogSink& sink = unwaiting_sink(STDOUT_FILENO, LOG_INFO);
  offer(sink, line);
}

void offer_error(std::string_view line) {
  static LogSink& sink = unwaiting_sink(STDERR_FILENO, LOG_WARNING);
  offer(sink, line);
}

void on_lost_output(UniqueFunction<void()> tell) {
  tell_of_lost_output = std::move(tell);
}

bool flush_out() {
  if (std::fflush(stdout) != 0) note_output_error();
  return first_output_error == 0;
}

std::optional<std::string> output_trouble() {
  if (flush_out()) return std::nullopt;
  if (first_output_error == EPIPE) return "";
  return local_trouble("write", "standard output", first_output_error);
}

void occupy_standard_descriptors() {
  // For the other direction than is usual, so that using them fails.
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(number, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

}  // namespace stag::cli
