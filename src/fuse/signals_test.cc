#include "fuse/signals.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <sstream>

namespace stag::fuse {
namespace {

struct Sets {
  std::uint64_t of_thread = 0, of_process = 0, blocked = 0, ignored = 0, caught = 0;
};

constexpr std::uint64_t only(int signal) {
  return std::uint64_t{1} << (signal - 1);
}

bool ends(const Sets& sets) {
  std::istringstream status(fmt::format(
      "Name:\tprogram\nGroups:\t0 1 \nSigQ:\t1/47\nSigPnd:\t{:016x}\nShdPnd:\t{:016x}\n"
      "SigBlk:\t{:016x}\nSigIgn:\t{:016x}\nSigCgt:\t{:016x}\nCapInh:\t0000000000000000\n",
      sets.of_thread, sets.of_process, sets.blocked, sets.ignored, sets.caught));
  return is_to_end(status);
}

TEST(PendingSignals, end_a_wait_where_they_end_the_program) {
  for (const int signal : {SIGALRM, SIGUSR1, SIGSEGV, SIGKILL, SIGINT, SIGRTMIN, SIGRTMAX}) {
    EXPECT_TRUE(ends({.of_thread = only(signal)})) << signal;
    EXPECT_TRUE(ends({.of_process = only(signal)})) << signal;
    EXPECT_TRUE(ends({.of_process = only(signal) | only(SIGCHLD), .caught = only(SIGCHLD)}));
  }
}

TEST(PendingSignals, end_a_wait_also_when_caught_if_they_ask_the_program_to_end) {
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM})
    EXPECT_TRUE(ends({.of_process = only(signal), .caught = ~0ull})) << signal;
  for (const int signal : {SIGALRM, SIGPROF, SIGUSR1, SIGIO, SIGRTMIN})
    EXPECT_FALSE(ends({.of_process = only(signal), .caught = only(signal)})) << signal;
}

TEST(PendingSignals, end_no_wait_where_the_program_does_not_heed_them) {
  for (const int signal : {SIGCHLD, SIGCONT, SIGURG, SIGWINCH, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU})
    EXPECT_FALSE(ends({.of_thread = only(signal)})) << signal;
  EXPECT_FALSE(ends({.of_thread = only(SIGINT), .blocked = only(SIGINT)}));
  EXPECT_FALSE(ends({.of_process = only(SIGTERM), .ignored = only(SIGTERM)}));
  EXPECT_FALSE(ends({.caught = ~0ull})) << "a debugger, or the freezer";
}

TEST(PendingSignals, end_a_wait_where_they_cannot_be_known) {
  for (const char* text : {"", "Name:\tprogram\n", "SigPnd:\t0000000000000000\nShdPnd:\tnone\n"}) {
    std::istringstream status(text);
    EXPECT_TRUE(is_to_end(status)) << text;
  }
  EXPECT_TRUE(is_to_end(pid_t{0})) << "of a namespace that is not seen from here";
}

// A process that is stopped leaves what it is sent pending.
TEST(PendingSignals, are_those_of_the_thread_that_waits) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGALRM, SIGINT}) ::signal(signal, [](int) {});
    raise(SIGSTOP);
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, WUNTRACED), child);
  EXPECT_FALSE(is_to_end(child));
  kill(child, SIGALRM);
  EXPECT_FALSE(is_to_end(child));
  kill(child, SIGINT);
  EXPECT_TRUE(is_to_end(child));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(is_to_end(child)) << "nobody is there";
}

}  // namespace
}  // namespace stag::fuse
