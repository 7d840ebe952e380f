#include "nfs/state/grace_period.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace stag::nfs::state {
namespace {

constexpr Duration kPeriod = std::chrono::seconds(90);
const TimePoint kStart = TimePoint() + std::chrono::hours(1);

TEST(Nfs4GracePeriod, does_not_happen_unless_it_is_begun) {
  GracePeriod grace;
  EXPECT_FALSE(grace.active());
  EXPECT_FALSE(grace.active(kStart));
}

TEST(Nfs4GracePeriod, ends_when_its_time_is_over) {
  GracePeriod grace;
  grace.begin(kStart + kPeriod, false);
  EXPECT_TRUE(grace.active(kStart + kPeriod - Duration(1)));
  EXPECT_TRUE(grace.active());
  EXPECT_FALSE(grace.active(kStart + kPeriod));
  EXPECT_FALSE(grace.active());
}

TEST(Nfs4GracePeriod, ends_early_when_nobody_is_left_who_could_reclaim) {
  GracePeriod grace;
  grace.begin(kStart + kPeriod, false);
  grace.nobody_left(kStart);
  EXPECT_FALSE(grace.active());
}

TEST(Nfs4GracePeriod, runs_its_full_time_where_a_client_never_says_that_it_is_done) {
  GracePeriod grace;
  grace.begin(kStart + kPeriod, false);
  grace.begin(kStart + kPeriod / 2, true);
  grace.nobody_left(kStart);
  EXPECT_TRUE(grace.active(kStart + kPeriod / 2));
  EXPECT_FALSE(grace.active(kStart + kPeriod));
}

TEST(Nfs4GracePeriod, a_later_one_is_not_bound_by_the_first) {
  GracePeriod grace;
  grace.begin(kStart + kPeriod, true);
  EXPECT_FALSE(grace.active(kStart + kPeriod));
  grace.begin(kStart + 2 * kPeriod, false);
  grace.nobody_left(kStart + kPeriod);
  EXPECT_FALSE(grace.active());
}

struct Deferred {
  explicit Deferred(GracePeriod& of) {
    of.finish_by([this](std::uint64_t number, TimePoint) { asked.push_back(number); });
  }
  std::vector<std::uint64_t> asked;
};

TEST(Nfs4GracePeriod, goes_on_until_what_must_be_written_is) {
  GracePeriod grace;
  Deferred finish(grace);
  grace.begin(kStart + kPeriod, false);
  EXPECT_TRUE(grace.active(kStart + kPeriod));
  EXPECT_TRUE(grace.active(kStart + 2 * kPeriod));
  ASSERT_EQ(finish.asked.size(), 1u);
  grace.end(finish.asked[0]);
  EXPECT_FALSE(grace.active());
}

TEST(Nfs4GracePeriod, asks_again_where_writing_failed) {
  GracePeriod grace;
  Deferred finish(grace);
  grace.begin(kStart, false);
  EXPECT_TRUE(grace.active(kStart));
  ASSERT_EQ(finish.asked.size(), 1u);
  grace.put_off(finish.asked[0], kStart + kPeriod);
  EXPECT_TRUE(grace.active(kStart + kPeriod - Duration(1)));
  EXPECT_EQ(finish.asked.size(), 1u);
  EXPECT_TRUE(grace.active(kStart + kPeriod));
  EXPECT_EQ(finish.asked.size(), 2u);
}

TEST(Nfs4GracePeriod, a_write_for_one_does_not_end_the_next) {
  GracePeriod grace;
  Deferred finish(grace);
  grace.begin(kStart, false);
  EXPECT_TRUE(grace.active(kStart));
  grace.begin(kStart + kPeriod, false);
  grace.end(finish.asked.at(0));
  EXPECT_TRUE(grace.active(kStart));
}

// Texts, because they read better than numbers.
struct Told {
  explicit Told(GracePeriod& of) {
    of.tell([this](const GracePeriod::Info& info) {
      texts.push_back(info.active ? "begun" : info.early ? "ended early" : "ended");
      last = info;
    });
  }
  std::vector<std::string> texts;
  GracePeriod::Info last;
};
using Texts = std::vector<std::string>;

TEST(Nfs4GracePeriod, tells_when_it_begins_and_ends) {
  GracePeriod grace;
  Told told(grace);
  grace.begin(kStart + kPeriod, false);
  EXPECT_TRUE(grace.active(kStart));
  EXPECT_EQ(told.texts, (Texts{"begun"}));
  EXPECT_EQ(told.last.end, kStart + kPeriod);
  EXPECT_FALSE(told.last.full_time);
  grace.begin(kStart + kPeriod / 2, true);
  EXPECT_EQ(told.last.end, kStart + kPeriod) << "it is made longer, never shorter";
  EXPECT_TRUE(told.last.full_time);
  EXPECT_FALSE(grace.active(kStart + kPeriod));
  EXPECT_FALSE(grace.active(kStart + kPeriod));
  EXPECT_EQ(told.texts, (Texts{"begun", "begun", "ended"}));
}

TEST(Nfs4GracePeriod, tells_that_nobody_was_left_who_could_reclaim) {
  GracePeriod grace;
  Told told(grace);
  grace.begin(kStart + kPeriod, false);
  grace.nobody_left(kStart);
  EXPECT_EQ(told.texts, (Texts{"begun", "ended early"}));
  grace.begin(kStart + kPeriod, false);
  EXPECT_FALSE(grace.active(kStart + kPeriod));
  EXPECT_EQ(told.texts.back(), "ended") << "of another one";
}

TEST(Nfs4GracePeriod, tells_once_what_must_be_written_is_written) {
  GracePeriod grace;
  Told told(grace);
  const Deferred written(grace);
  grace.begin(kStart + kPeriod, false);
  EXPECT_TRUE(grace.active(kStart + kPeriod));
  EXPECT_EQ(told.texts, (Texts{"begun"}));
  grace.end(written.asked.at(0));
  grace.end(written.asked.at(0));
  EXPECT_EQ(told.texts, (Texts{"begun", "ended"}));
}

TEST(Nfs4GracePeriod, has_whoever_is_to_notice_its_end_called_at_each_beginning) {
  GracePeriod grace;
  int watched = 0;
  grace.watch_by([&] {
    EXPECT_TRUE(grace.active());
    ++watched;
  });
  grace.begin(kStart + kPeriod, false);
  EXPECT_EQ(watched, 1);
  EXPECT_FALSE(grace.active(kStart + kPeriod));
  EXPECT_EQ(watched, 1);
  grace.begin(kStart + 2 * kPeriod, false);
  EXPECT_EQ(watched, 2);
}

TEST(Nfs4GracePeriod, counts_what_is_reclaimed_and_by_how_many_clients) {
  GracePeriod grace;
  std::uint64_t anna = 0, bert = 0;
  grace.begin(kStart + kPeriod, false);
  grace.claimed(anna);
  grace.begin(kStart + 2 * kPeriod, false);
  grace.claimed(anna);
  grace.claimed(bert);
  grace.claimed();  // a host, by NLM
  EXPECT_EQ(grace.info().clients, 2u);
  EXPECT_EQ(grace.info().claims, 4u);
  grace.nobody_left(kStart);
  EXPECT_EQ(grace.info().claims, 4u) << "it is known afterwards";
  grace.begin(kStart + kPeriod, false);
  EXPECT_EQ(grace.info().claims, 0u);
  grace.claimed(anna);
  EXPECT_EQ(grace.info().clients, 1u);
}

}  // namespace
}  // namespace stag::nfs::state
