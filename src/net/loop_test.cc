#include "net/loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/reason.h"
#include "base/task.h"
#include "net/descriptor.h"
#include "net/signals.h"
#include "net/spin_policy.h"
#include "net/timer_heap.h"
#include "testing/scarce.h"

namespace stag::net {
namespace {

using namespace std::chrono_literals;

TEST(Loop, is_not_made_where_the_system_has_no_descriptors_or_threads_for_it) {
  if (testing::sanitizer_needs_descriptors()) GTEST_SKIP() << "the sanitizer needs descriptors";
  for (const rlim_t spare : {0, 1}) {
    const testing::FewFiles few(spare);
    EXPECT_EQ(EpollLoop::make().error(), Reason::TooManyOpenFiles);
    EXPECT_EQ(LoopThread::start().error(), Reason::TooManyOpenFiles);
  }
  const testing::FewFiles enough(2);
  EXPECT_TRUE(EpollLoop::make().ok());
  EXPECT_TRUE(LoopThread::start().ok()) << "what was opened is closed again";
  const testing::NoThreads none;
  EXPECT_EQ(LoopThread::start().error(), Reason::TooManyThreads);
  EXPECT_TRUE(EpollLoop::make().ok());
}

TEST(Loop, runs_what_is_posted_in_order_and_never_inside_post) {
  EpollLoop loop;
  std::vector<int> ran;
  loop.post([&] {
    loop.post([&] { ran.push_back(3); });
    loop.post([&] { loop.stop(); });
    ran.push_back(1);
  });
  loop.post([&] { ran.push_back(2); });
  EXPECT_TRUE(ran.empty());
  loop.run();
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3}));
}

TEST(Loop, keeps_the_order_of_each_thread_that_posts) {
  LoopThread server;
  std::vector<int> from_first;
  std::vector<int> from_second;
  const auto post_many = [&server](std::vector<int>* to) {
    for (int i = 0; i < 2000; ++i) server.loop().post([to, i] { to->push_back(i); });
  };
  std::thread first(post_many, &from_first);
  std::thread second(post_many, &from_second);
  first.join();
  second.join();
  std::promise<void> all_ran;
  server.loop().post([&] { all_ran.set_value(); });
  all_ran.get_future().wait();
  ASSERT_EQ(from_first.size(), 2000u);
  EXPECT_TRUE(std::is_sorted(from_first.begin(), from_first.end()));
  ASSERT_EQ(from_second.size(), 2000u);
  EXPECT_TRUE(std::is_sorted(from_second.begin(), from_second.end()));
}

TEST(Loop, fires_timers_by_time_and_not_before_it) {
  EpollLoop loop;
  std::vector<int> fired;
  const TimePoint start = loop.now();
  TimePoint second_at;
  const Timer late = loop.after(20ms, [&] {
    fired.push_back(2);
    second_at = loop.now();
    loop.stop();
  });
  const Timer early = loop.after(1ms, [&] { fired.push_back(1); });
  loop.run();
  EXPECT_EQ(fired, (std::vector<int>{1, 2}));
  EXPECT_GE(second_at - start, 20ms);
}

TEST(Loop, never_fires_a_timer_that_was_cancelled_or_destroyed) {
  EpollLoop loop;
  bool wrong = false;
  Timer cancelled = loop.after(1ms, [&] { wrong = true; });
  {
    const Timer destroyed = loop.after(1ms, [&] { wrong = true; });
  }
  const Timer last = loop.after(3ms, [&] { loop.stop(); });
  cancelled.cancel();
  loop.run();
  EXPECT_FALSE(wrong);
}

TEST(Loop, is_not_starved_by_a_timer_that_starts_itself_anew) {
  EpollLoop loop;
  Timer again;
  bool posted_ran = false;
  struct Self {
    EpollLoop* loop;
    Timer* timer;
    void operator()() const { *timer = loop->after(0ns, Self{loop, timer}); }
  };
  again = loop.after(0ns, Self{&loop, &again});
  const Timer post_later = loop.after(1ms, [&] {
    loop.post([&] {
      posted_ran = true;
      loop.stop();
    });
  });
  loop.run();
  EXPECT_TRUE(posted_ran);
}

TEST(Loop, offloads_to_another_thread_and_finishes_on_its_own) {
  EpollLoop loop;
  std::thread::id worked_on;
  sigset_t mask;
  loop.offload(
      [&] {
        worked_on = std::this_thread::get_id();
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
      },
      [&] {
        EXPECT_TRUE(loop.on_thread());
        loop.stop();
      });
  loop.run();
  EXPECT_NE(worked_on, std::this_thread::get_id());
  EXPECT_EQ(sigismember(&mask, SIGPIPE), 1);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 1);
  EXPECT_EQ(sigismember(&mask, SIGSEGV), 0);
}

TEST(Loop, gives_the_result_of_offloaded_work_to_a_coroutine) {
  EpollLoop loop;
  std::string result;
  const auto work = [](EpollLoop* on, std::string* to) -> Task<> {
    *to = co_await offloaded(*on, [] { return std::string("done elsewhere"); });
    co_await sleep_for(*on, 1ms);
    co_await resume_on(*on);
    on->stop();
  };
  detach(work(&loop, &result));
  loop.run();
  EXPECT_EQ(result, "done elsewhere");
}

TEST(Loop, resumes_a_coroutine_after_offloaded_work_without_a_result) {
  EpollLoop loop;
  bool worked = false;
  int caught = 0;
  const auto body = [](EpollLoop* on, bool* done, int* what) -> Task<> {
    co_await offloaded(*on, [done] { *done = true; });
    EXPECT_TRUE(*done && on->on_thread());
    try {
      co_await offloaded(*on, [] { throw 7; });
    } catch (int thrown) {
      *what = thrown;
    }
    on->stop();
  };
  loop.post([&] { detach(body(&loop, &worked, &caught)); });
  loop.run();
  EXPECT_EQ(caught, 7);
}

TEST(Loop, goes_on_after_a_function_that_throws) {
  const std::uint64_t before = reason_counters().of(Reason::LoopFunctionFailed);
  EpollLoop loop;
  std::vector<int> ran;
  loop.post([] { throw 1; });
  loop.post([&] { ran.push_back(1); });
  const Timer first = loop.after(1ms, [] { throw 2; });
  const Timer second = loop.after(2ms, [&] { ran.push_back(2), loop.stop(); });
  loop.run();
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
  EXPECT_EQ(reason_counters().of(Reason::LoopFunctionFailed), before + 2);
}

TEST(Loop, throws_what_offloaded_work_threw_where_it_is_awaited) {
  EpollLoop loop;
  int caught = 0;
  const auto body = [](EpollLoop* on, int* what) -> Task<> {
    try {
      static_cast<void>(co_await offloaded(*on, []() -> int { throw 7; }));
    } catch (int thrown) {
      *what = thrown;
    }
    on->stop();
  };
  loop.post([&] { detach(body(&loop, &caught)); });
  loop.run();
  EXPECT_EQ(caught, 7);
}

TEST(WorkerPool, goes_on_after_a_job_that_throws) {
  EpollLoop loop;
  loop.post([&loop] { loop.offload([] { throw 1; }, [&loop] { loop.stop(); }); });
  loop.run();
}

TEST(Loop, waits_for_offloaded_work_before_it_is_gone) {
  std::promise<void> may_end;
  std::atomic<bool> ended = false;
  std::thread releaser;
  {
    EpollLoop loop;
    loop.offload(
        [&] {
          may_end.get_future().wait();
          ended = true;
        },
        [] {});
    releaser = std::thread([&] { may_end.set_value(); });
  }
  EXPECT_TRUE(ended);
  releaser.join();
}

TEST(Loop, serves_events_while_it_polls_busily) {
  EpollLoop loop({nullptr, 200});
  int fired = 0;
  std::thread poster;
  const Timer first = loop.after(1ms, [&] {
    ++fired;
    poster = std::thread([&] {
      loop.post([&] {
        ++fired;
        loop.stop();
      });
    });
  });
  loop.run();
  poster.join();
  EXPECT_EQ(fired, 2);
}

// Reads a byte at a time of what is there, and says each time that there is no more.
struct ByteReader final : Reader {
  ByteReader(EpollLoop& loop, int fd) : descriptor(*Descriptor::watch(loop, UniqueFd(fd))) {}
  void on_readable() override {
    std::byte one;
    if (read(descriptor.fd(), &one, 1) == 1) {
      descriptor.mark_read();
      ++bytes;
    }
    descriptor.mark_unreadable();
    descriptor.when_readable(*this);
    if (then) then();
  }

  Descriptor descriptor;
  int bytes = 0;
  std::function<void()> then;
};

TEST(Loop, tells_others_while_one_descriptor_alone_has_been_bringing_bytes) {
  constexpr int kBytes = 100'000;
  EpollLoop loop({nullptr, 200});
  std::array<int, 2> busy{}, quiet{};
  ASSERT_EQ(pipe2(busy.data(), O_NONBLOCK), 0);
  ASSERT_EQ(pipe2(quiet.data(), O_NONBLOCK), 0);
  const UniqueFd to_busy(busy[1]), to_quiet(quiet[1]);
  ASSERT_GT(fcntl(busy[1], F_SETPIPE_SZ, kBytes), 0);
  const std::vector<std::byte> bytes(kBytes);
  ASSERT_EQ(write(busy[1], bytes.data(), bytes.size()), kBytes);
  ByteReader much(loop, busy[0]), little(loop, quiet[0]);
  much.then = [&] {
    if (much.bytes == 1000) {
      EXPECT_EQ(write(to_quiet.fd(), bytes.data(), 1), 1);
    }
    if (much.bytes == kBytes) loop.stop();
  };
  little.then = [&loop] { loop.stop(); };
  loop.post([&] {
    much.descriptor.when_readable(much);
    little.descriptor.when_readable(little);
  });
  // It may be told once that nothing is there, when it begins to wait.
  while (little.bytes == 0 && much.bytes < kBytes) loop.run();
  EXPECT_EQ(little.bytes, 1);
  EXPECT_LT(much.bytes, kBytes);
}

TEST(Loop, can_be_stopped_before_it_runs_and_run_again) {
  EpollLoop loop;
  int ran = 0;
  loop.post([&] { ++ran; });
  loop.stop();
  loop.run();
  EXPECT_EQ(ran, 0);
  for (int run = 1; run <= 3; ++run) {
    loop.post([&] { ++ran, loop.stop(); });
    loop.run();
    EXPECT_EQ(ran, run + 1) << "with what was posted before, too";
  }
}

TEST(SpinPolicy, stops_polling_where_nothing_comes_and_tries_again_later) {
  SpinPolicy policy{Duration::zero()};
  int looks = 0;
  for (; policy.worthwhile(); ++looks) {
    ASSERT_LT(looks, 100);
    policy.found(false);
  }
  EXPECT_GT(looks, 1);
  int sleeps = 1;
  for (; !policy.worthwhile(); ++sleeps) ASSERT_LT(sleeps, 10'000);
  EXPECT_GT(sleeps, 10);
  policy.found(true);
  EXPECT_TRUE(policy.worthwhile());
  policy.found(false);
  EXPECT_FALSE(policy.worthwhile());
}

TEST(SpinPolicy, never_stops_polling_where_a_time_was_set) {
  SpinPolicy policy{std::chrono::microseconds(7)};
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(policy.worthwhile());
    policy.found(false);
  }
  EXPECT_EQ(policy.limit(), std::chrono::microseconds(7));
}

TEST(SignalWatch, hands_a_signal_to_the_loop_and_gives_it_back) {
  EpollLoop loop;
  int seen = 0;
  {
    SignalWatch watch(loop, {SIGHUP, SIGUSR1}, [&](int number) {
      seen = number;
      loop.stop();
    });
    loop.post([] { kill(getpid(), SIGHUP); });
    loop.run();
  }
  EXPECT_EQ(seen, SIGHUP);
  struct sigaction action;
  sigaction(SIGHUP, nullptr, &action);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
}

bool is_blocked(int number) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, number) == 1;
}

TEST(SignalWatch, takes_what_was_held_before_it_and_holds_it_afterwards) {
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  hold_signal(SIGHUP);
  kill(getpid(), SIGHUP);
  EpollLoop loop;
  int seen = 0;
  {
    SignalWatch watch(loop, {SIGHUP}, [&](int number) {
      seen = number;
      loop.stop();
    });
    EXPECT_FALSE(is_blocked(SIGHUP));
    loop.run();
  }
  EXPECT_EQ(seen, SIGHUP);
  EXPECT_TRUE(is_blocked(SIGHUP));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(TimerHeap, takes_timers_in_time_order_whatever_was_added_and_cancelled) {
  TimerHeap heap;
  std::vector<std::pair<int, std::uint64_t>> timers;
  std::vector<int> ran;
  std::uint32_t random = 12345;
  for (int i = 0; i < 500; ++i) {
    random = random * 1664525 + 1013904223;
    const int when = static_cast<int>(random >> 24);
    timers.emplace_back(when,
                        heap.add(TimePoint(Duration(when)), [&ran, when] { ran.push_back(when); }));
  }
  std::vector<int> expected;
  for (std::size_t i = 0; i < timers.size(); ++i)
    if (i % 3 == 0) {
      heap.cancel(timers[i].second);
    } else {
      expected.push_back(timers[i].first);
    }
  std::sort(expected.begin(), expected.end());
  while (auto function = heap.take_due(TimePoint(Duration(1000)), heap.newest())) function();
  EXPECT_EQ(ran, expected);
  EXPECT_FALSE(heap.earliest().has_value());
}

TEST(TimerHeap, ignores_an_old_id_whose_slot_is_used_again) {
  TimerHeap heap;
  const std::uint64_t first = heap.add(TimePoint(Duration(1)), [] {});
  heap.cancel(first);
  const std::uint64_t second = heap.add(TimePoint(Duration(2)), [] {});
  heap.cancel(first);
  EXPECT_NE(first, second);
  EXPECT_EQ(heap.earliest(), TimePoint(Duration(2)));
}

}  // namespace
}  // namespace stag::net
