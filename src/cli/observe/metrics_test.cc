#include "cli/observe/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "nfs/proto/nfs3.h"

namespace stag::cli {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNow{1h};
TimePoint now() {
  return kNow;
}

// Of a server that has served one READ, which took `took`.
std::vector<prometheus::MetricFamily> metrics_after_a_read(Duration took) {
  Observation observation({}, now);
  rpc::IncomingCall call;
  call.origin = std::make_shared<rpc::Origin>();
  oncrpc::CallHeader header;
  header.program = 100003;
  header.version = 3;
  header.procedure = nfs::v3::NFSPROC3_READ::number;
  rpc::EndedCall ended{.call = call, .header = header};
  ended.began = kNow - took;
  ended.answered = true;
  ended.first_result = 0;
  observation.statistics().on_call_ended(ended);
  return to_metrics(observation, {});
}

using Histogram = prometheus::ClientMetric::Histogram;

Histogram duration_of_calls(const std::vector<prometheus::MetricFamily>& all) {
  const auto found =
      std::ranges::find(all, "stag_call_duration_seconds", &prometheus::MetricFamily::name);
  if (found == all.end() || found->metric.size() != 1) return {};
  return found->metric.front().histogram;
}

// Prometheus counts in seconds, whatever we do.
TEST(Metrics, have_times_in_seconds) {
  const Histogram times = duration_of_calls(metrics_after_a_read(1500ms));
  EXPECT_EQ(times.sample_count, 1u);
  EXPECT_DOUBLE_EQ(times.sample_sum, 1.5);
  ASSERT_EQ(times.bucket.size(), kBuckets.size() + 1);
  EXPECT_DOUBLE_EQ(times.bucket.front().upper_bound, 10e-6);
  EXPECT_DOUBLE_EQ(times.bucket[kBuckets.size() - 1].upper_bound, 10);
  for (const auto& bucket : times.bucket)
    EXPECT_EQ(bucket.cumulative_count, bucket.upper_bound < 1.5 ? 0u : 1u) << bucket.upper_bound;
}

}  // namespace
}  // namespace stag::cli
