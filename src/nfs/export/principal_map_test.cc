// Users by their principals, with a service that knows them, or not, or is slow.
#include "nfs/export/principal_map.h"

#include <gtest/gtest.h>

#include <map>

#include "testing/held_executor.h"
#include "testing/manual_loop.h"

namespace stag::nfs {
namespace {

class Realm final : public PrincipalService {
 public:
  Result<PrincipalIds, NoUser> ids_of(const std::string& principal) override {
    ++asked;
    if (fails) return Failure{NoUser::Failed};
    const auto found = users.find(principal);
    if (found == users.end()) return Failure{NoUser::Unknown};
    return found->second;
  }
  std::map<std::string, PrincipalIds> users{{"anna@HERE", {1000, 100, {20, 30}}}};
  int asked = 0;
  bool fails = false;
};

class PrincipalMapTest : public ::testing::Test {
 protected:
  std::shared_ptr<const PrincipalIds> ids_of(const std::string& principal) {
    return *loop_.run(map_.ids_of(principal, loop_, this));
  }
  static Task<void> keep(PrincipalMap& map, Loop& loop,
                         std::optional<std::shared_ptr<const PrincipalIds>>& to) {
    to = co_await map.ids_of("anna@HERE", loop, nullptr);
  }

  testing::ManualLoop loop_;
  std::shared_ptr<Realm> realm_ = std::make_shared<Realm>();
  std::shared_ptr<testing::HeldExecutor> worker_ = std::make_shared<testing::HeldExecutor>(true);
  PrincipalMap map_{realm_, worker_};
};

TEST_F(PrincipalMapTest, asks_once_and_remembers_for_ten_minutes) {
  EXPECT_EQ(ids_of("anna@HERE")->uid, 1000u);
  EXPECT_EQ(ids_of("anna@HERE")->gid, 100u);
  EXPECT_EQ(ids_of("anna@HERE")->gids, (std::vector<std::uint32_t>{20, 30}));
  EXPECT_EQ(realm_->asked, 1);
  realm_->users["anna@HERE"].uid = 7;
  loop_.pass(std::chrono::minutes(11));
  EXPECT_EQ(map_.known("anna@HERE", loop_.now()), nullptr);
  EXPECT_EQ(ids_of("anna@HERE")->uid, 7u);
  EXPECT_EQ(map_.known("anna@HERE", loop_.now())->uid, 7u);
}

TEST_F(PrincipalMapTest, remembers_for_a_minute_that_a_principal_is_no_user) {
  EXPECT_EQ(ids_of("host/client@HERE")->uid, vfs::kNoId);
  EXPECT_EQ(ids_of("host/client@HERE")->gid, vfs::kNoId);
  EXPECT_EQ(realm_->asked, 1);
  realm_->users["host/client@HERE"] = {9, 9, {}};
  loop_.pass(std::chrono::seconds(61));
  EXPECT_EQ(ids_of("host/client@HERE")->uid, 9u);
}

TEST_F(PrincipalMapTest, gives_all_groups) {
  PrincipalIds& anna = realm_->users["anna@HERE"];
  for (std::uint32_t gid = 0; gid < 100; ++gid) anna.gids.push_back(gid);
  EXPECT_EQ(ids_of("anna@HERE")->gids, anna.gids);
}

TEST_F(PrincipalMapTest, does_not_ask_for_what_is_no_name) {
  EXPECT_EQ(ids_of(std::string(kLongestPrincipal + 1, 'x'))->uid, vfs::kNoId);
  EXPECT_EQ(ids_of(std::string("anna\0@HERE", 10))->uid, vfs::kNoId);
  EXPECT_EQ(realm_->asked, 0);
}

TEST_F(PrincipalMapTest, waits_no_longer_than_its_patience_and_finds_the_answer_later) {
  worker_->at_once = false;
  std::optional<std::shared_ptr<const PrincipalIds>> answer;
  detach(keep(map_, loop_, answer));
  loop_.pass(std::chrono::seconds(19));
  EXPECT_FALSE(answer.has_value());
  loop_.pass(std::chrono::seconds(2));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(*answer, nullptr);
  worker_->run_all();
  loop_.drain();
  EXPECT_EQ(map_.known("anna@HERE", loop_.now())->uid, 1000u);
}

TEST_F(PrincipalMapTest, falls_back_on_an_old_answer_where_there_is_no_other) {
  ids_of("anna@HERE");
  loop_.pass(std::chrono::minutes(11));
  worker_->full = true;
  EXPECT_EQ(ids_of("anna@HERE")->uid, 1000u);
  EXPECT_EQ(ids_of("bert@HERE"), nullptr);
}

TEST_F(PrincipalMapTest, waits_less_long_where_there_is_an_old_answer) {
  ids_of("anna@HERE");
  loop_.pass(std::chrono::minutes(11));
  worker_->at_once = false;
  std::optional<std::shared_ptr<const PrincipalIds>> answer;
  detach(keep(map_, loop_, answer));
  loop_.pass(std::chrono::seconds(6));
  ASSERT_TRUE(answer.has_value());
  ASSERT_NE(*answer, nullptr);
  EXPECT_EQ((*answer)->uid, 1000u);
}

TEST_F(PrincipalMapTest, has_no_answer_while_the_service_fails_and_asks_again) {
  realm_->fails = true;
  EXPECT_EQ(ids_of("anna@HERE"), nullptr);
  EXPECT_EQ(map_.known("anna@HERE", loop_.now()), nullptr);
  realm_->fails = false;
  ASSERT_NE(ids_of("anna@HERE"), nullptr);
  EXPECT_EQ(ids_of("anna@HERE")->uid, 1000u);
}

TEST_F(PrincipalMapTest, keeps_an_old_answer_while_the_service_fails) {
  ids_of("anna@HERE");
  loop_.pass(std::chrono::minutes(11));
  realm_->fails = true;
  EXPECT_EQ(ids_of("anna@HERE")->uid, 1000u);
  realm_->fails = false;
  realm_->users["anna@HERE"].uid = 7;
  EXPECT_EQ(ids_of("anna@HERE")->uid, 7u);
}

TEST_F(PrincipalMapTest, asks_once_for_many_who_wait) {
  worker_->at_once = false;
  std::optional<std::shared_ptr<const PrincipalIds>> first, second;
  detach(keep(map_, loop_, first));
  detach(keep(map_, loop_, second));
  worker_->run_all();
  loop_.drain();
  ASSERT_TRUE(first && second && *first && *second);
  EXPECT_EQ(realm_->asked, 1);
}

}  // namespace
}  // namespace stag::nfs
