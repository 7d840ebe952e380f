#include "net/job_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>

namespace stag::net {
namespace {

using namespace std::chrono_literals;

// Jobs that write their names down, and what becomes of them.
class JobQueueTest : public ::testing::Test {
 protected:
  static constexpr const char* kAlice = "alice";
  static constexpr const char* kBob = "bob";

  static WorkerLimits limits() {
    WorkerLimits limits;
    limits.threads = 4;
    limits.threads_each = 2;
    limits.waiting = 4;
    limits.waiting_each = 3;
    limits.waiting_most = 6;
    limits.stuck_after = 10s;
    limits.waiting_bytes = 100;
    limits.bytes_stuck_after = 1s;
    return limits;
  }
  bool submit(const char* client, const std::string& name, std::uint64_t bytes = 0,
              bool must_run = false) {
    Executor::Job job;
    job.bytes = bytes;
    job.work = [this, name] { log += name + " "; };
    job.done = [this, name] { log += "(" + name + ") "; };
    job.client = client;
    job.must_run = must_run;
    return queue.admit(std::move(job), now);
  }
  // What the four workers do now.
  std::size_t begin_all() {
    std::size_t count = 0;
    for (; under_way.size() < 4; ++count) {
      auto begun = queue.begin(now);
      if (!begun) break;
      begun->job.work();
      under_way.emplace_back(begun->job.client, begun->at);
    }
    return count;
  }
  void end_oldest() {
    queue.end(under_way.front().first, under_way.front().second, now);
    under_way.pop_front();
  }
  void give_back() {
    for (Executor::Job& job : queue.give_back(now)) job.done();
  }

  std::string log;
  JobQueue queue{limits()};
  TimePoint now{};
  std::deque<std::pair<const void*, TimePoint>> under_way;
};

TEST_F(JobQueueTest, lets_clients_take_turns) {
  for (const char* name : {"a1", "a2", "a3"}) submit(kAlice, name);
  submit(kBob, "b1");
  EXPECT_EQ(begin_all(), 3u);
  EXPECT_EQ(log, "a1 b1 a2 ") << "and the workers left are not for a third of alice";
  end_oldest();
  EXPECT_EQ(begin_all(), 1u);
  EXPECT_EQ(log, "a1 b1 a2 a3 ");
}

TEST_F(JobQueueTest, refuses_jobs_beyond_a_clients_bound_and_leaves_them_to_the_caller) {
  for (const char* name : {"a1", "a2"}) submit(kAlice, name);
  begin_all();
  for (const char* name : {"a3", "a4", "a5"}) EXPECT_TRUE(submit(kAlice, name));
  Executor::Job job;
  job.work = [] {};
  job.client = kAlice;
  EXPECT_FALSE(queue.admit(std::move(job), now));
  EXPECT_TRUE(static_cast<bool>(job.work));
  EXPECT_TRUE(submit(kAlice, "own", 0, true)) << "what must run is never refused";
}

TEST_F(JobQueueTest, admits_the_first_job_of_a_client_to_a_queue_that_others_have_filled) {
  for (const char* client : {kAlice, kBob})
    for (int i = 0; i < 2; ++i) submit(client, "x");
  EXPECT_EQ(begin_all(), 4u);
  for (const char* client : {kAlice, kBob})
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(submit(client, "y"));
  EXPECT_FALSE(submit(kAlice, "z")) << "four wait, two of them alice's";
  EXPECT_TRUE(submit("dave", "d"));
  EXPECT_TRUE(submit("erin", "e"));
  EXPECT_FALSE(submit("frank", "f")) << "whoever comes and goes adds no more than that";
}

// Files that calls have left to be closed: the client that calls next has asked for none of that.
TEST_F(JobQueueTest, admits_jobs_however_many_wait_that_must_run) {
  for (const char* client : {static_cast<const char*>(nullptr), kAlice})
    for (int i = 0; i < 50; ++i) EXPECT_TRUE(submit(client, "close", 0, true));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(submit(kAlice, "a"));
  EXPECT_FALSE(submit(kAlice, "a")) << "its own bound";
  EXPECT_TRUE(submit(kBob, "b"));
  EXPECT_FALSE(submit(kBob, "b")) << "those that were asked for are four";
  EXPECT_EQ(queue.refusable(), 4u);
  EXPECT_EQ(queue.refusable_of(kAlice), 3u);
  EXPECT_EQ(queue.refusable_of(nullptr), 0u);
  EXPECT_EQ(queue.waiting(), 104u);
  while (queue.waiting() > 0) {
    begin_all();
    end_oldest();
  }
  EXPECT_EQ(queue.refusable(), 0u);
  EXPECT_EQ(queue.waiting(), 0u);
}

// Where each call leaves a file to be closed, they would become more with each client.
TEST_F(JobQueueTest, gives_every_second_turn_to_jobs_of_no_client) {
  for (int i = 0; i < 8; ++i) submit(nullptr, "close", 0, true);
  for (const char* client : {kAlice, kBob, "carol", "dave"}) submit(client, client);
  const auto begin_one = [&] {
    auto begun = queue.begin(now);
    if (!begun) return;
    begun->job.work();
    queue.end(begun->job.client, begun->at, now);
  };
  for (int i = 0; i < 10; ++i) begin_one();
  EXPECT_EQ(log, "close alice close bob close carol close dave close close ");
}

TEST_F(JobQueueTest, leaves_workers_to_clients_while_jobs_of_none_hang) {
  for (int i = 0; i < 8; ++i) submit(nullptr, "close", 0, true);
  EXPECT_EQ(begin_all(), 2u);
  submit(kAlice, "a1");
  submit(kAlice, "a2");
  EXPECT_EQ(begin_all(), 2u);
  EXPECT_EQ(log, "close close a1 a2 ");
}

TEST_F(JobQueueTest, gives_back_jobs_that_wait_while_all_workers_hang) {
  for (const char* client : {kAlice, kBob})
    for (int i = 0; i < 2; ++i) submit(client, "x");
  EXPECT_EQ(begin_all(), 4u);
  for (const char* client : {kAlice, kBob}) submit(client, "y");
  log.clear();
  submit("carol", "c");
  submit("carol", "own", 0, true);
  now += 10s - 1ns;
  give_back();
  EXPECT_EQ(log, "");
  now += 1ns;
  give_back();
  EXPECT_EQ(std::count(log.begin(), log.end(), '('), 3) << log;
  EXPECT_FALSE(submit("dave", "d")) << "while they hang, nobody needs to wait in vain";
  EXPECT_EQ(queue.oldest(now), 10s);
  end_oldest();
  log.clear();
  EXPECT_TRUE(submit("dave", "d"));
  EXPECT_EQ(begin_all(), 1u);
  EXPECT_EQ(log, "own ") << "what must run has waited on";
}

TEST_F(JobQueueTest, runs_jobs_of_other_clients_while_those_of_one_hang) {
  for (const char* name : {"a1", "a2", "a3"}) submit(kAlice, name);
  begin_all();
  for (int second = 0; second < 10; ++second) {
    now += 1s;
    EXPECT_TRUE(submit(kBob, "b"));
    EXPECT_EQ(begin_all(), 1u);
    queue.end(kBob, under_way.back().second, now);
    under_way.pop_back();
  }
  log.clear();
  give_back();
  EXPECT_EQ(log, "(a3) ");
  EXPECT_FALSE(submit(kAlice, "a4"));
  EXPECT_TRUE(submit(kBob, "b"));
}

// All workers hang: two jobs are alice's and two are bob's.
class JobQueueBytesTest : public JobQueueTest {
 protected:
  JobQueueBytesTest() {
    for (const char* client : {kAlice, kBob})
      for (int i = 0; i < 2; ++i) submit(client, "x");
    begin_all();
    log.clear();
  }
};

TEST_F(JobQueueBytesTest, keeps_any_amount_of_data_waiting_while_workers_move) {
  EXPECT_TRUE(submit(kAlice, "a", 100));
  now += 1s - 1ns;
  EXPECT_TRUE(submit(kBob, "b", 100)) << "it may only be slow";
  give_back();
  EXPECT_EQ(queue.waiting_bytes(), 200u);
  for (int i = 0; i < 2; ++i) end_oldest();
  begin_all();
  for (const char* client : {kAlice, kBob}) EXPECT_TRUE(submit(client, "more", 100));
  now += 1s - 1ns;
  EXPECT_TRUE(submit("carol", "c", 100));
  give_back();
  EXPECT_EQ(log, "a b ") << "was done, and nothing given back";
  EXPECT_EQ(queue.waiting_bytes(), 300u);
}

TEST_F(JobQueueBytesTest, gives_the_newest_data_beyond_the_bound_back_when_workers_stand_still) {
  EXPECT_TRUE(submit(kAlice, "a1", 60));
  EXPECT_TRUE(submit(kAlice, "none"));
  EXPECT_TRUE(submit(kAlice, "a2", 60));
  now += 1s;
  give_back();
  EXPECT_EQ(log, "(a2) ");
  EXPECT_EQ(queue.waiting_bytes(), 60u);
  EXPECT_EQ(queue.waiting(), 2u);
  EXPECT_FALSE(submit(kBob, "b", 41)) << "and no more is taken";
  EXPECT_FALSE(submit("carol", "c", 41)) << "from whomever";
  EXPECT_TRUE(submit("carol", "none")) << "but what has no data";
  now += 9s;
  give_back();
  EXPECT_EQ(queue.waiting_bytes(), 0u);
  EXPECT_EQ(queue.waiting(), 0u);
}

// The store moves first, then more is asked for; and the other way round.
TEST_F(JobQueueBytesTest, takes_data_again_when_workers_move) {
  EXPECT_TRUE(submit(kAlice, "a1", 100));
  now += 1s;
  EXPECT_FALSE(submit(kBob, "b1", 100));
  end_oldest();
  EXPECT_TRUE(submit("carol", "c", 100)) << "something has ended";
  begin_all();
  EXPECT_EQ(log, "a1 ");
  EXPECT_EQ(queue.waiting_bytes(), 100u);
  end_oldest();
  begin_all();
  EXPECT_EQ(queue.waiting_bytes(), 0u);
  now += 1s;
  EXPECT_TRUE(submit(kBob, "b2", 100)) << "there is room, whether it moves or not";
  EXPECT_FALSE(submit(kBob, "b3", 1));
}

TEST_F(JobQueueBytesTest, keeps_jobs_that_must_run_whatever_they_hold) {
  EXPECT_TRUE(submit(kAlice, "own", 200, true));
  EXPECT_TRUE(submit(kAlice, "a", 1));
  now += 1s;
  give_back();
  EXPECT_EQ(log, "(a) ");
  EXPECT_EQ(queue.waiting_bytes(), 200u);
}

TEST_F(JobQueueTest, keeps_jobs_waiting_while_workers_are_slow_but_move) {
  for (int i = 0; i < 2; ++i) submit(kAlice, "x"), submit(kBob, "x");
  begin_all();
  submit(kAlice, "slow");
  for (int round = 0; round < 5; ++round) {
    now += 9s;
    end_oldest();
    submit(under_way.size() % 2 == 0 ? kAlice : kBob, "next");
    begin_all();
    give_back();
  }
  EXPECT_EQ(log.find('('), std::string::npos) << log;
}

TEST_F(JobQueueTest, knows_who_has_the_most_workers) {
  EXPECT_EQ(queue.busiest().client, nullptr);
  for (const char* client : {kAlice, kBob, kBob}) EXPECT_TRUE(submit(client, client));
  EXPECT_EQ(queue.busiest().client, nullptr) << "they only wait";
  EXPECT_EQ(begin_all(), 3u);
  EXPECT_EQ(queue.busiest().client, kBob);
  EXPECT_EQ(queue.busiest().under_way, 2u);
}

TEST_F(JobQueueTest, counts_the_jobs_in_progress_and_reports_their_age) {
  EXPECT_EQ(queue.oldest(now), Duration::zero());
  submit(kAlice, "a");
  begin_all();
  now += 3s;
  submit(kBob, "b");
  begin_all();
  now += 1s;
  EXPECT_EQ(queue.under_way(), 2u);
  EXPECT_EQ(queue.oldest(now), 4s);
  end_oldest();
  EXPECT_EQ(queue.oldest(now), 1s);
}

}  // namespace
}  // namespace stag::net
