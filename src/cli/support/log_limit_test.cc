#include "cli/support/log_limit.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stag::cli {
namespace {

using namespace std::chrono_literals;
using Reports = std::vector<std::pair<Reason, std::uint64_t>>;

Reports settled(LogLimit& limit, TimePoint now) {
  Reports reports;
  limit.settle(now,
               [&](Reason reason, std::uint64_t count) { reports.emplace_back(reason, count); });
  return reports;
}

std::uint32_t admitted(LogLimit& limit, Reason reason, TimePoint now, std::uint32_t lines,
                       std::string_view source = "rdma 192.0.2.7") {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < lines; ++i) count += limit.admit(reason, source, now) ? 1 : 0;
  return count;
}

TEST(LogLimit, takes_ten_lines_of_a_reason_in_a_second_and_then_says_once_how_many_more) {
  LogLimit limit;
  const TimePoint start(5h);
  EXPECT_EQ(admitted(limit, Reason::RpcPeerTooSlow, start, 1000), 10u);
  EXPECT_EQ(admitted(limit, Reason::RpcPeerTooSlow, start + 999ms, 1000), 0u);
  EXPECT_EQ(settled(limit, start + 999ms), Reports());
  EXPECT_EQ(settled(limit, start + 1s), (Reports{{Reason::RpcPeerTooSlow, 1990u}}));
  EXPECT_EQ(settled(limit, start + 1s), Reports());
  EXPECT_EQ(admitted(limit, Reason::RpcPeerTooSlow, start + 1s, 1000), 10u);
}

TEST(LogLimit, holds_no_reason_back_because_of_another) {
  LogLimit limit;
  const TimePoint start(5h);
  EXPECT_EQ(admitted(limit, Reason::RpcPeerTooSlow, start, 11), 10u);
  EXPECT_EQ(admitted(limit, Reason::RpcPeerClosed, start, 12), 10u);
  EXPECT_EQ(settled(limit, start + 1s).size(), 2u);
}

TEST(LogLimit, takes_a_line_about_each_of_many_clients_beside_one_that_has_all_the_others) {
  LogLimit limit;
  for (const TimePoint start : {TimePoint(5h), TimePoint(5h + 1s)}) {
    EXPECT_EQ(admitted(limit, Reason::RpcPeerTooSlow, start, 1000), 10u);
    std::uint32_t others = 0;
    for (int i = 0; i < 1000; ++i)
      others +=
          admitted(limit, Reason::RpcPeerTooSlow, start, 5, "rdma 198.51." + std::to_string(i));
    EXPECT_EQ(others, LogLimit::kSources - 1) << "there is an end to the lines of a second";
  }
}

TEST(LogLimit, knows_a_client_by_its_address) {
  EXPECT_EQ(log_source("rdma 192.0.2.7:1023"), "rdma 192.0.2.7");
  EXPECT_EQ(log_source("tcp [2001:db8::1]:700"), "tcp [2001:db8");
  EXPECT_EQ(log_source("tcp [2001:db8:1:2:3:4:5:6]:700"), "tcp [2001:db8:1:2");
  EXPECT_EQ(log_source("tcp [2001:db8:1:2::6]:701"), "tcp [2001:db8:1:2");
  EXPECT_EQ(log_source("tcp [::ffff:192.0.2.7]:701"), "tcp [::ffff:192.0.2.7]");
  for (const char* const whole : {"192.0.2.7", "2001:db8::1", "/srv/data", "export /a:b", ""})
    EXPECT_EQ(log_source(whole), whole);
}

TEST(LogLimit, reports_nothing_when_nothing_is_left_out) {
  LogLimit limit;
  EXPECT_EQ(admitted(limit, Reason::RpcPeerTooSlow, TimePoint(5h), 10), 10u);
  EXPECT_EQ(settled(limit, TimePoint(6h)), Reports());
}

}  // namespace
}  // namespace stag::cli
