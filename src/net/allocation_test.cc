// What goes on where memory runs out. The whole program's operator new fails when told to.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/reason.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/socket_address.h"
#include "testing/failing_new.h"

namespace stag::net {
namespace {

using testing::allocations_until_failure;

// No descriptor is left while this lives.
class NoFiles {
 public:
  NoFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const UniqueFd next(::dup(0));
    rlimit low = before_;
    low.rlim_cur = static_cast<rlim_t>(next.fd());
    setrlimit(RLIMIT_NOFILE, &low);
  }
  ~NoFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoFiles(const NoFiles&) = delete;

 private:
  rlimit before_;
};

// Turns of the loop, which ask for no memory, until `over`.
template <class Over>
struct Turns {
  void next() {
    if (over()) return loop.stop();
    loop.post([this] { next(); });
  }
  EpollLoop& loop;
  Over over;
};
template <class Over>
void turn_until(EpollLoop& loop, Over over) {
  Turns<Over> turns{loop, over};
  turns.next();
  loop.run();
}

// As many as a loop has room for.
std::vector<Timer> as_many_timers_as_need_no_memory(EpollLoop& loop) {
  constexpr std::size_t kMost = 16 << 10;
  std::vector<Timer> timers;
  timers.reserve(kMost);
  testing::failed_allocations = 0;
  testing::failure_lasts = true;
  allocations_until_failure = 1;
  for (std::size_t i = 0; i < kMost; ++i)
    timers.push_back(loop.after(std::chrono::hours(1), [] {}));
  allocations_until_failure = 0;
  testing::failure_lasts = false;
  return timers;
}

TEST(LoopWithoutMemory, sets_thousands_of_timers) {
  EpollLoop loop;
  const std::vector<Timer> timers = as_many_timers_as_need_no_memory(loop);
  EXPECT_EQ(testing::failed_allocations, 0u);
}

void accept_behind_a_moment_without_anything() {
  EpollLoop loop;
  const std::vector<Timer> timers = as_many_timers_as_need_no_memory(loop);
  auto listener = TcpListener::listen(loop, {"127.0.0.1", 0});
  ASSERT_TRUE(listener.ok());
  int accepted = 0;
  listener->start([&](AcceptedSocket) { ++accepted; });
  const SocketAddress at = *numeric_address(listener->local());
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.fd(), at.data(), at.size()), 0);
  {
    const NoFiles none;
    const std::uint64_t before = reason_counters().of(Reason::TooManyOpenFiles);
    testing::failure_lasts = true;
    allocations_until_failure = 1;
    turn_until(loop, [&] { return reason_counters().of(Reason::TooManyOpenFiles) > before; });
    EXPECT_GT(testing::failed_allocations, 0u) << "the test is about something";
    allocations_until_failure = 0;
  }
  const TimePoint limit = loop.now() + std::chrono::seconds(20);  // only a failing test waits
  turn_until(loop, [&] { return accepted > 0 || loop.now() > limit; });
  EXPECT_EQ(accepted, 1);
}

TEST(ListenerWithoutMemory, accepts_again_although_there_was_no_memory_for_its_pause) {
  // A thread's free lists begin empty.
  std::thread(accept_behind_a_moment_without_anything).join();
}

}  // namespace
}  // namespace stag::net
