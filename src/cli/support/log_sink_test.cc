// Lines for a reader that stands still.
#include "cli/support/log_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <spdlog/logger.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "cli/support/event.h"

namespace stag::cli {
namespace {

// For as long as it lives nothing can be opened: as where /proc or the right to it is missing.
class NothingOpens {
 public:
  NothingOpens() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NothingOpens() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NothingOpens(const NothingOpens&) = delete;
  NothingOpens& operator=(const NothingOpens&) = delete;

 private:
  rlimit before_{};
};

class LogSinkTest : public ::testing::Test {
 protected:
  void log_to_pipe() {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    log(pipe[0], pipe[1]);
    ASSERT_EQ(::fcntl(from.fd(), F_SETFL, O_NONBLOCK), 0);
  }
  void log_to_socket() {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    log(ends[0], ends[1]);
    ASSERT_EQ(::fcntl(from.fd(), F_SETFL, O_NONBLOCK), 0);
  }
  bool log_to_terminal() {
    int emulator = -1, terminal = -1;
    if (::openpty(&emulator, &terminal, nullptr, nullptr, nullptr) != 0) return false;
    log(emulator, terminal);
    return true;
  }
  void log(int reading, int writing) {
    from = UniqueFd(reading);
    to = UniqueFd(writing);
    logger.emplace("test", std::make_shared<LogSink>(writing, [](std::uint64_t count) {
                     return std::to_string(count) + " lost";
                   }));
    logger->set_pattern("%v");
  }
  void log_lines() {
    for (int i = 0; i < kLines; ++i) logger->info("{}", line);
  }
  std::string read_some() {
    std::array<char, 65536> some{};
    const ssize_t count = ::read(from.fd(), some.data(), some.size());
    return std::string(some.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  }
  std::string read_all() {
    std::string text;
    for (std::string some; !(some = read_some()).empty();) text += some;
    return text;
  }
  static std::size_t lines(std::string_view text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  void expect_lost_lines_are_counted() {
    const std::uint64_t before = event_count(Event::LogLinesLost);
    log_lines();
    const std::size_t taken = lines(read_all());
    ASSERT_LT(taken, kLines);
    // At once: as long as the log stands still nobody reads in it that lines are missing.
    EXPECT_GE(event_count(Event::LogLinesLost) - before, kLines - taken);
    logger->info("again");
    EXPECT_TRUE(read_all().ends_with(std::to_string(kLines - taken) + " lost\nagain\n"));
    logger->info("and on");
    EXPECT_EQ(read_all(), "and on\n");
  }

  static constexpr int kLines = 20'000;  // 2 MB; a pipe takes 64 KiB, a socket some 200
  std::string line = std::string(99, 'x');
  UniqueFd from, to;
  std::optional<spdlog::logger> logger;
};

TEST_F(LogSinkTest, lines_come_as_they_are) {
  log_to_pipe();
  logger->info("one");
  logger->info("two");
  EXPECT_EQ(read_all(), "one\ntwo\n");
}
TEST_F(LogSinkTest, lines_that_a_full_pipe_does_not_take_are_lost_and_counted) {
  log_to_pipe();
  expect_lost_lines_are_counted();
  EXPECT_EQ(::fcntl(to.fd(), F_GETFL) & O_NONBLOCK, 0) << "others may write to it, too";
}
TEST_F(LogSinkTest, lines_that_a_pipe_does_not_take_are_counted_where_it_cannot_be_opened_anew) {
  log_to_pipe();  // so that UBSan has met these types: it would have to open something
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::fcntl(pipe[0], F_SETFL, O_NONBLOCK), 0);
  {
    const NothingOpens here;
    log(pipe[0], pipe[1]);
  }
  expect_lost_lines_are_counted();
}
TEST_F(LogSinkTest, lines_that_a_socket_does_not_take_are_lost_and_counted) {
  log_to_socket();
  expect_lost_lines_are_counted();
}
// Without end, if it waits.
TEST_F(LogSinkTest, lines_that_a_terminal_does_not_take_are_lost_and_counted) {
  if (!log_to_terminal()) GTEST_SKIP() << "no terminal can be had here";
  line.resize(2999, 'x');  // more than there is room for when poll() says that there is
  log_lines();
  // What was written comes later, and so may room: there is something to read, or the next line is
  // taken.
  std::string text;
  int tries = 0;
  while (text.find(".\n") == text.npos) {
    logger->info("again {}.", ++tries);
    text += read_some();
    std::erase(text, '\r');
  }
  int whole = 0, lost = 0, first = 0;
  std::istringstream seen(text);
  for (std::string each; first == 0 && std::getline(seen, each);) {
    if (each == line) ++whole;
    if (each.ends_with(" lost")) lost += std::stoi(each);
    if (each.ends_with('.')) first = std::stoi(each.substr(each.find(' ')));
  }
  EXPECT_GT(lost, 0);
  EXPECT_EQ(whole + lost, kLines + first - 1);
  EXPECT_EQ(::fcntl(to.fd(), F_GETFL) & O_NONBLOCK, 0) << "it is others' terminal, too";
}
TEST_F(LogSinkTest, what_came_of_a_line_is_not_taken_for_the_next_one) {
  log_to_pipe();
  ASSERT_EQ(::fcntl(to.fd(), F_SETPIPE_SZ, 8192), 8192);
  logger->info("{}", std::string(20000, 'x'));
  EXPECT_EQ(read_all(), std::string(8192, 'x'));
  logger->info("again");
  EXPECT_EQ(read_all(), "\n1 lost\nagain\n");
}

}  // namespace
}  // namespace stag::cli
