#include "nfs/state/grace_period.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
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

// A server that adopts clients makes the period longer: those of its own start keep their time.
TEST(Nfs4GracePeriod,
     runs_its_full_time_when_it_is_made_longer_for_clients_that_say_they_are_done) {
  GracePeriod grace;
  grace.begin(kStart + kPeriod, true);
  grace.begin(kStart + kPeriod, false);
  grace.nobody_left(kStart);
  EXPECT_TRUE(grace.active(kStart + kPeriod - Duration(1)));
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

TEST(Nfs4GracePeriod, has_one_thing_written_first_and_then_the_other) {
  GracePeriod grace;
  std::vector<std::uint64_t> first;
  grace.finish_first_by([&](std::uint64_t number, TimePoint) { first.push_back(number); });
  Deferred finish(grace);
  grace.begin(kStart + kPeriod, false);
  EXPECT_TRUE(grace.active(kStart + kPeriod));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_TRUE(finish.asked.empty());
  grace.begin(kStart + 2 * kPeriod, false);
  grace.finish(first[0], kStart + kPeriod);
  EXPECT_TRUE(finish.asked.empty()) << "it goes on";
  EXPECT_TRUE(grace.active(kStart + 2 * kPeriod));
  grace.finish(first.at(1), kStart + 2 * kPeriod);
  ASSERT_EQ(finish.asked, std::vector{first[1]});
  grace.end(first[1]);
  EXPECT_FALSE(grace.active());
}

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

TEST(Nfs4GracePeriod, a_write_that_fails_for_one_does_not_shorten_the_next) {
  GracePeriod grace;
  Deferred finish(grace);
  grace.begin(kStart + kPeriod, false);
  grace.nobody_left(kStart);
  grace.begin(kStart + 2 * kPeriod, false);
  grace.put_off(finish.asked.at(0), kStart + std::chrono::seconds(5));
  EXPECT_TRUE(grace.active(kStart + 2 * kPeriod - Duration(1)));
  EXPECT_EQ(finish.asked.size(), 1u) << "it is not due";
  EXPECT_EQ(grace.info().end, kStart + 2 * kPeriod);
}

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

using std::chrono::milliseconds;
using std::chrono::seconds;

// Looked at each second from the start on, as servers do. How long it lasts; nullopt: a day.
template <class EachSecond>
std::optional<seconds> lasts(GracePeriod& grace, EachSecond each) {
  for (seconds since{}; since < std::chrono::hours(24); since += seconds(1)) {
    if (!grace.active(kStart + since)) return since;
    each(since);
  }
  return std::nullopt;
}

struct Claimed : GracePeriod {
  Claimed() {
    set_more_for_claims(kPeriod);
    tell([this](const Info& info) {
      if (info.active && info.late == Late::Claims) texts.push_back("claims");
      if (info.active && info.late == Late::Server) texts.push_back("server");
      if (!info.active) texts.push_back("ended");
    });
    begin(kStart + kPeriod, false);
  }
  Texts texts;
};

// RFC 8881 8.4.2.1: time may be added to it for reclaims.
TEST(Nfs4GracePeriod, goes_on_while_claims_come_in_for_twice_its_length_at_most) {
  Claimed grace;
  std::uint64_t mark = 0;
  EXPECT_EQ(lasts(grace, [&](seconds) { grace.claimed(mark); }), 2 * kPeriod);
  EXPECT_EQ(grace.texts, (Texts{"claims", "ended"}));
}

TEST(Nfs4GracePeriod, ends_soon_after_the_last_claim_and_in_time_where_that_was_long_ago) {
  for (const auto& [last, length] : {std::pair{seconds(30), seconds(90)},
                                     {seconds(84), seconds(90)},
                                     {seconds(120), seconds(126)}}) {
    Claimed grace;
    EXPECT_EQ(lasts(grace,
                    [&, last = last](seconds since) {
                      if (since <= last) grace.claimed();
                    }),
              length)
        << last.count();
  }
}

TEST(Nfs4GracePeriod, goes_on_for_a_claim_in_progress_for_five_minutes_at_most) {
  for (const seconds ends : {seconds(95), seconds(1000)}) {
    Claimed grace;
    std::optional<GracePeriod::Claim> claim(std::in_place, grace, kStart + seconds(80));
    const auto length = lasts(grace, [&](seconds since) {
      if (since == ends) claim.reset();
    });
    EXPECT_EQ(length, ends == seconds(95) ? seconds(100) : seconds(90 + 300));
    EXPECT_EQ(grace.texts, (Texts{"server", "ended"}));
  }
}

// Linux comes again after 15 seconds.
TEST(Nfs4GracePeriod, goes_on_while_the_server_asks_those_who_claim_to_come_again) {
  Claimed grace;
  EXPECT_EQ(lasts(grace,
                  [&](seconds since) {
                    if (since.count() % 15 == 0 && since <= seconds(150))
                      grace.held_up(kStart + since);
                  }),
            seconds(170));
  EXPECT_EQ(grace.texts, (Texts{"server", "ended"}));
}

TEST(Nfs4GracePeriod, counts_what_the_server_held_up_and_what_came_in_apart) {
  Claimed grace;
  EXPECT_EQ(lasts(grace,
                  [&](seconds since) {
                    if (since < seconds(380)) grace.held_up(kStart + since);
                    if (since >= seconds(380)) grace.claimed();
                  }),
            seconds(90 + 300) + kPeriod);
  EXPECT_EQ(grace.texts, (Texts{"server", "claims", "ended"}));
}

// Its claims, one after the other, are no sign that the server is slow.
TEST(Nfs4GracePeriod, is_not_held_up_by_claims_that_begin_where_others_have_just_been_granted) {
  Claimed grace;
  std::optional<GracePeriod::Claim> claim;
  EXPECT_EQ(lasts(grace,
                  [&](seconds since) {
                    claim.emplace(grace, kStart + since);
                    grace.claimed();
                  }),
            2 * kPeriod);
}

// One of its clients has been kept waiting long, while others go on.
TEST(Nfs4GracePeriod, goes_on_for_the_claim_that_has_waited_longest_whatever_began_since) {
  Claimed grace;
  const GracePeriod::Claim oldest(grace, kStart + seconds(60));
  std::optional<GracePeriod::Claim> latest;
  EXPECT_EQ(lasts(grace,
                  [&](seconds since) {
                    latest.emplace(grace, kStart + since);
                    grace.claimed();
                  }),
            2 * kPeriod + seconds(300));
}

TEST(Nfs4GracePeriod, goes_on_for_claims_where_it_begins_again_while_an_earlier_end_is_written) {
  Claimed grace;
  int asked = 0;
  grace.finish_by([&](std::uint64_t number, TimePoint) {
    if (++asked > 1) grace.end(number);
  });
  grace.nobody_left(kStart);
  grace.begin(kStart + kPeriod, false);
  const auto claim_until_120 = [&](seconds since) {
    if (since <= seconds(120)) grace.claimed();
  };
  EXPECT_EQ(lasts(grace, claim_until_120), seconds(126));
}

TEST(Nfs4GracePeriod, ends_at_once_when_nobody_is_left_though_it_would_go_on) {
  Claimed grace;
  grace.held_up(kStart);
  grace.claimed();
  grace.nobody_left(kStart);
  EXPECT_FALSE(grace.active());
}

TEST(Nfs4GracePeriod, ends_at_an_administrator_s_word_whoever_may_still_claim_something) {
  Claimed grace;
  grace.begin(kStart + kPeriod, true);
  const GracePeriod::Claim claim(grace, kStart);
  EXPECT_TRUE(grace.end_by_administrator(kStart));
  EXPECT_FALSE(grace.active());
  EXPECT_TRUE(grace.info().by_administrator);
  EXPECT_FALSE(grace.end_by_administrator(kStart)) << "there is none";
  grace.begin(kStart + kPeriod, false);
  EXPECT_TRUE(grace.active(kStart + kPeriod - milliseconds(1))) << "another one";
  EXPECT_FALSE(grace.info().by_administrator);
}

TEST(Nfs4GracePeriod, ends_at_an_administrator_s_word_once_what_must_be_written_is) {
  GracePeriod grace;
  Deferred finish(grace);
  grace.begin(kStart + kPeriod, false);
  EXPECT_TRUE(grace.end_by_administrator(kStart));
  EXPECT_TRUE(grace.active());
  grace.put_off(finish.asked.at(0), kStart + seconds(5));
  grace.held_up(kStart + seconds(5));
  EXPECT_TRUE(grace.active(kStart + seconds(5)));
  grace.end(finish.asked.at(1));
  EXPECT_FALSE(grace.active());
}

}  // namespace
}  // namespace stag::nfs::state
