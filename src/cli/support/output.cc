#include "cli/support/output.h"

#include <fcntl.h>
#include <poll.h>
#include <syslog.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "base/loop.h"
#include "cli/support/journal.h"
#include "cli/support/local_file.h"
#include "cli/support/log_sink.h"
#include "cli/support/unwaiting_output.h"

namespace stag::cli {
namespace {

// How long a reader may take nothing, when the user has had enough.
constexpr auto kPatience = std::chrono::seconds(1);
constexpr int kLookMs = 100;
// Where a terminal says that it takes bytes, and then takes none of these.
constexpr int kAgainMs = 10;

int first_output_error = 0;
UniqueFunction<void()> tell_of_lost_output;

// Readable when the user has interrupted the command; -1: nobody looks.
std::atomic<int> interruption = -1;
std::atomic<bool> interrupted = false;

// Standard output or error.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}

  bool given_up() const { return given_up_; }
  // Writes all, unless it is given up. False, with errno set: it cannot be written.
  bool write(std::string_view bytes) {
    if (given_up_) return true;
    if (interruption < 0) return write_fully(fd_, std::as_bytes(std::span(bytes)), std::nullopt);
    const UnwaitingOutput output(fd_);
    std::optional<TimePoint> since;  // it takes nothing, and the command is interrupted
    bool said_ready = false;
    while (!bytes.empty()) {
      const ssize_t count = output.write(bytes);
      if (count > 0) {
        bytes.remove_prefix(static_cast<std::size_t>(count));
        since.reset();
        said_ready = false;
        continue;
      }
      if (count < 0 && errno != EAGAIN && errno != EINTR) return fails(errno);
      const auto now = std::chrono::steady_clock::now();
      if (interrupted && !since) since = now;
      given_up_ = since && now - *since >= kPatience;
      if (given_up_) return true;
      said_ready = wait(said_ready);
    }
    return true;
  }

 private:
  // A socket that nobody reads is a pipe like others.
  static bool fails(int error) {
    if (error == EPIPE) std::raise(SIGPIPE);
    errno = error;
    return false;
  }
  // Whether poll() says that bytes are taken.
  bool wait(bool said_ready) const {
    pollfd asked[] = {
        {.fd = said_ready ? -1 : fd_, .events = POLLOUT, .revents = 0},
        {.fd = interrupted ? -1 : interruption.load(), .events = POLLIN, .revents = 0}};
    const int limit = said_ready ? kAgainMs : interrupted ? kLookMs : -1;
    if (::poll(asked, std::size(asked), limit) <= 0) return false;
    if (asked[1].revents != 0) interrupted = true;
    return asked[0].revents != 0;
  }

  const int fd_;
  std::atomic<bool> given_up_ = false;
};

Output standard_output(STDOUT_FILENO);
Output standard_error(STDERR_FILENO);

std::mutex buffering;
std::array<char, std::size_t{1} << 14> buffer;
std::size_t buffered = 0;

void note_output_error() {
  if (first_output_error != 0) return;
  first_output_error = errno;
  if (tell_of_lost_output) tell_of_lost_output();
}

void write_buffered() {
  if (!standard_output.write({buffer.data(), std::exchange(buffered, 0)})) note_output_error();
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
  static const bool by_line = isatty(STDOUT_FILENO) == 1;
  const std::lock_guard lock(buffering);
  const bool now = by_line && text.find('\n') != std::string_view::npos;
  while (!text.empty()) {
    const std::size_t count = text.copy(buffer.data() + buffered, buffer.size() - buffered);
    buffered += count;
    text.remove_prefix(count);
    if (buffered == buffer.size()) write_buffered();
  }
  if (now) write_buffered();
}

void write_error(std::string_view text) {
  static_cast<void>(standard_error.write(text));
}

bool write_error_at_once(std::string_view text) {
  return UnwaitingOutput(STDERR_FILENO).write(text) > 0;
}

void look_for_interruption(int fd) {
  interruption = fd;
}

void note_interruption() {
  interrupted = true;
}

bool output_given_up() {
  return standard_output.given_up();
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
  const std::lock_guard lock(buffering);
  write_buffered();
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
