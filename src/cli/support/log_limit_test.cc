#include "cli/support/log_limit.h"

#include <gtest/gtest.h>

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

std::uint32_t admitted(LogLimit& limit, Reason reason, TimePoint now, std::uint32_t lines) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < lines; ++i) count += limit.admit(reason, now) ? 1 : 0;
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

TEST(LogLimit, reports_nothing_when_nothing_is_left_out) {
  LogLimit limit;
  EXPECT_EQ(admitted(limit, Reason::RpcPeerTooSlow, TimePoint(5h), 10), 10u);
  EXPECT_EQ(settled(limit, TimePoint(6h)), Reports());
}

}  // namespace
}  // namespace stag::cli
