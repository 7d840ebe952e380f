// RFC 8881 8.4.2, 9.6: what is claimed of a server that has lost it, in which order, and what is
// lost.
#include "nfs/session/opens.h"

#include <gtest/gtest.h>

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace stag::nfs::session {

struct Opener {
  int user = 0;
};

namespace {

using Kind = Opens::Claim::Kind;
using state::RangeMode;

v4::stateid4 number(std::uint8_t which) {
  v4::stateid4 stateid;
  stateid.seqid = 1;
  stateid.other[0] = std::byte{which};
  return stateid;
}
v4::stateid4 latest(std::uint8_t which) {
  v4::stateid4 stateid = number(which);
  stateid.seqid = 0;
  return stateid;
}
v4::nfs_fh4 file() {
  return v4::nfs_fh4(bytes_of("file"));
}

Opens one_open() {
  Opens opens;
  opens.add(7, file(), v4::OPEN4_SHARE_ACCESS_BOTH, number(1));
  return opens;
}
Opens with_locks() {
  Opens opens = one_open();
  opens.on_lock(7, "me", {{0, 9}, RangeMode::Exclusive}, number(2));
  opens.on_lock(7, "me", {{20, 29}, RangeMode::Shared}, number(2));
  opens.on_lock(7, "you", {{50, state::Range::kEnd}, RangeMode::Exclusive}, number(3));
  return opens;
}
// As a server grants it.
void grant(Opens& opens, std::uint8_t which) {
  const auto claim = opens.next_reclaim();
  ASSERT_TRUE(claim.has_value());
  opens.on_claimed(*claim, number(which));
}

// Claims that are made at once: as many as there are, or `most`.
std::vector<Opens::Claim> begun(Opens& opens, std::size_t most) {
  std::vector<Opens::Claim> claims;
  while (claims.size() < most) {
    const auto claim = opens.next_reclaim();
    if (!claim) break;
    opens.begin(*claim);
    claims.push_back(*claim);
  }
  return claims;
}

TEST(Opens, names_the_latest_stateid_of_an_open_and_of_locks) {
  const Opens opens = with_locks();
  EXPECT_EQ(opens.stateid(7), latest(1));
  EXPECT_EQ(opens.lock_stateid(7, "me"), latest(2));
  EXPECT_EQ(opens.lock_stateid(7, "nobody"), std::nullopt);
  EXPECT_EQ(opens.stateid(8), std::nullopt);
  EXPECT_TRUE(opens.settled());
}

TEST(Opens, has_data_go_by_locks_where_there_are_any) {
  Opens opens = one_open();
  EXPECT_EQ(opens.data_stateid(7), latest(1));
  opens.on_maybe_locked(7, "he", {{0, 9}, RangeMode::Exclusive});
  EXPECT_EQ(opens.data_stateid(7), latest(1)) << "of which the server may know nothing";
  opens.on_lock(7, "me", {{20, 29}, RangeMode::Shared}, number(2));
  EXPECT_EQ(opens.data_stateid(7), latest(2));
  opens.on_unlock(7, "me", {});
  EXPECT_EQ(opens.data_stateid(7), latest(1));
  opens.on_lock(7, "me", {{20, 29}, RangeMode::Shared}, number(2));
  opens.on_bad_stateid(7, latest(2));
  while (const auto claim = opens.next_reopen()) opens.on_claimed(*claim, number(3));
  EXPECT_EQ(opens.stateid(7), latest(3));
  EXPECT_EQ(opens.data_stateid(7), std::nullopt) << "its locks are lost";
  EXPECT_EQ(opens.data_stateid(8), std::nullopt);
}

// Of version 4.0, where an owner's stateid is kept until the server has forgotten it.
TEST(Opens, has_data_go_by_no_owner_without_locks) {
  Opens opens(Opens::Version::V40);
  opens.add(7, file(), v4::OPEN4_SHARE_ACCESS_BOTH, number(1));
  opens.on_lock(7, "me", {{20, 29}, RangeMode::Shared}, number(2));
  EXPECT_EQ(*opens.lock_owner(7, number(2)), "me");
  opens.on_unlock(7, "me", {});
  EXPECT_TRUE(opens.lock_stateid(7, "me").has_value());
  EXPECT_EQ(opens.data_stateid(7), number(1));
  EXPECT_EQ(opens.lock_owner(7, number(1)), nullptr);
  EXPECT_EQ(opens.lock_owner(8, number(2)), nullptr);
}

TEST(Opens, forgets_an_owner_without_locks) {
  Opens opens = with_locks();
  opens.on_unlock(7, "me", {0, 24});
  EXPECT_TRUE(opens.has_locks(7, "me"));
  opens.on_unlock(7, "me", {});
  EXPECT_FALSE(opens.has_locks(7, "me"));
  opens.on_unlock(7, "you", {});
  EXPECT_EQ(opens.any_lock_owner(7), nullptr);
}

// RFC 8881 9.5: which the server has one of for a byte and an owner.
TEST(Opens, claims_a_lock_by_the_open_alone_by_which_its_owner_changed_it_last) {
  for (const auto version : {Opens::Version::V40, Opens::Version::WithSessions}) {
    Opens opens(version);
    for (const Opens::Id id : {7, 8}) opens.add(id, file(), v4::OPEN4_SHARE_ACCESS_BOTH, number(1));
    opens.add(9, v4::nfs_fh4(bytes_of("other")), v4::OPEN4_SHARE_ACCESS_BOTH, number(1));
    opens.on_lock(8, "you", {{0, 9}, RangeMode::Shared}, number(4));
    opens.on_lock(9, "me", {{0, 9}, RangeMode::Shared}, number(5));
    opens.on_lock(8, "me", {{0, 9}, RangeMode::Shared}, number(2));
    opens.on_lock(7, "me", {{5, 9}, RangeMode::Exclusive}, number(3));
    opens.on_restart();
    std::vector<std::tuple<Opens::Id, Opens::LockOwner, state::Range>> claimed;
    for (auto claim = opens.next_reclaim(); claim; claim = opens.next_reclaim()) {
      if (claim->kind == Kind::ReclaimLock)
        claimed.emplace_back(claim->open, claim->owner, claim->lock.range);
      opens.on_claimed(*claim, number(6));
    }
    using Lock = decltype(claimed)::value_type;
    EXPECT_EQ(claimed, (std::vector{Lock{7, "me", {5, 9}}, Lock{8, "me", {0, 4}},
                                    Lock{8, "you", {0, 9}}, Lock{9, "me", {0, 9}}}));
  }
}

TEST(Opens, an_unlock_by_one_open_is_one_of_what_its_owner_locked_by_others) {
  Opens opens = with_locks();
  opens.add(8, file(), v4::OPEN4_SHARE_ACCESS_BOTH, number(4));
  opens.on_lock(8, "me", {{100, 109}, RangeMode::Exclusive}, number(5));
  opens.on_lock(8, "me", {{}, RangeMode::None}, number(5));
  EXPECT_FALSE(opens.has_locks("me"));
  EXPECT_TRUE(opens.has_locks(7, "you"));
}

TEST(Opens, a_lock_that_was_lost_stays_so_whatever_its_owner_locks_by_another_open) {
  Opens opens = with_locks();
  opens.on_restart();
  grant(opens, 11);
  opens.on_refused(*opens.next_reclaim());
  opens.add(8, file(), v4::OPEN4_SHARE_ACCESS_BOTH, number(4));
  opens.on_lock(8, "me", {{}, RangeMode::Exclusive}, number(5));
  opens.on_unlock(7, "you", {});
  EXPECT_FALSE(opens.intact(7));
  opens.on_unlock(7, "me", {});
  EXPECT_TRUE(opens.intact(7));
}

TEST(Opens, tells_what_an_owner_has_locked_of_a_range) {
  const Opens opens = with_locks();
  const auto pieces = opens.locks_within(7, "me", {5, 24});
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].range, (state::Range{5, 9}));
  EXPECT_EQ(pieces[0].mode, RangeMode::Exclusive);
  EXPECT_EQ(pieces[1].mode, RangeMode::None);
  EXPECT_EQ(pieces[2].range, (state::Range{20, 24}));
  EXPECT_EQ(pieces[2].mode, RangeMode::Shared);
  const auto none = opens.locks_within(7, "nobody", {5, 24});
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0].mode, RangeMode::None);
  EXPECT_TRUE(opens.locks_within(8, "me", {}).empty());
}

TEST(Opens, claims_each_open_and_then_its_locks_after_a_restart) {
  Opens opens = with_locks();
  opens.on_restart();
  EXPECT_FALSE(opens.settled());
  EXPECT_EQ(opens.stateid(7), std::nullopt) << "until it is claimed";
  EXPECT_EQ(opens.next_reclaim()->kind, Kind::Reclaim);
  grant(opens, 11);
  std::vector<state::Range> claimed;
  for (auto claim = opens.next_reclaim(); claim; claim = opens.next_reclaim()) {
    EXPECT_EQ(claim->kind, Kind::ReclaimLock);
    claimed.push_back(claim->lock.range);
    opens.on_claimed(*claim, number(claim->owner == "me" ? 12 : 13));
  }
  EXPECT_EQ(claimed, (std::vector<state::Range>{{0, 9}, {20, 29}, {50, state::Range::kEnd}}));
  EXPECT_TRUE(opens.settled());
  EXPECT_TRUE(opens.intact(7));
  EXPECT_EQ(opens.stateid(7), latest(11));
  EXPECT_EQ(opens.lock_stateid(7, "you"), latest(13));
}

TEST(Opens, begins_again_when_the_server_restarts_while_it_is_claimed_of) {
  Opens opens = with_locks();
  opens.on_restart();
  grant(opens, 11);
  grant(opens, 12);
  opens.on_restart();
  int claims = 0;
  for (; opens.next_reclaim() && claims < 10; ++claims) grant(opens, 21);
  EXPECT_EQ(claims, 4) << "the open and three locks";
  EXPECT_TRUE(opens.intact(7));
}

TEST(Opens, opens_again_what_may_not_be_claimed_and_has_lost_its_locks) {
  Opens opens = with_locks();
  opens.on_restart();
  opens.on_refused(*opens.next_reclaim());
  EXPECT_EQ(opens.next_reclaim(), std::nullopt);
  const auto again = opens.next_reopen();
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->kind, Kind::Reopen);
  opens.on_claimed(*again, number(5));
  EXPECT_TRUE(opens.settled());
  EXPECT_EQ(opens.stateid(7), latest(5));
  EXPECT_FALSE(opens.intact(7)) << "the locks";
  EXPECT_EQ(opens.lock_stateid(7, "me"), std::nullopt);
  opens.on_unlock(7, "me", {});
  EXPECT_FALSE(opens.intact(7)) << "those of somebody else";
  opens.on_unlock(7, "you", {});
  EXPECT_TRUE(opens.intact(7));
}

TEST(Opens, a_lock_that_is_refused_leaves_the_open_and_no_claim) {
  Opens opens = with_locks();
  opens.on_restart();
  grant(opens, 11);
  opens.on_refused(*opens.next_reclaim());
  EXPECT_TRUE(opens.settled());
  EXPECT_EQ(opens.stateid(7), latest(11));
  EXPECT_FALSE(opens.intact(7));
}

TEST(Opens, an_open_that_is_refused_twice_is_lost_until_it_is_removed) {
  Opens opens = one_open();
  opens.on_restart();
  opens.on_refused(*opens.next_reclaim());
  opens.on_refused(*opens.next_reopen());
  EXPECT_TRUE(opens.settled());
  EXPECT_FALSE(opens.intact(7));
  EXPECT_EQ(opens.stateid(7), std::nullopt);
  opens.on_restart();
  EXPECT_TRUE(opens.settled()) << "there is nothing to claim";
  opens.remove(7);
  EXPECT_TRUE(opens.empty());
}

TEST(Opens, a_stateid_that_is_not_known_is_freed_and_its_open_made_again) {
  for (const std::uint8_t which : {1, 2, 3}) {
    Opens opens = with_locks();
    opens.on_bad_stateid(7, latest(which));
    int freed = 0;
    auto claim = opens.next_reopen();
    for (; claim && claim->kind == Kind::Free; claim = opens.next_reopen(), ++freed)
      opens.on_claimed(*claim, {});
    EXPECT_EQ(freed, 3) << "locks first, then the open";
    ASSERT_TRUE(claim && claim->kind == Kind::Reopen);
    opens.on_claimed(*claim, number(9));
    EXPECT_TRUE(opens.settled());
    EXPECT_FALSE(opens.intact(7));
  }
}

TEST(Opens, an_answer_about_a_stateid_of_before_changes_nothing) {
  Opens opens = one_open();
  opens.on_bad_stateid(7, latest(4));
  EXPECT_TRUE(opens.settled());
  opens.on_bad_stateid(8, latest(1));
  EXPECT_TRUE(opens.settled());
}

TEST(Opens, claim_no_more_what_is_given_back_meanwhile) {
  Opens opens = with_locks();
  opens.on_restart();
  grant(opens, 11);
  opens.on_unlock(7, "me", {});
  opens.on_unlock(7, "you", {60, state::Range::kEnd});
  const auto claim = opens.next_reclaim();
  ASSERT_TRUE(claim.has_value());
  EXPECT_EQ(claim->lock.range, (state::Range{50, 59}));
  opens.remove(7);
  opens.on_claimed(*claim, number(3));
  EXPECT_EQ(opens.next_reclaim(), std::nullopt);
  EXPECT_TRUE(opens.settled());
}

TEST(Opens, a_client_that_ends_claims_no_more_than_the_one_that_it_may_have_been_granted) {
  Opens opens = with_locks();
  opens.add(8, {}, v4::OPEN4_SHARE_ACCESS_READ, number(8));
  opens.add(9, {}, v4::OPEN4_SHARE_ACCESS_READ, number(9));
  opens.on_restart();
  grant(opens, 11);
  opens.give_up_claims();
  EXPECT_EQ(opens.size(), 1u);
  while (const auto claim = opens.next_reclaim()) {
    EXPECT_EQ(claim->kind, Kind::ReclaimLock);
    EXPECT_EQ(claim->open, 7u);
    opens.on_claimed(*claim, number(3));
  }
  EXPECT_TRUE(opens.settled());
  EXPECT_TRUE(opens.intact(7)) << "it is to be closed";
}

TEST(Opens, that_are_put_off_are_claimed_behind_all_others) {
  Opens opens;
  for (const std::uint8_t id : {1, 2, 3})
    opens.add(id, {}, v4::OPEN4_SHARE_ACCESS_READ, number(id));
  opens.on_restart();
  const auto alone = [](const Opener*) { return false; };
  opens.on_put_off(*opens.next_reclaim(), alone);
  std::vector<Opens::Id> order;
  for (int i = 0; i < 2; ++i) {
    const auto claim = opens.next_reclaim();
    ASSERT_TRUE(claim);
    order.push_back(claim->open);
    opens.on_refused(*claim);
  }
  EXPECT_EQ(order, (std::vector<Opens::Id>{2, 3}));
  const auto last = opens.next_reclaim();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->open, 1u) << "there is no other one";
  opens.on_refused(*last);
  opens.on_put_off(*opens.next_reopen(), alone);
  EXPECT_EQ(opens.next_reopen()->open, 2u);
  EXPECT_FALSE(opens.settled());
}

// As many as are claimed at once, and one more: whoever holds them cannot be asked for just then.
TEST(Opens, are_put_off_together_where_they_have_one_holder) {
  const auto theirs = std::make_shared<const Opener>(Opener{1});
  const auto another = std::make_shared<const Opener>(Opener{2});
  const auto of_them = [](const Opener* opener) { return opener != nullptr && opener->user == 1; };
  Opens opens;
  for (Opens::Id id = 1; id <= 17; ++id)
    opens.add(id, {}, v4::OPEN4_SHARE_ACCESS_READ, number(1), theirs);
  opens.add(18, {}, v4::OPEN4_SHARE_ACCESS_READ, number(2), another);
  opens.add(19, {}, v4::OPEN4_SHARE_ACCESS_READ, number(3));
  opens.on_restart();
  const auto first = begun(opens, 16);
  ASSERT_EQ(first.size(), 16u);
  for (const auto& claim : first) {
    opens.on_put_off(claim, of_them);
    opens.end(claim);
  }
  std::vector<Opens::Id> next;
  for (; opens.reclaim_due() == Opens::Due::Now; opens.on_refused(*opens.next_reclaim()))
    next.push_back(opens.next_reclaim()->open);
  EXPECT_EQ(next, (std::vector<Opens::Id>{18, 19}));
  EXPECT_EQ(opens.reclaim_due(), Opens::Due::Later);
  for (int i = 0; i < 17; ++i) opens.on_refused(*opens.next_reclaim());
  ASSERT_EQ(opens.next_reclaim(), std::nullopt);
  opens.on_put_off(*opens.next_reopen(), of_them);
  const auto again = opens.next_reopen();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->open, 18u) << "to be opened again, too";
}

TEST(Opens, are_claimed_by_one_claim_at_a_time_each) {
  Opens opens = with_locks();
  opens.on_restart();
  const auto claim = opens.next_reclaim();
  opens.begin(*claim);
  EXPECT_EQ(opens.next_reclaim(), std::nullopt);
  EXPECT_EQ(opens.reclaim_due(), Opens::Due::None) << "and its locks behind it";
  opens.end(*claim);
  EXPECT_EQ(opens.reclaim_due(), Opens::Due::Now) << "nobody has heard of it";
}

TEST(Opens, are_settled_each_by_itself) {
  Opens opens = with_locks();
  opens.add(8, {}, v4::OPEN4_SHARE_ACCESS_READ, number(8));
  opens.on_restart();
  EXPECT_FALSE(opens.settled(7));
  EXPECT_FALSE(opens.settled(8));
  grant(opens, 11);
  EXPECT_FALSE(opens.settled(7)) << "its locks are not claimed";
  while (!opens.settled(7)) grant(opens, 12);
  EXPECT_FALSE(opens.settled(8));
  opens.on_refused(*opens.next_reclaim());
  EXPECT_FALSE(opens.settled(8)) << "it is to be opened again";
  EXPECT_EQ(opens.next_reclaim(), std::nullopt);
  EXPECT_TRUE(opens.reclaimed());
  opens.on_refused(*opens.next_reopen());
  EXPECT_TRUE(opens.settled(8)) << "it is lost";
  EXPECT_TRUE(opens.settled(9)) << "there is none";
}

// Its answer says nothing of the opens.
TEST(Opens, are_made_again_while_the_server_puts_off_to_free_what_there_was) {
  Opens opens = one_open();
  opens.on_bad_stateid(7, latest(1));
  const auto free = opens.next_reopen();
  ASSERT_EQ(free->kind, Kind::Free);
  opens.begin(*free);
  EXPECT_EQ(opens.reopen_due(), Opens::Due::None);
  opens.put_off(*free);
  opens.end(*free);
  EXPECT_EQ(opens.reopen_due(), Opens::Due::Now);
  opens.on_claimed(*opens.next_reopen(), number(9));
  EXPECT_TRUE(opens.settled(7));
  EXPECT_EQ(opens.reopen_due(), Opens::Due::Later);
  EXPECT_EQ(opens.next_reopen()->kind, Kind::Free);
}

// What a server may have granted that has restarted since it does not know any more.
TEST(Opens, that_were_claimed_before_another_restart_are_claimed_by_no_client_that_ends) {
  Opens opens;
  opens.add(1, {}, v4::OPEN4_SHARE_ACCESS_READ, number(1));
  opens.on_restart();
  ASSERT_TRUE(opens.next_reclaim());
  opens.on_restart();
  opens.give_up_claims();
  EXPECT_TRUE(opens.empty());
}

TEST(Opens, are_asked_together_what_an_owner_has_locked_of_one_file) {
  Opens opens;
  opens.add(1, {}, v4::OPEN4_SHARE_ACCESS_READ, number(1));
  opens.add(2, {}, v4::OPEN4_SHARE_ACCESS_READ, number(2));
  opens.on_lock(1, "owner", {{0, 4}, RangeMode::Shared}, number(3));
  opens.on_lock(2, "owner", {{8, 9}, RangeMode::Exclusive}, number(4));
  const auto pieces = opens.all_within(1, "owner", {2, 9});
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].mode, RangeMode::Shared);
  EXPECT_EQ(pieces[1].mode, RangeMode::None);
  EXPECT_EQ(pieces[2].mode, RangeMode::Exclusive);
  EXPECT_EQ(pieces[2].range.first, 8u);
  EXPECT_TRUE(opens.all_within(3, "owner", {2, 9}).empty());
}

TEST(Opens, several_are_claimed_at_once_and_the_locks_of_each_behind_it) {
  Opens opens = with_locks();
  opens.add(8, {}, v4::OPEN4_SHARE_ACCESS_READ, number(8));
  opens.add(9, {}, v4::OPEN4_SHARE_ACCESS_READ, number(9));
  opens.on_restart();
  auto claims = begun(opens, 2);
  ASSERT_EQ(claims.size(), 2u);
  EXPECT_EQ(std::pair(claims[0].kind, claims[0].open), std::pair(Kind::Reclaim, Opens::Id{7}));
  EXPECT_EQ(std::pair(claims[1].kind, claims[1].open), std::pair(Kind::Reclaim, Opens::Id{8}));
  for (const auto& claim : claims) {
    opens.on_claimed(claim, number(11));
    opens.end(claim);
  }
  claims = begun(opens, 8);
  ASSERT_EQ(claims.size(), 2u);
  EXPECT_EQ(std::pair(claims[0].kind, claims[0].open), std::pair(Kind::ReclaimLock, Opens::Id{7}));
  EXPECT_EQ(std::pair(claims[1].kind, claims[1].open), std::pair(Kind::Reclaim, Opens::Id{9}));
}

TEST(Opens, a_client_that_ends_claims_all_that_it_may_have_been_granted_at_once) {
  Opens opens;
  for (Opens::Id id = 1; id <= 4; ++id)
    opens.add(id, {}, v4::OPEN4_SHARE_ACCESS_READ, number(static_cast<std::uint8_t>(id)));
  opens.on_restart();
  const auto claims = begun(opens, 3);
  opens.on_claimed(claims[1], number(11));
  for (const auto& claim : claims) opens.end(claim);
  opens.give_up_claims();
  EXPECT_EQ(opens.size(), 3u);
  std::vector<Opens::Id> again;
  while (const auto claim = opens.next_reclaim()) {
    again.push_back(claim->open);
    opens.on_claimed(*claim, number(12));
  }
  EXPECT_EQ(again, (std::vector<Opens::Id>{1, 3})) << "the second one is held";
  EXPECT_TRUE(opens.intact(2));
}

}  // namespace
}  // namespace stag::nfs::session
