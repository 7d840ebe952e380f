#include "nfs/lock/lock_manager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace stag::nfs::lock {
namespace {

using namespace nlm;

TEST(LockManagerAlone, grants_nothing_that_was_taken_back_before_it_was_locked) {
  LockManager manager;
  const auto owner = std::make_shared<Owner>(Owner{{"192.0.2.1", "name"}, "oh", 1});
  const auto other = std::make_shared<Owner>(Owner{{"192.0.2.1", "name"}, "oh", 2});
  const auto status = [&](Range withdrawn, const std::string& file, const Owner& by) {
    const LockManager::Begun begun(manager, {"handle", owner, Range{10, 19}});
    manager.withdraw(file, by, withdrawn);
    const nlm4_stats stat =
        manager.lock({{{}, owner, {10, 19}, true}, false, false, 0, {}, begun.get()}, TimePoint{});
    manager.unlock({}, *owner, {});
    return stat;
  };
  EXPECT_EQ(status({10, 19}, "handle", *owner), NLM4_DENIED);
  EXPECT_EQ(status({}, "handle", *owner), NLM4_DENIED);
  EXPECT_EQ(status({11, 19}, "handle", *owner), NLM4_GRANTED) << "not all of it";
  EXPECT_EQ(status({10, 19}, "another", *owner), NLM4_GRANTED);
  EXPECT_EQ(status({10, 19}, "handle", *other), NLM4_GRANTED);
  EXPECT_EQ(manager.size(), 0u);
}

TEST(LockManagerAlone, never_has_more_grants_pending_than_may_wait) {
  LockManager manager({.waiters_of_address = 10});
  std::size_t told = 0;
  manager.on_grant([&](const Client&, Ticket) { ++told; });
  const auto owner = [](const char* address) {
    return std::make_shared<Owner>(Owner{{address, "name"}, "oh", 1});
  };
  const OwnerPtr a = owner("192.0.2.1"), b = owner("192.0.2.2");
  const auto lock = [&](const OwnerPtr& who, Range range, bool block) {
    return manager.lock({{{}, who, range, true}, block, false, 0, {}}, TimePoint{});
  };
  for (std::uint64_t round = 0; round < 20; ++round) {
    const Range all{round * 100, round * 100 + 99};
    ASSERT_EQ(lock(b, all, false), NLM4_GRANTED);
    for (std::uint64_t byte = all.first; byte <= all.last; ++byte)
      ASSERT_EQ(lock(a, {byte, byte}, true), NLM4_BLOCKED);
    ASSERT_EQ(manager.unlock({}, *b, all), NLM4_GRANTED);
    EXPECT_EQ(manager.pending_count(), 10u);
  }
  EXPECT_EQ(told, 10u);
  EXPECT_EQ(manager.size(), 11u) << "one lock and ten grants";
  ASSERT_EQ(manager.unlock({}, *a, {0, 3}), NLM4_GRANTED);
  EXPECT_EQ(manager.pending_count(), 6u) << "unlocked before it was told";
  manager.release(a->client);
  EXPECT_EQ(manager.pending_count(), 0u);
  EXPECT_EQ(manager.size(), 0u);
}

// Hosts of which one takes as much as it can get.
class LockManagerAmongHosts : public ::testing::Test {
 protected:
  // Little enough to be taken in a test.
  static constexpr LockLimits kSmall{
      .of_client = 32, .of_address = 64, .of_file = 64, .in_all = 256};

  static OwnerPtr owner(const std::string& address, const std::string& name = "name") {
    return std::make_shared<Owner>(Owner{{address, name}, "oh", 1});
  }
  static OwnerPtr taker(int address, int name) {
    return owner("198.51.100." + std::to_string(address), "n" + std::to_string(name));
  }
  static FileKey file(int number) {
    return FileKey{1, *vfs::Handle::from(bytes_of("file" + std::to_string(number)))};
  }
  nlm4_stats lock(int where, const OwnerPtr& who, Range range, std::int32_t state = 0,
                  bool block = false) {
    return manager_->lock({{file(where), who, range, true}, block, false, state, {}}, now_);
  }
  nlm4_stats reclaim(int where, const OwnerPtr& who, Range range) {
    return manager_->lock({{file(where), who, range, true}, false, true, 0, {}}, now_);
  }
  nlm4_stats unlock(int where, const OwnerPtr& who, Range range) {
    return manager_->unlock(file(where), *who, range);
  }
  void begin(const LockLimits& limits = {}) {
    manager_ = std::make_unique<LockManager>(limits);
    manager_->on_grant([this](const Client& client, Ticket ticket) {
      told_.push_back(client.address);
      manager_->settle(ticket, true);
    });
  }
  // Single bytes until it gets no more.
  std::size_t take_all(int where, const OwnerPtr& who) {
    std::uint64_t taken = 0;
    while (lock(where, who, {2 * taken, 2 * taken}) == NLM4_GRANTED) ++taken;
    return taken;
  }

  std::unique_ptr<LockManager> manager_;
  std::vector<std::string> told_;
  TimePoint now_{};
  const OwnerPtr victim_ = owner("192.0.2.1"), other_ = owner("192.0.2.2");
};

TEST_F(LockManagerAmongHosts, forgets_nothing_of_a_restart_for_another_hosts_many_names) {
  for (const int names : {0, 4096}) {
    begin();
    for (int i = 0; i < names; ++i) ASSERT_EQ(lock(i, taker(1, i), {0, 9}, 1), NLM4_GRANTED);
    ASSERT_EQ(lock(-1, victim_, {0, 9}, 5), NLM4_GRANTED);
    ASSERT_EQ(lock(-2, victim_, {0, 9}, 7), NLM4_GRANTED) << "before its SM_NOTIFY";
    EXPECT_TRUE(manager_->held(file(-1)).empty()) << names;
    manager_->restarted("192.0.2.1", "name", 7, now_);
    EXPECT_EQ(manager_->held(file(-2)).size(), 1u) << names;
  }
}

TEST_F(LockManagerAmongHosts, takes_no_late_LOCK_for_the_number_that_its_host_has) {
  begin();
  ASSERT_EQ(lock(1, victim_, {0, 9}, 7), NLM4_GRANTED);
  ASSERT_EQ(lock(2, victim_, {0, 9}, 5), NLM4_GRANTED);
  ASSERT_EQ(lock(3, victim_, {0, 9}, 7), NLM4_GRANTED);
  EXPECT_EQ(manager_->held(file(1)).size(), 1u);
  ASSERT_TRUE(manager_->release(victim_->client));
  ASSERT_EQ(lock(1, victim_, {0, 9}, 3), NLM4_GRANTED);
  ASSERT_EQ(lock(2, victim_, {0, 9}, 5), NLM4_GRANTED);
  EXPECT_TRUE(manager_->held(file(1)).empty()) << "it had nothing, and may have begun anew";
}

// A host that begins from the same image each time counts its starts alike.
TEST_F(LockManagerAmongHosts, takes_news_with_the_number_of_LOCKs_for_late_for_twenty_minutes) {
  using namespace std::chrono_literals;
  for (const bool is_of_another_start : {false, true}) {
    begin();
    ASSERT_EQ(lock(1, victim_, {0, 9}, 7), NLM4_GRANTED);
    ASSERT_EQ(unlock(1, victim_, {}), NLM4_GRANTED);
    now_ += 24h;
    ASSERT_EQ(lock(1, victim_, {0, 9}, 7), NLM4_GRANTED) << "perhaps of a new start";
    now_ += 20min;
    ASSERT_EQ(lock(2, victim_, {0, 9}, 7), NLM4_GRANTED);
    if (is_of_another_start) now_ += 1s;
    EXPECT_EQ(manager_->restarted("192.0.2.1", "name", 7, now_), is_of_another_start);
    EXPECT_EQ(manager_->size(), is_of_another_start ? 0u : 2u);
  }
}

// `sm-notify -f` tells a number that the kernel of its host has not heard of.
TEST_F(LockManagerAmongHosts, goes_on_with_a_host_whose_LOCKs_have_an_older_number_than_its_news) {
  begin();
  ASSERT_EQ(lock(1, victim_, {0, 9}, 5), NLM4_GRANTED);
  ASSERT_TRUE(manager_->restarted("192.0.2.1", "name", 7, now_));
  EXPECT_EQ(lock(1, victim_, {0, 9}, 5), NLM4_GRANTED);
  EXPECT_EQ(lock(2, victim_, {0, 9}, 5), NLM4_GRANTED);
  EXPECT_EQ(manager_->size(), 2u);
}

TEST_F(LockManagerAmongHosts, denies_what_is_under_way_since_before_a_restart) {
  begin();
  const auto locked = [&](std::int32_t state, auto meanwhile) {
    const LockManager::Begun begun(*manager_, {"handle", victim_, Range{0, 9}, state});
    meanwhile();
    return manager_->lock({{file(1), victim_, {0, 9}, true}, false, false, state, {}, begun.get()},
                          now_);
  };
  const auto tell = [&](const char* name, std::int32_t state) {
    return [this, name, state] { manager_->restarted("192.0.2.1", name, state, now_); };
  };
  EXPECT_EQ(locked(5, tell("name", 7)), NLM4_DENIED);
  EXPECT_EQ(locked(5, tell("name", 7)), NLM4_DENIED) << "told twice";
  EXPECT_EQ(locked(7, tell("name", 7)), NLM4_GRANTED) << "of after the restart";
  EXPECT_EQ(locked(0, tell("name", 7)), NLM4_GRANTED) << "told before it came";
  EXPECT_EQ(locked(0, tell("name", 9)), NLM4_DENIED);
  EXPECT_EQ(locked(9, [&] { lock(2, victim_, {0, 9}, 11); }), NLM4_DENIED) << "before SM_NOTIFY";
  EXPECT_EQ(locked(11, [&] { manager_->release(victim_->client); }), NLM4_DENIED);
  EXPECT_EQ(locked(11, [&] { manager_->clear(); }), NLM4_DENIED);
  EXPECT_EQ(locked(11, [&] { manager_->release(other_->client); }), NLM4_GRANTED);
}

TEST_F(LockManagerAmongHosts, forgets_nothing_of_a_restart_for_names_that_are_refused) {
  for (const bool block : {false, true}) {
    begin({.waiters_of_file = 0, .in_all = 256});
    ASSERT_EQ(lock(-1, victim_, {0, 9}, 5), NLM4_GRANTED);
    for (int i = 0; i < 300; ++i)
      ASSERT_EQ(lock(-1, owner("192.0.2.1", "n" + std::to_string(i)), {0, 9}, 1, block),
                block ? NLM4_BLOCKED : NLM4_DENIED);
    ASSERT_EQ(lock(-2, victim_, {0, 9}, 7), NLM4_GRANTED) << "before its SM_NOTIFY";
    EXPECT_TRUE(manager_->held(file(-1)).empty());
  }
}

TEST_F(LockManagerAmongHosts, takes_no_old_news_for_new_for_another_hosts_many_names) {
  begin();
  for (int i = 0; i < 4096; ++i) {
    ASSERT_EQ(lock(i, taker(1, i), {0, 9}), NLM4_GRANTED);
    manager_->restarted("198.51.100.1", "n" + std::to_string(i), 3, now_);
  }
  ASSERT_EQ(lock(-1, victim_, {0, 9}), NLM4_GRANTED);
  EXPECT_TRUE(manager_->restarted("192.0.2.1", "name", 7, now_));
  ASSERT_EQ(lock(-1, victim_, {0, 9}), NLM4_GRANTED);
  EXPECT_FALSE(manager_->restarted("192.0.2.1", "name", 7, now_));
  EXPECT_EQ(manager_->held(file(-1)).size(), 1u);
}

// A host without a disk may begin with the same number each time.
TEST_F(LockManagerAmongHosts, takes_news_for_a_repetition_for_two_minutes_after_the_first) {
  using namespace std::chrono_literals;
  begin();
  const TimePoint first = now_;
  const auto is_released_at = [&](Duration later) {
    lock(1, victim_, {0, 9});
    return manager_->restarted("192.0.2.1", "name", 7, first + later);
  };
  EXPECT_TRUE(is_released_at(0s));
  EXPECT_FALSE(is_released_at(1min));
  EXPECT_FALSE(is_released_at(2min));
  EXPECT_TRUE(is_released_at(2min + 1s));
  EXPECT_EQ(manager_->size(), 0u);
  EXPECT_FALSE(is_released_at(4min)) << "two minutes from that one";
}

TEST_F(LockManagerAmongHosts, has_places_left_to_wait_for_a_file_that_one_host_waits_for) {
  begin();
  ASSERT_EQ(lock(1, other_, {0, 4000}), NLM4_GRANTED);
  for (std::uint64_t byte = 0; byte < 1100; ++byte)
    ASSERT_EQ(lock(1, taker(1, 1), {2 * byte, 2 * byte}, 0, true), NLM4_BLOCKED) << byte;
  EXPECT_EQ(lock(1, victim_, {0, 0}, 0, true), NLM4_BLOCKED);
  ASSERT_EQ(manager_->release(taker(1, 1)->client), true);
  ASSERT_EQ(unlock(1, other_, {}), NLM4_GRANTED);
  EXPECT_EQ(told_, std::vector<std::string>{"192.0.2.1"});
}

TEST_F(LockManagerAmongHosts, has_a_host_ask_again_for_which_there_is_no_place) {
  begin({.waiters_of_file = 1});
  ASSERT_EQ(lock(1, other_, {0, 9}), NLM4_GRANTED);
  ASSERT_EQ(lock(1, taker(1, 1), {0, 9}, 0, true), NLM4_BLOCKED);
  EXPECT_EQ(lock(1, victim_, {0, 9}, 0, true), NLM4_BLOCKED);
  EXPECT_EQ(manager_->size(), 2u);
  EXPECT_EQ(manager_->cancel({file(1), victim_, {0, 9}, true}), NLM4_DENIED);
  ASSERT_EQ(unlock(1, other_, {}), NLM4_GRANTED);
  EXPECT_EQ(told_, std::vector<std::string>{"198.51.100.1"});
  ASSERT_EQ(unlock(1, taker(1, 1), {}), NLM4_GRANTED);
  EXPECT_EQ(told_.size(), 1u);
  EXPECT_EQ(lock(1, victim_, {0, 9}, 0, true), NLM4_GRANTED);
}

TEST_F(LockManagerAmongHosts, has_locks_left_that_few_hosts_cannot_take_and_refuses_no_unlock) {
  begin(kSmall);
  ASSERT_EQ(lock(-1, victim_, {0, 999}), NLM4_GRANTED);
  for (int i = 0; i < 8; ++i) take_all(i, taker(i / 2, i % 2));
  EXPECT_EQ(lock(-2, victim_, {0, 0}), NLM4_GRANTED);
  EXPECT_EQ(unlock(-1, victim_, {100, 199}), NLM4_GRANTED);
  EXPECT_EQ(lock(-1, other_, {100, 199}), NLM4_GRANTED);
}

TEST_F(LockManagerAmongHosts, has_locks_of_a_file_left_that_one_host_cannot_take) {
  begin(kSmall);
  ASSERT_EQ(lock(1, victim_, {900, 999}), NLM4_GRANTED);
  EXPECT_EQ(take_all(1, taker(1, 1)), 32u);
  EXPECT_LT(take_all(1, taker(1, 2)), 32u);
  EXPECT_EQ(unlock(1, victim_, {910, 919}), NLM4_GRANTED);
  EXPECT_EQ(lock(1, other_, {910, 919}), NLM4_GRANTED);
}

TEST_F(LockManagerAmongHosts, has_locks_left_where_hosts_split_theirs) {
  begin({.of_client = 128, .of_address = 128, .of_file = 1024, .in_all = 256});
  ASSERT_EQ(lock(-1, victim_, {0, 999}), NLM4_GRANTED);
  std::size_t refused = 0;
  for (int host = 0; host < 4; ++host) {
    const OwnerPtr who = taker(host, 0);
    ASSERT_EQ(lock(host, who, {0, 9999}), NLM4_GRANTED);
    for (std::uint64_t byte = 1; byte < 9999; byte += 2)
      if (unlock(host, who, {byte, byte}) != NLM4_GRANTED) ++refused;
  }
  EXPECT_GT(manager_->size(), 256u);
  EXPECT_LT(manager_->size(), 512u);
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(unlock(-1, victim_, {100, 199}), NLM4_GRANTED);
  EXPECT_EQ(lock(-2, other_, {0, 0}), NLM4_GRANTED) << "a 128th";
}

TEST_F(LockManagerAmongHosts, grants_all_reclaims_in_every_order) {
  begin(kSmall);
  std::vector<std::size_t> had;
  for (int i = 0; i < 10; ++i) had.push_back(take_all(i, taker(i / 2, i % 2)));
  for (const bool backwards : {false, true}) {
    begin(kSmall);
    manager_->begin_grace(now_ + std::chrono::seconds(1));
    for (int n = 0; n < 10; ++n) {
      const int i = backwards ? 9 - n : n;
      for (std::uint64_t byte = 0; byte < had[static_cast<std::size_t>(i)]; ++byte)
        ASSERT_EQ(reclaim(i, taker(i / 2, i % 2), {2 * byte, 2 * byte}), NLM4_GRANTED) << i;
    }
  }
}

// Two threads of a process wait for ranges that overlap.
class GrantsThatOverlap : public ::testing::Test {
 protected:
  static OwnerPtr owner(const char* address) {
    return std::make_shared<Owner>(Owner{{address, "name"}, "oh", 1});
  }
  GrantsThatOverlap() {
    manager_.on_grant([this](const Client&, Ticket ticket) { told_.push_back(ticket); });
  }
  nlm4_stats lock(const OwnerPtr& who, Range range, bool block = false, bool exclusive = true) {
    return manager_.lock({{{}, who, range, exclusive}, block, false, 0, {}}, TimePoint{});
  }
  nlm4_stats cancel(const OwnerPtr& who, Range range, bool exclusive = true) {
    return manager_.cancel({{}, who, range, exclusive});
  }
  void answer(Ticket ticket, bool wanted) {
    manager_.offering(ticket);
    manager_.answered(ticket, wanted);
  }
  // c has all that a waits for twice, and b, too.
  void grant_both() {
    ASSERT_EQ(lock(c_, {0, 20}), NLM4_GRANTED);
    ASSERT_EQ(lock(a_, first_, true), NLM4_BLOCKED);
    ASSERT_EQ(lock(a_, second_, true), NLM4_BLOCKED);
    ASSERT_EQ(lock(b_, {0, 10}, true), NLM4_BLOCKED);
    ASSERT_EQ(manager_.unlock({}, *c_, {0, 20}), NLM4_GRANTED);
    ASSERT_EQ(told_.size(), 2u);
  }
  // Whether this owner alone has all of this range.
  bool has(const OwnerPtr& who, Range range) {
    const OwnerPtr& other = who == c_ ? b_ : c_;
    bool all = true;
    for (std::uint64_t byte = range.first; byte <= range.last; ++byte) {
      const auto tested = manager_.test({{}, other, {byte, byte}, false}, TimePoint{});
      all = all && tested.holder && *tested.holder->owner == *who;
    }
    return all;
  }
  bool is_free(Range range) {
    return manager_.test({{}, owner("192.0.2.9"), range, true}, TimePoint{}).stat == NLM4_GRANTED;
  }

  LockManager manager_;
  std::vector<Ticket> told_;
  const OwnerPtr a_ = owner("192.0.2.1"), b_ = owner("192.0.2.2"), c_ = owner("192.0.2.3");
  const Range first_{0, 10}, second_{5, 20};
};

TEST_F(GrantsThatOverlap, leave_nothing_behind_when_the_first_is_cancelled_and_then_the_second) {
  grant_both();
  EXPECT_EQ(cancel(a_, first_), NLM4_GRANTED);
  EXPECT_TRUE(has(a_, second_)) << "the other thread has it";
  EXPECT_TRUE(is_free({0, 4}));
  EXPECT_EQ(cancel(a_, second_), NLM4_GRANTED);
  EXPECT_TRUE(has(b_, {0, 10}));
  EXPECT_TRUE(is_free({11, 20}));
  EXPECT_EQ(manager_.held({}).size(), 1u);
}

TEST_F(GrantsThatOverlap, leave_nothing_behind_when_the_second_is_cancelled_and_then_the_first) {
  grant_both();
  EXPECT_EQ(cancel(a_, second_), NLM4_GRANTED);
  EXPECT_TRUE(has(a_, first_));
  EXPECT_TRUE(is_free({11, 20}));
  EXPECT_EQ(cancel(a_, first_), NLM4_GRANTED);
  EXPECT_TRUE(has(b_, {0, 10}));
  EXPECT_EQ(manager_.held({}).size(), 1u);
}

TEST_F(GrantsThatOverlap, leave_what_the_client_has_acknowledged_when_the_other_is_cancelled) {
  grant_both();
  answer(told_[1], true);
  EXPECT_EQ(cancel(a_, first_), NLM4_GRANTED);
  EXPECT_TRUE(has(a_, second_));
  EXPECT_TRUE(is_free({0, 4}));
}

TEST_F(GrantsThatOverlap, leave_what_the_client_has_locked_again_when_the_other_is_cancelled) {
  grant_both();
  EXPECT_EQ(lock(a_, {15, 20}), NLM4_GRANTED) << "in the second alone";
  EXPECT_EQ(cancel(a_, first_), NLM4_GRANTED);
  EXPECT_TRUE(has(a_, second_));
  EXPECT_TRUE(is_free({0, 4}));
}

TEST_F(GrantsThatOverlap, leave_what_the_client_has_not_unlocked_when_the_other_is_cancelled) {
  grant_both();
  EXPECT_EQ(manager_.unlock({}, *a_, {15, 20}), NLM4_GRANTED);
  EXPECT_EQ(cancel(a_, first_), NLM4_GRANTED);
  EXPECT_TRUE(has(a_, {5, 14}));
  EXPECT_TRUE(is_free({0, 4}));
}

TEST_F(GrantsThatOverlap, that_are_shared_give_nothing_back_that_another_shares_by_now) {
  ASSERT_EQ(lock(a_, {0, 10}), NLM4_GRANTED);
  ASSERT_EQ(lock(c_, {11, 20}), NLM4_GRANTED);
  ASSERT_EQ(lock(a_, {0, 20}, true, false), NLM4_BLOCKED);
  ASSERT_EQ(lock(b_, {0, 5}, true, false), NLM4_BLOCKED);
  ASSERT_EQ(manager_.unlock({}, *c_, {}), NLM4_GRANTED);
  ASSERT_EQ(told_.size(), 2u) << "what a had alone it shares";
  EXPECT_EQ(cancel(a_, {0, 20}, false), NLM4_GRANTED);
  EXPECT_EQ(lock(b_, {0, 5}), NLM4_DENIED) << "a shares it";
  EXPECT_EQ(lock(b_, {0, 5}, false, false), NLM4_GRANTED);
  EXPECT_TRUE(is_free({11, 20}));
}

TEST_F(GrantsThatOverlap, that_are_shared_give_back_what_the_owner_had_alone) {
  ASSERT_EQ(lock(a_, {0, 10}), NLM4_GRANTED);
  ASSERT_EQ(lock(c_, {11, 20}), NLM4_GRANTED);
  ASSERT_EQ(lock(a_, {0, 20}, true, false), NLM4_BLOCKED);
  ASSERT_EQ(manager_.unlock({}, *c_, {}), NLM4_GRANTED);
  EXPECT_EQ(cancel(a_, {0, 20}, false), NLM4_GRANTED);
  EXPECT_TRUE(has(a_, {0, 10}));
}

// Of each byte, what lies upon what: a lock that is the owner's for good (0), pending grants.
class GrantsPlay {
 public:
  GrantsPlay(std::uint32_t seed, bool shared) : random_(seed), shared_(shared) {
    manager_.on_grant([this](const Client&, Ticket ticket) { fresh_.push_back(ticket); });
    for (const char* const address : {"192.0.2.1", "192.0.2.2", "192.0.2.3"})
      owners_.push_back(std::make_shared<Owner>(Owner{{address, "name"}, "oh", 1}));
  }

  void step() {
    const std::size_t who = any(owners_.size());
    const std::uint64_t from = any(kBytes);
    const Range range{from, from + any(kBytes - from)};
    const LockRequest ask{{}, owners_[who], range, !shared_ || any(2) == 0};
    const std::size_t what = any(10);
    if (what < 4) {
      if (manager_.lock({ask, true, false, 0, {}}, TimePoint{}) == NLM4_GRANTED)
        changed(who, range, true);
    } else if (what < 6) {
      manager_.unlock({}, *ask.owner, range);
      changed(who, range, false);
    } else {
      settle(what);
    }
    for (const Ticket ticket : std::exchange(fresh_, {})) {
      const LockRequest granted = manager_.pending(ticket)->grant.request;
      pending_[ticket] = granted;
      for (auto at = granted.range.first; at <= granted.range.last; ++at)
        stack(index_of(granted.owner), at).push_back(ticket);
    }
    compare();
  }

 private:
  static constexpr std::uint64_t kBytes = 16;
  using Stack = std::vector<Ticket>;

  std::size_t any(std::size_t below) { return random_() % below; }
  Stack& stack(std::size_t who, std::uint64_t byte) { return stacks_[who][byte]; }
  std::size_t index_of(const OwnerPtr& owner) const {
    return static_cast<std::size_t>(std::ranges::find(owners_, owner) - owners_.begin());
  }
  // The owner has it for good, and what lies below.
  void accept(Ticket ticket) {
    for (Stack& each : stacks_[index_of(pending_.at(ticket).owner)]) {
      const auto found = std::ranges::find(each, ticket);
      if (found == each.end()) continue;
      *found = 0;
      each.erase(each.begin(), found);
    }
    pending_.erase(ticket);
  }
  void settle(std::size_t what) {
    if (pending_.empty()) return;
    const auto [ticket, request] = *std::next(pending_.begin(), any(pending_.size()));
    if (what == 6) {
      manager_.settle(ticket, true);
      return accept(ticket);
    }
    if (what == 7)
      manager_.settle(ticket, false);
    else
      ASSERT_EQ(manager_.cancel(request), NLM4_GRANTED);
    for (Stack& each : stacks_[index_of(request.owner)]) std::erase(each, ticket);
    pending_.erase(ticket);
  }
  void changed(std::size_t who, Range range, bool locked) {
    std::vector<Ticket> over;
    for (const auto& [ticket, request] : pending_)
      if (request.owner == owners_[who] && request.range.overlaps(range)) over.push_back(ticket);
    for (const Ticket ticket : over) accept(ticket);
    for (auto at = range.first; at <= range.last; ++at)
      stack(who, at) = locked ? Stack{0} : Stack{};
  }
  void compare() {
    std::array<std::array<int, kBytes>, 3> held{};  // 1: shared, 2: exclusive
    for (const Held& one : manager_.held({}))
      for (auto at = one.range.first; at <= one.range.last; ++at)
        held[index_of(one.owner)][at] += one.exclusive ? 2 : 1;
    for (std::uint64_t at = 0; at < kBytes; ++at) {
      int holders = 0, alone = 0;
      for (std::size_t who = 0; who < owners_.size(); ++who) {
        holders += held[who][at] != 0 ? 1 : 0;
        alone += held[who][at] == 2 ? 1 : 0;
        ASSERT_EQ(held[who][at] != 0, !stack(who, at).empty()) << who << " has " << at;
      }
      ASSERT_TRUE(alone == 0 || holders == 1) << at;
    }
    ASSERT_EQ(manager_.pending_count(), pending_.size());
  }

  std::mt19937 random_;
  const bool shared_;
  LockManager manager_;
  std::vector<OwnerPtr> owners_;
  std::vector<Ticket> fresh_;
  std::map<Ticket, LockRequest> pending_;
  std::array<std::array<Stack, kBytes>, 3> stacks_;
};

TEST(LockManagerAgainstModel, gives_no_byte_to_two_and_none_to_an_owner_that_does_not_want_it) {
  for (const bool shared : {false, true})
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(seed);
      GrantsPlay play(seed, shared);
      for (int i = 0; i < 300 && !::testing::Test::HasFatalFailure(); ++i) play.step();
    }
}

}  // namespace
}  // namespace stag::nfs::lock
