#include "cli/observe/metrics.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "endpoint/client.h"
#include "endpoint/listener.h"
#include "fabric/verbs/stub/stub_network.h"
#include "nfs/proto/nfs3.h"
#include "rpc/server.h"
#include "testing/store_service.h"

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
  rpc::EndedCall ended(call);
  ended.header = header;
  ended.began = kNow - took;
  ended.answered = true;
  ended.first_result = 0;
  observation.statistics().on_call_ended(ended);
  return to_metrics(observation, {});
}

// OpenMetrics has the family of a counter without "_total".
TEST(Metrics, have_names_that_OpenMetrics_tells_apart) {
  std::set<std::string> names;
  for (const prometheus::MetricFamily& each : metrics_after_a_read(1ms)) {
    constexpr std::string_view kSuffix = "_total";
    const bool counts = each.type == prometheus::MetricType::Counter;
    EXPECT_EQ(each.name.ends_with(kSuffix), counts) << each.name;
    const std::size_t size = each.name.size() - (counts ? kSuffix.size() : 0);
    EXPECT_TRUE(names.insert(each.name.substr(0, size)).second) << each.name;
  }
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

std::vector<std::string> values_of(const std::vector<prometheus::MetricFamily>& all,
                                   std::string_view family, std::string_view label) {
  std::vector<std::string> values;
  const auto found = std::ranges::find(all, family, &prometheus::MetricFamily::name);
  if (found == all.end()) return values;
  for (const prometheus::ClientMetric& metric : found->metric)
    for (const prometheus::ClientMetric::Label& each : metric.label)
      if (each.name == label) values.push_back(each.value);
  return values;
}

// Of others a scrape has nothing at all.
TEST(Metrics, have_labels_that_are_UTF_8) {
  Observation observation({}, now);
  observation.statistics().know({{1, "/caf\xe9"}, {2, "/café"}});
  Gauges gauges;
  gauges.stores = {{.name = "export /caf\xe9", .plain = {}, .syncing = {}}};
  const auto all = to_metrics(observation, gauges);
  for (const char* const family :
       {"stag_export_call_duration_seconds", "stag_export_read_bytes_total",
        "stag_export_written_bytes_total"})
    EXPECT_EQ(values_of(all, family, "export"), (std::vector<std::string>{"/caf%E9", "/café"}))
        << family;
  for (const char* const family : {"stag_store_operations_waiting", "stag_store_operations_running",
                                   "stag_store_oldest_operation_seconds"})
    EXPECT_EQ(values_of(all, family, "store"), std::vector<std::string>(2, "export /caf%E9"));
}

namespace store = stag::testing::store;
constexpr std::size_t kCallSize = 1 << 20;

// What is registered at (a stub of) an RDMA device, by the lines of the metrics' text.
struct VerbsCounts {
  std::size_t now = 0, made = 0;

  static VerbsCounts scraped() {
    const Observation observation({}, [] { return TimePoint{}; });
    const std::string text = prometheus::TextSerializer().Serialize(to_metrics(observation, {}));
    const auto value = [&](const std::string& family) {
      const std::string line = "\n" + family + "{fabric=\"verbs\"} ";
      const std::size_t at = text.find(line);
      EXPECT_NE(at, text.npos) << family;
      return at == text.npos ? 0 : std::stoul(text.substr(at + line.size()));
    };
    return {value("stag_rdma_registered_ranges"), value("stag_rdma_registrations_total")};
  }
};

// Client and server are this process.
class DeviceMetrics : public ::testing::Test {
 protected:
  DeviceMetrics() {
    rpc::Program program(store::kProgram, store::kVersion, store::kBinding);
    program.add<store::PUT>([this](rpc::CallContext&, store::PutArgs args) {
      in_a_call_ = VerbsCounts::scraped();
      return store::put(&state_, std::move(args));
    });
    server_.add(std::move(program));
    endpoint::ListenOptions options;
    options.fabric = endpoint::FabricKind::Verbs;
    options.verbs.functions = devices_.functions();
    listener_.emplace(*endpoint::listen(server_, {"127.0.0.1", 0}, options));
    endpoint::ConnectOptions connecting;
    connecting.binding = store::kBinding;
    connecting.connector.fabric = endpoint::FabricKind::Verbs;
    connecting.connector.verbs.functions = devices_.functions();
    client_.emplace(*endpoint::connect(listener_->address(), connecting));
    EXPECT_TRUE(client_->ping(store::kProgram, store::kVersion).ok());
  }

  const VerbsCounts without_connections_ = VerbsCounts::scraped();
  fabric::stub::StubNetwork devices_{{fabric::stub::rxe_like()}};
  store::State state_;
  std::optional<VerbsCounts> in_a_call_;
  rpc::Server server_;
  std::optional<endpoint::Listener> listener_;
  std::optional<endpoint::Client> client_;
};

TEST_F(DeviceMetrics, count_what_connections_and_calls_have_registered_until_they_end) {
  const VerbsCounts idle = VerbsCounts::scraped();
  EXPECT_GT(idle.now, without_connections_.now) << "memory of each side's own messages";
  EXPECT_GE(idle.made - without_connections_.made, idle.now - without_connections_.now);
  const std::vector<std::byte> memory(kCallSize, std::byte{0x5a});
  const Rope data = Rope::borrow(memory);
  ASSERT_TRUE(
      client_->call<store::PUT>({.slot = 1, .data = data, .checksum = store::checksum(data)}).ok());
  ASSERT_TRUE(in_a_call_.has_value());
  EXPECT_GT(in_a_call_->now, idle.now) << "what the client lets the server read";
  EXPECT_EQ(in_a_call_->made, idle.made + 2) << "that, and where the server reads it to";
  client_.reset();
  listener_.reset();
  const VerbsCounts after = VerbsCounts::scraped();
  EXPECT_EQ(after.now, without_connections_.now);
  EXPECT_EQ(after.made, in_a_call_->made);
}

}  // namespace
}  // namespace stag::cli
