#include "net/worker_pool.h"

#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/late_detail.h"
#include "base/reason.h"
#include "base/task.h"
#include "net/loop.h"

namespace stag::net {
namespace {

using namespace std::chrono_literals;

TEST(WorkerPool, runs_jobs_at_once_but_never_more_than_its_threads) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::atomic<int> done = 0;
  std::latch two_at_once(2);
  {
    WorkerOptions options;
    options.limits.threads = 2;
    WorkerPool pool(options);
    for (int i = 0; i < 20; ++i) {
      pool.submit(
          {[&, i] {
             const int now_running = ++running;
             if (now_running > most) most = now_running;
             // Ends only if the first two run at the same time.
             if (i < 2) two_at_once.arrive_and_wait();
             --running;
           },
           {},
           [](void* counter, Executor::Function) { ++*static_cast<std::atomic<int>*>(counter); },
           &done});
    }
  }
  EXPECT_EQ(most, 2);
  EXPECT_EQ(done, 20);
}

// A pool of two workers, of which a client may have one, and a loop that uses it.
class WorkerPoolShares : public ::testing::Test {
 protected:
  static WorkerOptions options() {
    WorkerOptions options;
    options.limits.threads = 2;
    options.limits.threads_each = 1;
    options.limits.waiting_each = 1;
    options.limits.stuck_after = 10s;
    options.idle = Duration::zero();
    options.name = "export /slow";
    options.whose = [](const void* client) {
      return std::string(static_cast<const char*>(client));
    };
    return options;
  }
  // What became of work by `client`: "done", or "refused" when it was not done.
  Task<> work_for(const char* client, std::function<void()> work, std::string& result) {
    result = co_await offloaded_to(
        &pool, client, loop,
        [work = std::move(work)] {
          work();
          return std::string("done");
        },
        "refused");
    if (--open_ == 0) loop.stop();
  }
  void start(const char* client, std::function<void()> work, std::string& result) {
    ++open_;
    detach(work_for(client, std::move(work), result));
  }
  TimePoint later() const {
    return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()) + 11s;
  }

  WorkerPool pool{options()};
  EpollLoop loop;
  std::promise<void> begun, may_end;

 private:
  int open_ = 0;
};

TEST_F(WorkerPoolShares, serves_one_client_while_another_ones_work_hangs) {
  std::string hanging, other;
  start(
      "alice", [&] { may_end.get_future().wait(); }, hanging);
  start(
      "bob", [&] { may_end.set_value(); }, other);
  loop.run();
  EXPECT_EQ(hanging + " " + other, "done done");
}

TEST_F(WorkerPoolShares, refuses_and_gives_back_what_waits_for_work_that_hangs) {
  const std::uint64_t before = reason_counters().of(Reason::WorkersBusy);
  static std::vector<std::string> told;
  told.clear();
  set_trace_sink([](Reason, std::string_view where, std::string_view) {
    told.push_back(std::string(where) + ": " + late_detail());
  });
  std::string hanging, waiting, refused, late;
  start(
      "alice", [&] { begun.set_value(), may_end.get_future().wait(); }, hanging);
  begun.get_future().wait();
  start(
      "alice", [] {}, waiting);
  start(
      "alice", [] {}, refused);
  EXPECT_EQ(refused, "refused") << "one waits already";
  const WorkerPool::Load load = pool.look(later());
  EXPECT_GT(load.oldest, 10s);
  EXPECT_EQ(load.under_way, 1u);
  EXPECT_EQ(load.waiting, 0u);
  EXPECT_EQ(reason_counters().of(Reason::WorkersBusy), before + 2);
  set_trace_sink(nullptr);
  EXPECT_EQ(told, std::vector<std::string>(2,
                                           "export /slow: alice: 1 of 1 that wait; most of what is "
                                           "under way is of alice: 1 of 1"));
  loop.post([&] { may_end.set_value(); });
  loop.run();
  EXPECT_EQ(hanging + " " + waiting, "done refused");
}

TEST(WorkerPool, tells_whose_work_keeps_from_the_workers_those_it_refuses) {
  static std::vector<std::string> told;
  told.clear();
  WorkerOptions options;
  options.limits.threads = options.limits.threads_each = options.limits.waiting_each = 1;
  options.whose = [](const void* client) { return std::string(static_cast<const char*>(client)); };
  std::promise<void> begun, may_end;
  WorkerPool pool(options);
  const auto submit = [&pool](const char* client, std::function<void()> work) {
    Executor::Job job;
    job.work = std::move(work);
    job.deliver = [](void*, Executor::Function) {};
    job.client = client;
    return pool.submit(std::move(job));
  };
  EXPECT_TRUE(submit("alice", [&] { begun.set_value(), may_end.get_future().wait(); }));
  begun.get_future().wait();
  EXPECT_TRUE(submit("bob", [] {}));
  set_trace_sink([](Reason, std::string_view, std::string_view) { told.push_back(late_detail()); });
  EXPECT_FALSE(submit("bob", [] {}));
  set_trace_sink(nullptr);
  EXPECT_EQ(told, std::vector<std::string>{
                      "bob: 1 of 1 that wait; most of what is under way is of alice: 1 of 1"});
  may_end.set_value();
}

TEST_F(WorkerPoolShares, answers_otherwise_when_there_is_no_memory_for_the_work) {
  std::string result;
  start(
      "alice", [] { throw std::bad_alloc(); }, result);
  loop.run();
  EXPECT_EQ(result, "refused");
}

// The thread that it starts inherits whom the one that asks acts as.
TEST(WorkerPool, works_as_the_process_whoever_starts_it) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  WorkerPool pool;
  int user = -1, group = -1;
  std::thread([&] {
    ::setfsgid(1000);
    ::setfsuid(1000);
    Executor::Job job;
    job.work = [&] { user = ::setfsuid(-1), group = ::setfsgid(-1); };
    job.deliver = [](void*, Executor::Function) {};
    EXPECT_TRUE(pool.submit(std::move(job)));
  }).join();
  pool.finish();
  EXPECT_EQ(user, 0);
  EXPECT_EQ(group, 0);
}

TEST_F(WorkerPoolShares, keeps_no_thread_that_has_nothing_to_do) {
  for (int i = 0; i < 3; ++i) {
    std::string result;
    start(
        "alice", [] {}, result);
    loop.run();
    EXPECT_EQ(result, "done");
    while (pool.look(later()).threads > 0) std::this_thread::yield();
  }
}

}  // namespace
}  // namespace stag::net
