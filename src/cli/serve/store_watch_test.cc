#include "cli/serve/store_watch.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/late_detail.h"
#include "base/reason.h"
#include "testing/manual_loop.h"

namespace stag::cli {
namespace {

using namespace std::chrono_literals;

class StoreWatchTest : public ::testing::Test {
 protected:
  ~StoreWatchTest() override { answer(); }
  static TimePoint now() {
    return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
  }
  static std::uint64_t count(Reason reason) { return reason_counters().of(reason); }
  // Something that it does not answer before answer().
  void ask(const std::shared_ptr<net::WorkerPool>& workers, const void* client = nullptr) {
    std::promise<void> begun;
    Executor::Job job;
    job.work = [&begun, answered = answered_future_] {
      begun.set_value();
      answered.wait();
    };
    job.client = client;
    job.deliver = [](void*, Executor::Function) {};
    ASSERT_TRUE(workers->submit(std::move(job)));
    begun.get_future().wait();
  }
  void answer() {
    if (!std::exchange(has_answered_, true)) answered_.set_value();
  }

  StoreWatch stores{10s, 2 << 20};
  StoreWorkers workers = stores.make("export /slow");

 private:
  std::promise<void> answered_;
  const std::shared_future<void> answered_future_{answered_.get_future()};
  bool has_answered_ = false;
};

TEST_F(StoreWatchTest, names_the_client_whose_work_is_refused) {
  static const char client = 'c';
  stores.name_clients_by(
      [](const void* of) { return std::string(of == &client ? "rdma 192.0.2.7:1023" : "?"); });
  net::WorkerOptions none;
  none.limits.waiting_each = 0;
  none.name = "export /full";
  const auto full = stores.make(none);
  static std::vector<std::string> told;
  told.clear();
  set_trace_sink([](Reason, std::string_view where, std::string_view) {
    told.push_back(std::string(where) + ": " + late_detail());
  });
  const auto submit = [&] {
    Executor::Job job;
    job.work = [] {};
    job.deliver = [](void*, Executor::Function) {};
    job.client = &client;
    return full->submit(std::move(job));
  };
  EXPECT_FALSE(submit());
  stores.name_clients_by({});
  EXPECT_FALSE(submit());
  set_trace_sink(nullptr);
  EXPECT_EQ(told, (std::vector<std::string>{"export /full: rdma 192.0.2.7:1023: 0 of 0 that wait",
                                            "export /full: "}));
}

TEST_F(StoreWatchTest, reports_a_store_that_hangs_once_and_again_when_it_answers) {
  ask(workers.syncing);
  const std::uint64_t hangs = count(Reason::StoreHangs), answers = count(Reason::StoreAnswers);
  stores.look(now());
  EXPECT_EQ(count(Reason::StoreHangs), hangs) << "it has ten seconds";
  for (int second = 10; second < 13; ++second) stores.look(now() + std::chrono::seconds(second));
  EXPECT_EQ(count(Reason::StoreHangs), hangs + 1);
  EXPECT_EQ(stores.busy(), "export /slow");
  EXPECT_EQ(count(Reason::StoreAnswers), answers);
  answer();
  while (!stores.busy().empty()) std::this_thread::yield();
  stores.look(now());
  EXPECT_EQ(count(Reason::StoreAnswers), answers + 1);
}

TEST_F(StoreWatchTest, does_not_wait_for_a_store_longer_than_its_time_limit) {
  std::promise<void> may_end;
  StoreWatch impatient{1ms, 2 << 20};
  const auto late = impatient.ask("export /slow", [end = may_end.get_future().share()] {
    end.wait();
    return 1;
  });
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error(), StoreWatch::Silence::NoAnswer);
  EXPECT_EQ(impatient.busy(), "export /slow");
  may_end.set_value();
  while (!impatient.busy().empty()) std::this_thread::yield();
  const auto in_time = stores.ask("export /fast", [] { return 2; });
  ASSERT_TRUE(in_time.ok());
  EXPECT_EQ(*in_time, 2);
}

TEST_F(StoreWatchTest, asks_stores_at_once_and_waits_for_all_as_long_as_for_one) {
  std::promise<void> second, may_end;
  const auto slow = [end = may_end.get_future().share()] { return end.wait(), 0; };
  std::vector<std::pair<StoreWatch::Subject, std::function<int()>>> questions;
  questions.emplace_back("export /first", [asked = second.get_future().share()] {
    asked.wait();
    return 1;
  });
  questions.emplace_back("export /second", [&] { return second.set_value(), 2; });
  questions.emplace_back("export /third", slow);
  questions.emplace_back("export /fourth", slow);
  StoreWatch patient{1s, 2 << 20};
  const auto answers = patient.ask_all(questions);
  ASSERT_EQ(answers.size(), 4u);
  ASSERT_TRUE(answers[0].ok()) << "the second is asked while it does not answer";
  EXPECT_EQ(*answers[0], 1);
  ASSERT_TRUE(answers[1].ok());
  EXPECT_EQ(*answers[1], 2);
  for (const auto& late : {answers[2], answers[3]}) {
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.error(), StoreWatch::Silence::NoAnswer);
  }
  EXPECT_EQ(patient.busy(), "export /third, export /fourth");
  may_end.set_value();
}

TEST_F(StoreWatchTest, asks_nothing_again_that_a_store_has_not_answered_yet) {
  std::promise<void> may_end;
  StoreWatch impatient{1ms, 2 << 20};
  const auto hanging = [end = may_end.get_future().share()] { return end.wait(), 0; };
  using Subject = StoreWatch::Subject;
  const auto ask_about = [&](const char* folder) {
    const auto answer = impatient.ask(Subject("export /slow", folder), hanging);
    EXPECT_FALSE(answer.ok());
  };
  const auto under_way = [&] { return impatient.queues(now()).at(0).plain.under_way; };
  for (int i = 0; i < 10; ++i) ask_about("/folder");
  while (under_way() == 0) std::this_thread::yield();
  EXPECT_EQ(under_way(), 1u);
  EXPECT_TRUE(stores.ask(Subject("export /slow", "/folder"), [] { return 1; }).ok());
  ask_about("/folder, mounted anew");
  while (under_way() == 1) std::this_thread::yield();
  EXPECT_EQ(under_way(), 2u) << "it may be another one";
  for (int i = 0; i < 20; ++i) ask_about(std::to_string(i).c_str());
  while (under_way() < 8) std::this_thread::yield();
  EXPECT_EQ(under_way(), 8u);
  may_end.set_value();
  while (!impatient.busy().empty()) std::this_thread::yield();
  StoreWatch patient{10s, 2 << 20};
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(patient.ask(Subject("export /slow", "/folder"), hanging).ok());
}

TEST_F(StoreWatchTest, leaves_no_thread_behind_what_a_store_has_answered) {
  const auto asking = stores.ask("export /fast", [] { return ::gettid(); });
  ASSERT_TRUE(asking.ok());
  EXPECT_NE(*asking, ::gettid());
  // The kernel takes a thread that was joined out of its table a little later.
  while (::syscall(SYS_tgkill, ::getpid(), *asking, 0) == 0) std::this_thread::yield();
  EXPECT_EQ(stores.queues(now()).size(), 1u) << "the workers of /slow";
}

TEST_F(StoreWatchTest, keeps_the_workers_of_a_store_until_it_answers_although_its_export_is_gone) {
  ask(workers.plain);
  const std::weak_ptr<net::WorkerPool> plain = workers.plain;
  workers = {};
  stores.look(now());
  EXPECT_FALSE(plain.expired());
  answer();
  while (!stores.busy().empty()) std::this_thread::yield();
  stores.look(now());
  EXPECT_TRUE(plain.expired());
}

TEST_F(StoreWatchTest, has_other_workers_whose_owner_waits_for_their_work) {
  net::WorkerOptions options;
  options.name = StoreWatch::state_directory("/state");
  auto others = stores.make(options);
  std::atomic<bool> done = false;
  Executor::Job job;
  job.work = [&done] {
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    done = true;
  };
  job.deliver = [](void*, Executor::Function) {};
  ASSERT_TRUE(others->submit(std::move(job)));
  const std::vector<StoreQueues> queues = stores.queues(now());
  ASSERT_EQ(queues.size(), 2u);
  EXPECT_EQ(queues[1].name, "state directory /state");
  others.reset();
  EXPECT_TRUE(done);
  stores.look(now());
  EXPECT_EQ(stores.queues(now()).size(), 1u);
}

TEST_F(StoreWatchTest, adds_up_the_queues_of_stores_of_one_name) {
  const StoreWorkers again = stores.make("export /slow");
  const StoreWorkers other = stores.make("export /other");
  ask(workers.plain);
  ask(again.syncing);
  ask(again.plain);
  ask(again.plain);
  ask(workers.syncing);
  const TimePoint at = now();
  const std::vector<StoreQueues> queues = stores.queues(at);
  ASSERT_EQ(queues.size(), 2u);
  EXPECT_EQ(queues[0].name, "export /other");
  EXPECT_EQ(queues[0].plain.under_way, 0u);
  EXPECT_EQ(queues[1].name, "export /slow");
  EXPECT_EQ(queues[1].plain.under_way, 3u);
  EXPECT_EQ(queues[1].syncing.under_way, 2u);
  EXPECT_EQ(queues[1].plain.oldest, workers.plain->look(at).oldest);
  EXPECT_EQ(queues[1].syncing.oldest, again.syncing->look(at).oldest);
}

TEST_F(StoreWatchTest, keeps_a_part_of_the_data_that_waits_for_a_store_that_hangs) {
  for (int i = 0; i < 8; ++i) ask(workers.plain, i % 2 == 0 ? &stores : nullptr);
  std::atomic<int> refused = 0;
  const auto write = [&](int connection) {
    Executor::Job job;
    job.work = [] {};
    job.client = &workers + connection;
    job.bytes = 1 << 19;
    job.context = &refused;
    job.deliver = [](void* count, Executor::Function) { ++*static_cast<std::atomic<int>*>(count); };
    return workers.plain->submit(std::move(job));
  };
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(write(i)) << "it may only be slow";
  stores.look(now());
  EXPECT_EQ(refused, 0);
  stores.look(now() + 2s);
  EXPECT_EQ(refused, 3) << "of five halves of a MiB one MiB stays";
  answer();
  while (!stores.busy().empty()) std::this_thread::yield();
  EXPECT_EQ(refused, 5) << "the two were written";
}

TEST(StoreRounds, go_on_behind_one_that_there_was_no_memory_for) {
  testing::ManualLoop loop;
  int looked = 0;
  int closed = 0;
  const StoreRounds rounds(
      loop,
      [&] {
        if (++looked == 1) throw std::bad_alloc();
      },
      [&] { ++closed; });
  EXPECT_THROW(loop.pass(1s), std::bad_alloc);
  loop.pass(1s);
  EXPECT_EQ(looked, 2);
  loop.pass(8s);
  EXPECT_EQ(closed, 1);
}

}  // namespace
}  // namespace stag::cli
