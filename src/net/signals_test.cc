#include "net/signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <new>
#include <vector>

#include "net/loop.h"

namespace stag::net {
namespace {

TEST(SignalWatch, hears_the_next_signal_although_there_was_no_memory_for_the_one_before) {
  EpollLoop loop;
  std::vector<int> heard;
  const SignalWatch watch(loop, {SIGUSR1, SIGUSR2}, [&](int signal) {
    heard.push_back(signal);
    if (signal == SIGUSR1) throw std::bad_alloc();
    loop.stop();
  });
  std::raise(SIGUSR1);
  const Timer later = loop.after({}, [] { std::raise(SIGUSR2); });
  loop.run();
  EXPECT_EQ(heard, (std::vector<int>{SIGUSR1, SIGUSR2}));
}

// As nohup(1) has SIGHUP, and a script SIGINT of what it runs in the background.
class Ignored {
 public:
  Ignored() {
    for (const int signal : {SIGHUP, SIGINT}) std::signal(signal, SIG_IGN);
  }
  ~Ignored() {
    for (const int signal : {SIGHUP, SIGINT}) std::signal(signal, SIG_DFL);
  }
  Ignored(const Ignored&) = delete;
  Ignored& operator=(const Ignored&) = delete;
};

std::vector<int> heard_of(std::initializer_list<int> requests) {
  EpollLoop loop;
  std::vector<int> heard;
  const SignalWatch watch(
      loop, {SIGHUP, SIGINT, SIGTERM},
      [&](int signal) {
        heard.push_back(signal);
        if (signal == SIGTERM) loop.stop();
      },
      requests);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) std::raise(signal);
  loop.run();
  return heard;
}

TEST(SignalWatch, leaves_SIGHUP_ignored_unless_it_is_a_request) {
  const Ignored ignored;
  EXPECT_EQ(heard_of({}), (std::vector<int>{SIGINT, SIGTERM}));
  EXPECT_EQ(heard_of({SIGHUP}), (std::vector<int>{SIGHUP, SIGINT, SIGTERM}));
  struct sigaction action {};
  sigaction(SIGHUP, nullptr, &action);
  EXPECT_EQ(action.sa_handler, SIG_IGN);
}

}  // namespace
}  // namespace stag::net
