#include "fuse/long_waits.h"

#include <gtest/gtest.h>

#include <list>
#include <new>
#include <utility>
#include <vector>

#include "testing/manual_loop.h"

namespace stag::fuse {
namespace {

using Told = std::vector<std::pair<std::size_t, pid_t>>;

struct Requests {
  Requests() {
    waits.set_tell(
        [this](std::size_t requests, pid_t first) { told.emplace_back(requests, first); });
  }
  LongWaits::Waiting& begin(pid_t thread) {
    LongWaits::Waiting& request = all.emplace_back();
    request.begin(waits, thread);
    return request;
  }
  void pass(int looks) {
    for (int look = 0; look < looks; ++look) loop.pass(LongWaits::kLook);
  }

  testing::ManualLoop loop;
  LongWaits waits{loop};
  std::list<LongWaits::Waiting> all;
  Told told;
};

TEST(LongWaits, are_told_once_and_told_to_be_over) {
  Requests requests;
  requests.begin(7);
  requests.begin(8);
  requests.pass(2);
  EXPECT_EQ(requests.told, Told()) << "a minute at least";
  requests.pass(5);
  EXPECT_EQ(requests.told, (Told{{2, 7}}));
  requests.all.pop_front();
  requests.pass(1);
  EXPECT_EQ(requests.told, (Told{{2, 7}})) << "the other one waits on";
  requests.all.pop_front();
  requests.pass(1);
  ASSERT_EQ(requests.told.size(), 2u);
  EXPECT_EQ(requests.told.back().first, 0u);
  requests.begin(9);
  requests.pass(3);
  EXPECT_EQ(requests.told.back(), (std::pair<std::size_t, pid_t>(1, 9)))
      << "as often as it happens";
}

TEST(LongWaits, are_none_of_requests_that_come_and_go) {
  Requests requests;
  for (int second = 0; second < 600; ++second) {
    LongWaits::Waiting& request = requests.begin(7);
    requests.loop.pass(std::chrono::seconds(1));
    request.end();
    request.end();
  }
  EXPECT_EQ(requests.told, Told());
}

TEST(LongWaits, are_found_behind_those_that_were_answered_in_the_meantime) {
  Requests requests;
  LongWaits::Waiting& one = requests.begin(1);
  LongWaits::Waiting& stuck = requests.begin(2);
  LongWaits::Waiting& other = requests.begin(3);
  other.end();
  one.end();
  requests.pass(2);
  LongWaits::Waiting& late = requests.begin(4);
  requests.pass(1);
  EXPECT_EQ(requests.told, (Told{{1, 2}}));
  stuck.end();
  late.end();
}

TEST(LongWaits, are_looked_for_again_where_a_line_finds_no_memory) {
  Requests requests;
  requests.waits.set_tell([](std::size_t, pid_t) { throw std::bad_alloc(); });
  requests.begin(1);
  requests.pass(4);
  requests.waits.set_tell([&](std::size_t, pid_t first) { requests.told.emplace_back(1, first); });
  requests.pass(1);
  EXPECT_EQ(requests.told, (Told{{1, 1}}));
}

TEST(LongWaits, keep_no_timer_where_nobody_waits) {
  Requests requests;
  requests.begin(1).end();
  requests.pass(1);
  EXPECT_FALSE(requests.loop.advance());
}

}  // namespace
}  // namespace stag::fuse
