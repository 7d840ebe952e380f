// The lock table by hand, and against a model that remembers every byte for itself.
#include "nfs/lock/lock_table.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <random>

#include "testing/proves.h"

namespace stag::nfs::lock {
namespace {

OwnerPtr owner(const std::string& host, std::int32_t svid) {
  return std::make_shared<Owner>(Owner{{"192.0.2." + host, "host" + host}, "oh", svid});
}

// As a LockManager takes them.
std::vector<Grant> grants_of(LockTable& table) {
  std::vector<Grant> grants;
  while (!table.grants().empty()) grants.push_back(table.take_grant());
  return grants;
}

// The tickets of those that waited.
std::vector<Ticket> release(LockTable& table, const LockTable::Which& which) {
  std::vector<Ticket> left;
  table.release(which, [&](Ticket ticket) { left.push_back(ticket); });
  return left;
}

class LockTableTest : public ::testing::Test {
 protected:
  LockRequest ask(const OwnerPtr& who, std::uint64_t first, std::uint64_t last,
                  bool exclusive = true) const {
    return {file_, who, {first, last}, exclusive};
  }
  LockOutcome lock(const LockRequest& request, bool wait = false) {
    return table_.lock(request, wait).outcome;
  }
  bool free_for(const OwnerPtr& who, std::uint64_t byte) const {
    return !table_.test(ask(who, byte, byte)).has_value();
  }

  FileKey file_;
  LockTable table_;
  OwnerPtr a_ = owner("1", 1), b_ = owner("2", 1), c_ = owner("3", 1);
};

TEST_F(LockTableTest, lets_readers_in_together_and_a_writer_alone) {
  EXPECT_EQ(lock(ask(a_, 0, 9, false)), LockOutcome::Granted);
  EXPECT_EQ(lock(ask(b_, 5, 14, false)), LockOutcome::Granted);
  EXPECT_EQ(lock(ask(c_, 9, 9)), LockOutcome::Denied);
  EXPECT_EQ(lock(ask(a_, 0, 9)), LockOutcome::Denied) << "b reads 5 to 9";
  EXPECT_EQ(lock(ask(a_, 0, 4)), LockOutcome::Granted);
  EXPECT_EQ(lock(ask(b_, 0, 0, false)), LockOutcome::Denied);
  const auto holder = table_.test(ask(c_, 0, 3, false));
  ASSERT_TRUE(holder.has_value());
  EXPECT_EQ(*holder->owner, *a_);
  EXPECT_EQ(holder->range, (Range{0, 4}));
  EXPECT_TRUE(holder->exclusive);
}

TEST_F(LockTableTest, tells_processes_of_one_host_and_hosts_of_one_name_apart) {
  const OwnerPtr other_process = owner("1", 2);
  const OwnerPtr namesake = std::make_shared<Owner>(Owner{{"198.51.100.1", "host1"}, "oh", 1});
  EXPECT_EQ(lock(ask(a_, 0, 9)), LockOutcome::Granted);
  EXPECT_EQ(lock(ask(other_process, 0, 9)), LockOutcome::Denied);
  EXPECT_EQ(lock(ask(namesake, 0, 9)), LockOutcome::Denied);
  EXPECT_EQ(lock(ask(owner("1", 1), 0, 9)), LockOutcome::Granted) << "the same owner again";
  EXPECT_EQ(table_.size(), 1u);
}

TEST_F(LockTableTest, splits_and_joins_ranges) {
  EXPECT_EQ(lock(ask(a_, 0, 9)), LockOutcome::Granted);
  EXPECT_EQ(lock(ask(a_, 10, 19)), LockOutcome::Granted);
  ASSERT_EQ(table_.held(file_).size(), 1u);
  EXPECT_EQ(table_.held(file_)[0].range, (Range{0, 19}));
  EXPECT_TRUE(table_.unlock(file_, *a_, {5, 5}));
  EXPECT_EQ(table_.size(), 2u);
  EXPECT_TRUE(free_for(b_, 5));
  EXPECT_FALSE(free_for(b_, 4));
  EXPECT_FALSE(free_for(b_, 6));
  EXPECT_TRUE(table_.unlock(file_, *a_, {0, Range::kEnd}));
  EXPECT_EQ(table_.size(), 0u);
  EXPECT_TRUE(table_.unlock(file_, *a_, {0, Range::kEnd})) << "nothing is there to unlock";
}

TEST_F(LockTableTest, counts_to_the_end_of_the_file_and_no_further) {
  EXPECT_EQ(*range_of(7, 0), (Range{7, Range::kEnd}));
  EXPECT_EQ(*range_of(7, ~std::uint64_t{0}), (Range{7, Range::kEnd}));
  EXPECT_EQ(*range_of(7, 1), (Range{7, 7}));
  EXPECT_EQ(*range_of(Range::kEnd, 1), (Range{Range::kEnd, Range::kEnd}));
  EXPECT_FALSE(range_of(Range::kEnd, 2).has_value());
  EXPECT_EQ(lock(ask(a_, 100, Range::kEnd)), LockOutcome::Granted);
  EXPECT_EQ(lock(ask(b_, Range::kEnd, Range::kEnd)), LockOutcome::Denied);
  EXPECT_EQ(lock(ask(b_, 0, 99)), LockOutcome::Granted);
}

TEST_F(LockTableTest, serves_waiters_in_the_order_they_came) {
  ASSERT_EQ(lock(ask(a_, 0, 9)), LockOutcome::Granted);
  const auto first = table_.lock(ask(b_, 0, 4), true);
  const auto second = table_.lock(ask(c_, 0, 9), true);
  ASSERT_EQ(first.outcome, LockOutcome::Blocked);
  ASSERT_EQ(second.outcome, LockOutcome::Blocked);
  EXPECT_EQ(table_.lock(ask(b_, 0, 4), true).ticket, first.ticket)
      << "asking again keeps the place";
  EXPECT_TRUE(grants_of(table_).empty());
  table_.unlock(file_, *a_, {0, 9});
  auto grants = grants_of(table_);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].ticket, first.ticket);
  EXPECT_FALSE(free_for(a_, 0));
  table_.unlock(file_, *b_, {0, 4});
  grants = grants_of(table_);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].ticket, second.ticket);
}

TEST_F(LockTableTest, serves_those_that_ask_again_before_those_that_do_not) {
  const TimePoint later = TimePoint{} + std::chrono::minutes(3);
  ASSERT_EQ(lock(ask(a_, 0, 0)), LockOutcome::Granted);
  ASSERT_EQ(lock(ask(b_, 0, 0), true), LockOutcome::Blocked);
  ASSERT_EQ(lock(ask(c_, 0, 0), true), LockOutcome::Blocked);
  ASSERT_EQ(table_.lock(ask(c_, 0, 0), true, later).outcome, LockOutcome::Blocked);
  ASSERT_TRUE(table_.unlock(file_, *a_, {0, 0}));
  const auto grants = grants_of(table_);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants.front().request.owner, c_);
}

TEST_F(LockTableTest, wakes_readers_when_a_writer_becomes_a_reader) {
  ASSERT_EQ(lock(ask(a_, 0, 9)), LockOutcome::Granted);
  ASSERT_EQ(lock(ask(b_, 0, 9, false), true), LockOutcome::Blocked);
  ASSERT_EQ(lock(ask(c_, 0, 9, false), true), LockOutcome::Blocked);
  ASSERT_EQ(lock(ask(a_, 0, 9, false)), LockOutcome::Granted);
  EXPECT_EQ(grants_of(table_).size(), 2u);
}

TEST_F(LockTableTest, forgets_a_waiter_that_cancels) {
  ASSERT_EQ(lock(ask(a_, 0, 9)), LockOutcome::Granted);
  ASSERT_EQ(lock(ask(b_, 0, 9), true), LockOutcome::Blocked);
  EXPECT_FALSE(table_.cancel(ask(b_, 0, 8)).has_value()) << "another range was asked for";
  EXPECT_TRUE(table_.cancel(ask(b_, 0, 9)).has_value());
  EXPECT_FALSE(table_.cancel(ask(b_, 0, 9)).has_value());
  table_.unlock(file_, *a_, {0, 9});
  EXPECT_TRUE(grants_of(table_).empty());
  EXPECT_EQ(table_.size(), 0u);
}

TEST_F(LockTableTest, forgets_a_waiter_that_is_granted_when_it_asks_again) {
  bool taken = true;  // elsewhere, of whose end the table does not hear
  table_.ask_elsewhere([&](const LockRequest&) { return taken; });
  const Ticket waits = table_.lock(ask(b_, 0, 9), true).ticket;
  ASSERT_NE(waits, 0u);
  taken = false;
  const LockTable::Answer granted = table_.lock(ask(b_, 0, 9), true);
  EXPECT_EQ(granted.outcome, LockOutcome::Granted);
  EXPECT_EQ(granted.ticket, waits);
  EXPECT_EQ(table_.size(), 1u);
  ASSERT_TRUE(table_.unlock(file_, *b_, {0, 9}));
  table_.recheck(file_);
  EXPECT_TRUE(grants_of(table_).empty()) << "it has had the lock";
  EXPECT_TRUE(free_for(a_, 0));
}

TEST_F(LockTableTest, gives_back_what_an_unwanted_grant_replaced) {
  ASSERT_EQ(lock(ask(a_, 0, 9, false)), LockOutcome::Granted);
  ASSERT_EQ(lock(ask(b_, 0, 19, false)), LockOutcome::Granted);
  ASSERT_EQ(lock(ask(a_, 0, 19), true), LockOutcome::Blocked);
  table_.unlock(file_, *b_, {0, 19});
  const auto grants = grants_of(table_);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_FALSE(free_for(b_, 15));
  table_.revert(grants[0].request, grants[0].before);
  EXPECT_TRUE(free_for(b_, 15));
  EXPECT_FALSE(table_.test(ask(b_, 0, 9, false)).has_value()) << "a reads 0 to 9 again";
  EXPECT_FALSE(free_for(b_, 9));
}

TEST_F(LockTableTest, drops_all_of_a_client_that_is_gone) {
  const auto gone = [&](const Client& client) { return client == a_->client; };
  ASSERT_EQ(lock(ask(a_, 0, 9)), LockOutcome::Granted);
  ASSERT_EQ(lock(ask(b_, 5, 9), true), LockOutcome::Blocked);
  ASSERT_EQ(lock(ask(b_, 20, 29)), LockOutcome::Granted);
  ASSERT_EQ(lock(ask(a_, 20, 29), true), LockOutcome::Blocked);
  ASSERT_EQ(table_.share(file_, {a_, 3, 1}), LockOutcome::Granted);
  EXPECT_EQ(release(table_, gone).size(), 1u);
  EXPECT_FALSE(table_.knows(a_->client));
  const auto grants = grants_of(table_);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(table_.size(), 3u) << "b's two, and that b does not know it yet";
  table_.settled(grants[0]);
  EXPECT_EQ(table_.size(), 2u);
}

TEST_F(LockTableTest, keeps_shares_apart_from_locks_and_from_each_other) {
  constexpr std::uint32_t kNone = 0, kRead = 1, kWrite = 2, kBoth = 3;
  ASSERT_EQ(lock(ask(c_, 0, 9)), LockOutcome::Granted);
  EXPECT_EQ(table_.share(file_, {a_, kWrite, kRead}), LockOutcome::Granted);
  EXPECT_EQ(table_.share(file_, {b_, kNone, kBoth}), LockOutcome::Denied) << "a denies writing";
  EXPECT_EQ(table_.share(file_, {b_, kRead, kRead}), LockOutcome::Denied) << "a reads";
  EXPECT_EQ(table_.share(file_, {b_, kWrite, kRead}), LockOutcome::Granted);
  EXPECT_EQ(table_.share(file_, {a_, kNone, kRead}), LockOutcome::Granted) << "a changes its own";
  table_.unshare(file_, *b_);
  EXPECT_EQ(table_.share(file_, {c_, kNone, kWrite}), LockOutcome::Granted);
}

TEST_F(LockTableTest, is_bounded_by_client_by_file_and_in_all) {
  LockTable table({.of_client = 3, .of_file = 6, .waiters_of_file = 1, .in_all = 9});
  const auto lock = [&](const OwnerPtr& who, std::uint64_t byte, bool wait = false) {
    return table.lock(ask(who, byte, byte), wait).outcome;
  };
  for (const std::uint64_t byte : {0, 2, 4}) EXPECT_EQ(lock(a_, byte), LockOutcome::Granted);
  EXPECT_EQ(lock(a_, 6), LockOutcome::Full);
  EXPECT_EQ(lock(a_, 1), LockOutcome::Granted) << "three ranges become one";
  EXPECT_EQ(table.size(), 2u);
  EXPECT_TRUE(table.unlock(file_, *a_, {1, 1}));
  EXPECT_TRUE(table.unlock(file_, *a_, {4, 4}));
  EXPECT_EQ(table.lock(ask(a_, 10, 19), false).outcome, LockOutcome::Granted);
  for (const std::uint64_t byte : {11, 13, 15})
    EXPECT_TRUE(table.unlock(file_, *a_, {byte, byte})) << "what is left may be twice as many";
  EXPECT_FALSE(table.unlock(file_, *a_, {17, 17})) << "the split would be a seventh";
  EXPECT_TRUE(table.unlock(file_, *a_, {10, 19}));
  EXPECT_EQ(lock(b_, 0, true), LockOutcome::Blocked);
  const LockTable::Answer none = table.lock(ask(c_, 0, 0), true);
  EXPECT_EQ(none.outcome, LockOutcome::Blocked);
  EXPECT_EQ(none.ticket, 0u) << "one may wait";
  EXPECT_EQ(lock(c_, 7), LockOutcome::Granted);
  EXPECT_EQ(lock(c_, 9), LockOutcome::Granted);
  EXPECT_EQ(lock(c_, 11), LockOutcome::Full) << "six per file, of which it has two";
  const FileKey other{0, *vfs::Handle::from(bytes_of("other"))};
  EXPECT_EQ(table.lock({other, c_, {0, 0}, true}, false).outcome, LockOutcome::Granted);
  const OwnerPtr renamed = std::make_shared<Owner>(Owner{{c_->client.address, "other"}, "oh", 1});
  EXPECT_EQ(table.lock({other, renamed, {2, 2}, true}, false).outcome, LockOutcome::Full)
      << "nine in all, of which its address has three";
  EXPECT_EQ(table.lock({other, b_, {2, 2}, true}, false).outcome, LockOutcome::Granted);
}

TEST_F(LockTableTest, is_bounded_by_address_whatever_name_is_given) {
  LockTable table({.of_address = 3});
  const auto lock = [&](const std::string& name, std::uint64_t byte) {
    const auto who = std::make_shared<Owner>(Owner{{a_->client.address, name}, "oh", 1});
    return table.lock(ask(who, byte, byte), false).outcome;
  };
  EXPECT_FALSE(table.knows(a_->client.address));
  EXPECT_EQ(lock("one", 0), LockOutcome::Granted);
  EXPECT_EQ(lock("two", 2), LockOutcome::Granted);
  EXPECT_EQ(lock("three", 4), LockOutcome::Granted);
  EXPECT_EQ(lock("four", 6), LockOutcome::Full);
  EXPECT_EQ(table.lock(ask(b_, 6, 6), false).outcome, LockOutcome::Granted) << "another host";
  release(table, [&](const Client& client) { return client.name == "one"; });
  EXPECT_EQ(lock("four", 8), LockOutcome::Granted);
  release(table, [&](const Client& client) { return client.address == a_->client.address; });
  EXPECT_FALSE(table.knows(a_->client.address));
}

TEST_F(LockTableTest, counts_shares_as_it_counts_locks) {
  LockTable table({.of_client = 3});
  const auto file = [](const char* name) { return FileKey{0, *vfs::Handle::from(bytes_of(name))}; };
  ASSERT_EQ(table.lock(ask(a_, 0, 9), false).outcome, LockOutcome::Granted);
  EXPECT_EQ(table.share(file("one"), {a_, 0, 1}), LockOutcome::Granted);
  EXPECT_EQ(table.share(file("two"), {a_, 0, 1}), LockOutcome::Granted);
  EXPECT_EQ(table.share(file("three"), {a_, 0, 1}), LockOutcome::Full);
  EXPECT_EQ(table.files().size(), 3u) << "of what is refused nothing is kept";
  EXPECT_EQ(table.share(file("two"), {a_, 0, 2}), LockOutcome::Granted) << "it has that one";
  EXPECT_EQ(table.share(file("three"), {b_, 0, 1}), LockOutcome::Granted) << "another host";
  table.unshare(file("one"), *a_);
  EXPECT_EQ(table.share(file("three"), {a_, 0, 1}), LockOutcome::Granted);
  EXPECT_EQ(table.lock(ask(a_, 20, 29), false).outcome, LockOutcome::Full);
}

TEST_F(LockTableTest, counts_grants_until_they_are_settled) {
  LockTable table({.waiters_of_file = 8, .waiters_of_address = 3});
  const auto has_place = [&](const OwnerPtr& who, std::uint64_t byte) {
    return table.lock(ask(who, byte, byte), true).ticket != 0;
  };
  ASSERT_EQ(table.lock(ask(b_, 0, 99), false).outcome, LockOutcome::Granted);
  const OwnerPtr renamed = std::make_shared<Owner>(Owner{{a_->client.address, "other"}, "oh", 1});
  EXPECT_TRUE(has_place(a_, 0));
  EXPECT_TRUE(has_place(a_, 1));
  EXPECT_TRUE(has_place(renamed, 2));
  EXPECT_FALSE(has_place(renamed, 3)) << "another name, the same address";
  ASSERT_TRUE(table.unlock(file_, *b_, {0, 99}));
  const auto grants = grants_of(table);
  ASSERT_EQ(grants.size(), 3u);
  EXPECT_EQ(table.size(), 5u) << "two locks, for a's are neighbours, and three grants";
  ASSERT_EQ(table.lock(ask(b_, 50, 99), false).outcome, LockOutcome::Granted);
  EXPECT_FALSE(has_place(a_, 50));
  table.settled(grants[0]);
  EXPECT_TRUE(has_place(a_, 50));
  table.settled(grants[1]);
  table.revert(grants[1].request, grants[1].before);
  table.settled(grants[2]);
  EXPECT_EQ(table.size(), 4u);
  EXPECT_EQ(release(table, [](const Client&) { return true; }).size(), 1u);
  EXPECT_EQ(table.size(), 0u);
}

// Every byte on its own: none, shared by some owners, or one owner's.
class Model {
 public:
  static constexpr std::uint64_t kBytes = 24;
  static constexpr std::size_t kOwners = 4;
  enum Mode { None, Shared, Exclusive };

  bool may(std::size_t who, const Range& range, bool exclusive) const {
    for (std::uint64_t byte = range.first; byte <= range.last; ++byte)
      for (std::size_t other = 0; other < kOwners; ++other)
        if (other != who && modes_[other][byte] != None &&
            (exclusive || modes_[other][byte] == Exclusive))
          return false;
    return true;
  }
  void set(std::size_t who, const Range& range, Mode mode) {
    for (std::uint64_t byte = range.first; byte <= range.last; ++byte) modes_[who][byte] = mode;
  }
  Mode at(std::size_t who, std::uint64_t byte) const { return modes_[who][byte]; }

 private:
  std::array<std::array<Mode, kBytes>, kOwners> modes_{};
};

class Play {
 public:
  explicit Play(std::uint32_t seed) : random_(seed) {
    for (std::size_t i = 0; i < Model::kOwners; ++i)
      owners_.push_back(owner(std::to_string(i / 2), static_cast<std::int32_t>(i)));
  }

  void step() {
    const std::size_t who = any(Model::kOwners);
    const std::uint64_t first = any(Model::kBytes);
    const LockRequest ask{
        {}, owners_[who], {first, first + any(Model::kBytes - first)}, any(2) == 0};
    const std::size_t what = any(10);
    if (what < 6)
      lock(who, ask, what < 3);
    else if (what < 9)
      unlock(who, ask.range);
    else
      cancel(who, ask);
    settle();
    compare();
  }

 private:
  struct Waiting {
    Ticket ticket;
    std::size_t who;
    LockRequest ask;
  };
  std::size_t any(std::size_t below) { return random_() % below; }
  static Model::Mode mode(bool exclusive) { return exclusive ? Model::Exclusive : Model::Shared; }
  static bool same(const LockRequest& a, const LockRequest& b) {
    return a.range == b.range && a.exclusive == b.exclusive && *a.owner == *b.owner;
  }

  void lock(std::size_t who, const LockRequest& ask, bool wait) {
    const bool may = model_.may(who, ask.range, ask.exclusive);
    EXPECT_EQ(table_.test(ask).has_value(), !may);
    const auto answer = table_.lock(ask, wait);
    ASSERT_EQ(answer.outcome, may    ? LockOutcome::Granted
                              : wait ? LockOutcome::Blocked
                                     : LockOutcome::Denied);
    if (may) {
      model_.set(who, ask.range, mode(ask.exclusive));
      std::erase_if(waiting_, [&](const Waiting& one) { return same(one.ask, ask); });
    } else if (wait && std::none_of(waiting_.begin(), waiting_.end(), [&](const Waiting& one) {
                 return one.ticket == answer.ticket;
               })) {
      waiting_.push_back({answer.ticket, who, ask});
    }
  }
  void unlock(std::size_t who, const Range& range) {
    ASSERT_TRUE(table_.unlock({}, *owners_[who], range));
    model_.set(who, range, Model::None);
  }
  void cancel(std::size_t who, LockRequest ask) {
    if (!waiting_.empty() && any(2) == 0) ask = waiting_[any(waiting_.size())].ask;
    static_cast<void>(who);
    const std::size_t gone =
        std::erase_if(waiting_, [&](const Waiting& one) { return same(one.ask, ask); });
    ASSERT_EQ(table_.cancel(ask).has_value(), gone == 1);
  }
  // The model's own walk over its queue must grant the same, in the same order.
  void settle() {
    std::vector<Ticket> expected;
    std::size_t before = 0;
    do {
      before = expected.size();
      for (std::size_t i = 0; i < waiting_.size();) {
        const Waiting one = waiting_[i];
        if (!model_.may(one.who, one.ask.range, one.ask.exclusive)) {
          ++i;
          continue;
        }
        model_.set(one.who, one.ask.range, mode(one.ask.exclusive));
        expected.push_back(one.ticket);
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    } while (expected.size() != before);
    std::vector<Ticket> got;
    for (const Grant& grant : grants_of(table_)) {
      got.push_back(grant.ticket);
      table_.settled(grant);
    }
    ASSERT_EQ(got, expected);
  }
  void compare() {
    Model seen;
    const std::vector<Held> all = table_.held({});
    for (const Held& held : all)
      for (std::size_t who = 0; who < owners_.size(); ++who)
        if (*held.owner == *owners_[who]) {
          for (std::uint64_t byte = held.range.first; byte <= held.range.last; ++byte)
            ASSERT_EQ(seen.at(who, byte), Model::None) << "two locks of one owner on a byte";
          seen.set(who, held.range, mode(held.exclusive));
        }
    for (std::size_t who = 0; who < owners_.size(); ++who)
      for (std::uint64_t byte = 0; byte < Model::kBytes; ++byte)
        ASSERT_EQ(seen.at(who, byte), model_.at(who, byte)) << who << " " << byte;
    ASSERT_EQ(table_.size(), all.size() + waiting_.size());
  }

  std::mt19937 random_;
  std::vector<OwnerPtr> owners_;
  LockTable table_;
  Model model_;
  std::vector<Waiting> waiting_;
};

TEST(LockTableAgainstModel, agrees_on_every_byte_after_every_step) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Play play(seed);
    for (int i = 0; i < 400 && !::testing::Test::HasFatalFailure(); ++i) play.step();
  }
}

}  // namespace
}  // namespace stag::nfs::lock
