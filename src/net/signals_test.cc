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

}  // namespace
}  // namespace stag::net
