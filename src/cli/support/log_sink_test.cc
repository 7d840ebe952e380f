// Lines for a reader that stands still.
#include "cli/support/log_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/unique_fd.h"

namespace stag::cli {
namespace {

class LogSinkTest : public ::testing::Test {
 protected:
  LogSinkTest() {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    from = net::UniqueFd(pipe[0]);
    to = net::UniqueFd(pipe[1]);
    EXPECT_EQ(::fcntl(from.fd(), F_SETFL, O_NONBLOCK), 0);
    logger.emplace("test", std::make_shared<LogSink>(to.fd(), [](std::uint64_t count) {
                     return std::to_string(count) + " lost";
                   }));
    logger->set_pattern("%v");
  }
  std::string read_all() {
    std::string text;
    std::array<char, 65536> some{};
    for (ssize_t count = 0; (count = ::read(from.fd(), some.data(), some.size())) > 0;)
      text.append(some.data(), static_cast<std::size_t>(count));
    return text;
  }
  static std::size_t lines(std::string_view text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  net::UniqueFd from, to;
  std::optional<spdlog::logger> logger;
};

TEST_F(LogSinkTest, lines_come_as_they_are) {
  logger->info("one");
  logger->info("two");
  EXPECT_EQ(read_all(), "one\ntwo\n");
}
TEST_F(LogSinkTest, lines_that_a_full_pipe_does_not_take_are_lost_and_counted) {
  const std::string line(99, 'x');
  constexpr int kLines = 2000;  // a pipe takes 64 KiB
  for (int i = 0; i < kLines; ++i) logger->info("{}", line);
  const std::size_t taken = lines(read_all());
  ASSERT_LT(taken, kLines);
  logger->info("again");
  EXPECT_EQ(read_all(), std::to_string(kLines - taken) + " lost\nagain\n");
  logger->info("and on");
  EXPECT_EQ(read_all(), "and on\n");
}
TEST_F(LogSinkTest, what_came_of_a_line_is_not_taken_for_the_next_one) {
  ASSERT_EQ(::fcntl(to.fd(), F_SETPIPE_SZ, 8192), 8192);
  logger->info("{}", std::string(20000, 'x'));
  EXPECT_EQ(read_all(), std::string(8192, 'x'));
  logger->info("again");
  EXPECT_EQ(read_all(), "\n1 lost\nagain\n");
}

}  // namespace
}  // namespace stag::cli
