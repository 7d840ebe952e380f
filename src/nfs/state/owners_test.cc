// The owners of version 4.0, case by case and against a list of facts.
#include "nfs/state/owners.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace stag::nfs::state {
namespace {

using Kind = OwnerTurn::Kind;
using enum OwnerOperation;

struct KeptAnswer final : Reply {
  explicit KeptAnswer(int given) : number(given) {}
  const int number;
};
int answer_of(const ReplyPtr& reply) {
  return static_cast<const KeptAnswer&>(*reply).number;
}
Stateid stateid_number(std::uint8_t number) {
  Stateid stateid{.seqid = 1};
  stateid.other[11] = std::byte{number};
  return stateid;
}

class OwnersTest : public ::testing::Test {
 protected:
  static OwnerArgs args(const std::string& owner, std::uint32_t seqid, OwnerOperation operation,
                        ClientId client = 1, OwnerKind kind = OwnerKind::Open) {
    return {kind, client, bytes_of(owner), seqid, operation, operation == Open};
  }
  // Begins and, if it runs, ends with these results.
  OwnerTurn once(const OwnerArgs& asked, int results = 0) {
    const OwnerTurn turn = owners_.begin(asked);
    if (turn.kind == Kind::Run && turn.owner != nullptr)
      owners_.finished(turn.owner, asked, std::make_shared<KeptAnswer>(results));
    return turn;
  }
  // An owner that is confirmed, whose last seqid is `seqid`.
  void confirmed(const std::string& owner, std::uint32_t seqid, ClientId client = 1) {
    once(args(owner, seqid - 1, Open, client));
    const OwnerTurn turn = once(args(owner, seqid, OpenConfirm, client));
    owners_.confirm(turn.owner);
  }

  const std::string name_ = "owner";
  Owners owners_;
};

TEST_F(OwnersTest, run_the_next_operation_and_repeat_the_last) {
  confirmed(name_, 8);
  EXPECT_EQ(once(args(name_, 9, Close), 42).kind, Kind::Run);
  const OwnerTurn again = once(args(name_, 9, Close));
  ASSERT_EQ(again.kind, Kind::Replay);
  EXPECT_EQ(answer_of(again.reply), 42);
  EXPECT_EQ(once(args(name_, 10, Open)).kind, Kind::Run);
}

TEST_F(OwnersTest, refuse_every_other_number) {
  confirmed(name_, 8);
  for (const std::uint32_t seqid : {0u, 1u, 7u, 10u, 0xffffffffu}) {
    const OwnerTurn turn = once(args(name_, seqid, Open));
    EXPECT_EQ(turn.kind, Kind::Refuse) << seqid;
    EXPECT_EQ(turn.status, Status::BadSeqid) << seqid;
  }
}

TEST_F(OwnersTest, refuse_the_last_number_for_another_operation) {
  confirmed(name_, 8);
  once(args(name_, 9, OpenDowngrade));
  EXPECT_EQ(once(args(name_, 9, Close)).status, Status::BadSeqid);
}

TEST_F(OwnersTest, count_from_the_largest_number_to_one) {
  confirmed(name_, 0xffffffff);
  EXPECT_EQ(once(args(name_, 0, Open)).status, Status::BadSeqid);
  EXPECT_EQ(once(args(name_, 1, Open)).kind, Kind::Run);
}

TEST_F(OwnersTest, stay_where_they_are_after_a_refusal_that_does_not_count) {
  confirmed(name_, 8);
  const OwnerTurn turn = owners_.begin(args(name_, 9, Close));
  owners_.abandoned(turn.owner);
  EXPECT_EQ(once(args(name_, 9, Open)).kind, Kind::Run);
}

TEST_F(OwnersTest, want_to_be_confirmed_when_they_are_new) {
  const OwnerTurn first = once(args(name_, 100, Open));
  EXPECT_EQ(first.kind, Kind::Run);
  EXPECT_FALSE(first.confirmed);
  EXPECT_EQ(once(args(name_, 101, Close)).status, Status::BadStateid);
  EXPECT_EQ(once(args(name_, 100, Open)).kind, Kind::Replay);
  const OwnerTurn confirm = once(args(name_, 101, OpenConfirm));
  ASSERT_EQ(confirm.kind, Kind::Run);
  owners_.confirm(confirm.owner);
  EXPECT_TRUE(once(args(name_, 102, Open)).confirmed);
}

TEST_F(OwnersTest, cancel_an_open_that_is_not_confirmed_for_one_with_another_number) {
  const OwnerTurn first = once(args(name_, 100, Open));
  owners_.opened(first.owner, stateid_number(5));
  const OwnerTurn second = once(args(name_, 7, Open));
  EXPECT_EQ(second.kind, Kind::Run);
  EXPECT_FALSE(second.confirmed);
  EXPECT_EQ(second.cancelled, stateid_number(5));
  owners_.opened(second.owner, stateid_number(6));
  const OwnerTurn wrong = once(args(name_, 9, OpenConfirm));
  EXPECT_EQ(wrong.status, Status::BadSeqid);
  EXPECT_EQ(wrong.cancelled, stateid_number(6));
}

TEST_F(OwnersTest, repeat_a_CLOSE_whose_stateid_is_gone) {
  confirmed(name_, 8);
  const OwnerTurn turn = once(args(name_, 9, Close), 42);
  owners_.closed(turn.owner, stateid_number(3));
  const OwnerTurn again = owners_.closed_before(stateid_number(3), 9);
  ASSERT_EQ(again.kind, Kind::Replay);
  EXPECT_EQ(answer_of(again.reply), 42);
  EXPECT_EQ(owners_.closed_before(stateid_number(3), 10).status, Status::BadStateid);
  EXPECT_EQ(owners_.closed_before(stateid_number(4), 9).status, Status::BadStateid);
  once(args(name_, 10, Open));
  EXPECT_EQ(owners_.closed_before(stateid_number(3), 9).status, Status::BadStateid);
}

TEST_F(OwnersTest, do_one_thing_at_a_time) {
  confirmed(name_, 8);
  const OwnerTurn running = owners_.begin(args(name_, 9, Open));
  EXPECT_EQ(owners_.begin(args(name_, 9, Open)).status, Status::Delay);
  owners_.finished(running.owner, args(name_, 9, Open), std::make_shared<KeptAnswer>(1));
  EXPECT_EQ(once(args(name_, 9, Open)).kind, Kind::Replay);
}

TEST_F(OwnersTest, are_not_checked_when_they_are_unknown) {
  const OwnerTurn turn = once(args(name_, 77, Close));
  EXPECT_EQ(turn.kind, Kind::Run);
  EXPECT_EQ(turn.owner, nullptr);
}

TEST_F(OwnersTest, are_counted_by_client_and_by_kind) {
  confirmed(name_, 8, 1);
  confirmed(name_, 20, 2);
  EXPECT_EQ(once(args(name_, 9, Close, 1)).kind, Kind::Run);
  EXPECT_EQ(once(args(name_, 21, Close, 2)).kind, Kind::Run);
  OwnerArgs lock = args(name_, 1, Lock, 1, OwnerKind::Lock);
  lock.creates = true;
  EXPECT_TRUE(once(lock).confirmed);
}

TEST_F(OwnersTest, displace_the_longest_unused_of_their_own_client_beyond_the_limit) {
  confirmed("of another client", 8, 2);
  for (std::uint32_t i = 0; i < 3000; ++i) {
    once(args("owner" + std::to_string(i), 1, Open, 1));
    once(args("owner0", 1, Open, 1));
  }
  EXPECT_LE(owners_.size(), 1025u);
  EXPECT_EQ(once(args("owner0", 1, Open)).kind, Kind::Replay);
  EXPECT_EQ(once(args("owner5", 2, Close)).owner, nullptr);
  EXPECT_EQ(once(args("of another client", 8, OpenConfirm, 2)).kind, Kind::Replay);
}

TEST_F(OwnersTest, are_displaced_beyond_the_limit_though_an_operation_of_one_takes_long) {
  const OwnerTurn running = owners_.begin(args(name_, 1, Open));
  for (std::uint32_t i = 0; i < 3000; ++i) {
    once(args("owner" + std::to_string(i), 1, Open));
    ASSERT_LE(owners_.size(), 1025u);
  }
  owners_.finished(running.owner, args(name_, 1, Open), std::make_shared<KeptAnswer>(1));
  EXPECT_EQ(once(args(name_, 1, Open)).kind, Kind::Replay) << "nothing displaces what runs";
}

TEST_F(OwnersTest, are_kept_beyond_the_limit_as_long_as_the_operations_of_all_run) {
  std::vector<OwnerTurn> running;
  for (std::uint32_t i = 0; i < 1100; ++i)
    running.push_back(owners_.begin(args("owner" + std::to_string(i), 1, Open)));
  for (std::uint32_t i = 0; i < 1100; ++i)
    ASSERT_EQ(owners_.begin(args("owner" + std::to_string(i), 1, Open)).status, Status::Delay);
  for (std::uint32_t i = 0; i < 1100; ++i)
    owners_.finished(running[i].owner, args("owner" + std::to_string(i), 1, Open), nullptr);
  once(args("one more", 1, Open));
  EXPECT_LE(owners_.size(), 1025u);
}

TEST_F(OwnersTest, are_gone_with_their_client_though_a_request_still_runs) {
  confirmed(name_, 8);
  const OwnerTurn closing = once(args(name_, 9, Close));
  owners_.closed(closing.owner, stateid_number(3));
  const OwnerTurn running = owners_.begin(args(name_, 10, Open));
  owners_.release(1);
  EXPECT_EQ(owners_.size(), 0u);
  owners_.closed(running.owner, stateid_number(4));
  owners_.finished(running.owner, args(name_, 10, Open), nullptr);
  EXPECT_EQ(owners_.closed_before(stateid_number(3), 9).status, Status::BadStateid);
  EXPECT_FALSE(once(args(name_, 10, Open)).confirmed);
}

TEST_F(OwnersTest, keep_the_newest_stateids_of_their_locks) {
  OwnerArgs lock = args(name_, 1, Lock, 1, OwnerKind::Lock);
  lock.creates = true;
  const OwnerTurn turn = once(lock);
  for (int i = 0; i < 300; ++i)
    owners_.locked(turn.owner, stateid_number(static_cast<std::uint8_t>(i)));
  EXPECT_EQ(owners_.locks(1, bytes_of(name_)).size(), 256u);
  owners_.forget(OwnerKind::Lock, 1, bytes_of(name_));
  EXPECT_TRUE(owners_.locks(1, bytes_of(name_)).empty());
}

// What is known of an owner, as RFC 7530 9.1.7 to 9.1.11 tell it.
struct OwnerFacts {
  bool confirmed = false;
  std::uint32_t last = 0;
  OwnerOperation operation = Open;
  int results = 0;
};

TEST_F(OwnersTest, do_what_a_list_of_facts_says_at_random_steps) {
  std::mt19937 random(4);
  const auto below = [&](unsigned bound) { return random() % bound; };
  std::map<std::pair<ClientId, std::string>, OwnerFacts> facts;
  for (int step = 1; step <= 300'000 && !HasFailure(); ++step) {
    const ClientId client = 1 + below(2);
    const std::string owner(1, static_cast<char>('a' + below(3)));
    const auto known = facts.find({client, owner});
    if (below(1000) == 0) {
      owners_.release(client);
      std::erase_if(facts, [&](const auto& fact) { return fact.first.first == client; });
      continue;
    }
    const auto operation = static_cast<OwnerOperation>(below(4));
    const std::uint32_t last = known == facts.end() ? below(5) : known->second.last;
    const std::uint32_t seqid = last + below(3) - (below(8) == 0 ? 1 : 0);
    const OwnerArgs asked = args(owner, seqid, operation, client);
    const OwnerTurn turn = owners_.begin(asked);
    const bool next = known != facts.end() && seqid == (last == 0xffffffff ? 1 : last + 1);
    const bool again =
        known != facts.end() && seqid == last && operation == known->second.operation;
    const bool waits = known != facts.end() && !known->second.confirmed;
    Kind expected = Kind::Refuse;
    if (known == facts.end())
      expected = Kind::Run;
    else if (waits && operation == Open)
      expected = again ? Kind::Replay : Kind::Run;
    else if (waits)
      expected = operation == OpenConfirm && next ? Kind::Run : Kind::Refuse;
    else if (next || again)
      expected = next ? Kind::Run : Kind::Replay;
    ASSERT_EQ(turn.kind, expected) << step;
    if (turn.kind == Kind::Replay) {
      ASSERT_EQ(answer_of(turn.reply), known->second.results);
    }
    if (turn.kind != Kind::Run) continue;
    ASSERT_EQ(turn.owner == nullptr, known == facts.end() && operation != Open) << step;
    if (turn.owner == nullptr) continue;
    if (below(4) == 0) {
      owners_.abandoned(turn.owner);
      continue;
    }
    OwnerFacts& fact = facts[{client, owner}];
    if (operation == OpenConfirm) owners_.confirm(turn.owner), fact.confirmed = true;
    fact = {fact.confirmed, seqid, operation, step};
    owners_.finished(turn.owner, asked, std::make_shared<KeptAnswer>(step));
  }
  EXPECT_EQ(owners_.size(), facts.size());
}

}  // namespace
}  // namespace stag::nfs::state
