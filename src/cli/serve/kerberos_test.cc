#include "cli/serve/kerberos.h"

#include <gtest/gtest.h>

#include "net/job_queue.h"

namespace stag::cli {
namespace {

Executor::Job job_of(const int& host) {
  Executor::Job job;
  job.client = &host;
  job.bytes = 1 << 20;
  return job;
}

TEST(KerberosProtection, is_done_by_as_many_threads_as_there_are_loops) {
  EXPECT_EQ(workers_for_protection(16).limits.threads, 16u);
  EXPECT_EQ(workers_for_protection(1).limits.threads, net::WorkerLimits{}.threads);
}

TEST(KerberosProtection, refuses_nothing_and_lets_hosts_take_turns) {
  net::JobQueue queue(workers_for_protection(1).limits);
  const int crowd = 0, other = 0;
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(queue.admit(job_of(crowd), TimePoint())) << i;
  ASSERT_TRUE(queue.admit(job_of(other), TimePoint()));
  EXPECT_EQ(queue.begin(TimePoint())->job.client, &crowd);
  EXPECT_EQ(queue.begin(TimePoint())->job.client, &other);
}

}  // namespace
}  // namespace stag::cli
