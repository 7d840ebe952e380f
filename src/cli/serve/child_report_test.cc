#include "cli/serve/child_report.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "cli/support/output.h"

namespace stag::cli {
namespace {

void nothing() {}

TEST(ChildReport, has_what_the_child_wrote_and_its_exit_code) {
  const auto report = report_of_child(nothing, [] {
    write_error("one\n");
    put("two\n");
    flush_out();
    return ChildEnd{Exit::Usage};
  });
  ASSERT_TRUE(report.ok()) << report.error();
  EXPECT_EQ(report->text, "one\ntwo\n");
  EXPECT_EQ(report->exit, Exit::Usage);
}

TEST(ChildReport, may_be_longer_than_what_a_pipe_takes_at_once) {
  const std::string line(99, 'x');
  const auto report = report_of_child(nothing, [&] {
    for (int i = 0; i < 5000; ++i) offer_error(line);
    return ChildEnd{Exit::Done};
  });
  ASSERT_TRUE(report.ok()) << report.error();
  EXPECT_EQ(report->text.size(), 5000u * 100);
  EXPECT_EQ(report->exit, Exit::Done);
}

TEST(ChildReport, says_which_signal_has_ended_the_child) {
  const auto report = report_of_child(nothing, [] {
    write_error("a folder\n");
    ::raise(SIGKILL);
    return ChildEnd{Exit::Done};
  });
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error(),
              ::testing::MatchesRegex("a folder\n.*ended by signal 9 \\(Killed\\)"));
}

TEST(ChildReport, is_no_good_one_for_a_child_whose_end_is_unknown) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const auto report = report_of_child(nothing, [] {
    ::raise(SIGKILL);
    return ChildEnd{Exit::Done};
  });
  std::signal(SIGCHLD, before);
  EXPECT_FALSE(report.ok());
}

TEST(ChildReport, is_of_a_child_that_keeps_nothing_open_of_this_process) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto report = report_of_child(
      nothing, [&] { return ChildEnd{::fcntl(ends[1], F_GETFD) < 0 ? Exit::Done : Exit::Failed}; });
  ASSERT_TRUE(report.ok()) << report.error();
  EXPECT_EQ(report->exit, Exit::Done);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(ChildReport, begins_with_what_this_process_has_open) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  bool open = false;
  const auto report = report_of_child([&] { open = ::fcntl(ends[1], F_GETFD) >= 0; },
                                      [&] { return ChildEnd{open ? Exit::Done : Exit::Failed}; });
  ASSERT_TRUE(report.ok()) << report.error();
  EXPECT_EQ(report->exit, Exit::Done);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(ChildReport, waits_for_the_end_of_a_child_unless_that_hangs) {
  ASSERT_TRUE(report_of_child(nothing, [] { return ChildEnd{Exit::Done}; }).ok());
  EXPECT_EQ(::waitpid(-1, nullptr, 0), -1) << "it has no child any more";
  const auto report = report_of_child(nothing, [] { return ChildEnd{Exit::Usage, true}; });
  ASSERT_TRUE(report.ok()) << report.error();
  EXPECT_EQ(report->exit, Exit::Usage);
  EXPECT_GT(::waitpid(-1, nullptr, 0), 0);
}

}  // namespace
}  // namespace stag::cli
