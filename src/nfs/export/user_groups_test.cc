// Groups of users, with a name service that knows them, or not, or is slow.
#include "nfs/export/user_groups.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "oncrpc/auth_sys.h"
#include "rpc/credentials.h"
#include "testing/held_executor.h"
#include "testing/manual_loop.h"

namespace stag::nfs {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using List = std::vector<std::uint32_t>;

class Directory final : public GroupService {
 public:
  Result<List, NoUser> groups_of(std::uint32_t uid) override {
    ++asked;
    if (fails) return Failure{NoUser::Failed};
    const auto found = users.find(uid);
    if (found == users.end()) return Failure{NoUser::Unknown};
    const List groups = found->second;
    std::exchange(meanwhile, [] {})();
    return groups;
  }
  std::function<void()> meanwhile = [] {};  // while it is about to answer
  std::map<std::uint32_t, List> users{{1000, {20, 30}}};
  int asked = 0;
  bool fails = false;
};

class UserGroupsTest : public ::testing::Test {
 protected:
  struct Call {
    bool ended = false;
    UserGroups::List groups{};
  };

  // Null: it would have to wait.
  UserGroups::List known(std::uint32_t uid, std::string_view host = "192.0.2.1") {
    return groups_.known(uid, {loop_, host});
  }
  Task<void> note(std::uint32_t uid, std::string_view host, std::shared_ptr<Call> to) {
    to->groups = co_await groups_.of(uid, {loop_, host});
    to->ended = true;
  }
  // One that waits, if it has to.
  std::shared_ptr<Call> call(std::uint32_t uid = 1000, std::string_view host = "192.0.2.1") {
    auto made = std::make_shared<Call>();
    detach(note(uid, host, made));
    return made;
  }
  // The groups of a call that need not wait long.
  List at_once(std::uint32_t uid = 1000, std::string_view host = "192.0.2.1") {
    if (const auto groups = known(uid, host)) return *groups;
    const auto made = call(uid, host);
    loop_.drain();
    EXPECT_TRUE(made->ended);
    return made->groups == nullptr ? List{kUndecided} : *made->groups;
  }
  void answer() {
    workers_->run_all();
    loop_.drain();
  }

  static constexpr std::uint32_t kUndecided = 0xffffffff;
  const List both_{20, 30};
  testing::ManualLoop loop_;
  std::shared_ptr<Directory> directory_ = std::make_shared<Directory>();
  std::shared_ptr<testing::HeldExecutor> workers_ = std::make_shared<testing::HeldExecutor>(true);
  UserGroups groups_{directory_,
                     workers_,
                     [this] { return loop_.now(); },
                     {.entries = 4, .strangers = 2, .waiting = 3, .waiting_each = 2}};
};

TEST_F(UserGroupsTest, asks_once_and_knows_at_once_from_then_on) {
  EXPECT_EQ(known(1000), nullptr);
  EXPECT_EQ(at_once(), both_);
  EXPECT_EQ(*known(1000), both_);
  loop_.pass(minutes(9));
  EXPECT_EQ(*known(1000), both_);
  EXPECT_EQ(at_once(1000, "192.0.2.2"), both_);
  EXPECT_EQ(directory_->asked, 1);
}

TEST_F(UserGroupsTest, gives_all_groups_also_when_they_have_become_more) {
  at_once();
  List many(5000);
  std::iota(many.begin(), many.end(), 100);
  directory_->users[1000] = many;
  loop_.pass(minutes(11));
  EXPECT_EQ(*known(1000), both_);
  loop_.pass(seconds(2));
  EXPECT_EQ(*known(1000), many);
}

TEST_F(UserGroupsTest, somebody_whom_nobody_knows_has_no_groups) {
  EXPECT_EQ(at_once(7), List{});
  EXPECT_EQ(*known(7), List{});
  directory_->users[7] = {5};
  loop_.pass(seconds(61));
  EXPECT_EQ(*known(7), List{});
  loop_.pass(seconds(2));
  EXPECT_EQ(*known(7), List{5});
  directory_->users.erase(7);
  loop_.pass(minutes(11));
  known(7);
  loop_.pass(seconds(2));
  EXPECT_EQ(*known(7), List{}) << "he is no user any more";
}

TEST_F(UserGroupsTest, numbers_of_nobody_displace_no_user) {
  at_once();
  for (std::uint32_t uid = 1; uid < 100; ++uid) at_once(uid);
  EXPECT_EQ(directory_->asked, 100);
  loop_.pass(seconds(2));
  EXPECT_EQ(*known(1000), both_);
  EXPECT_EQ(directory_->asked, 100);
}

TEST_F(UserGroupsTest, keeps_as_many_users_as_it_may_and_those_who_call) {
  for (std::uint32_t uid = 1001; uid < 1010; ++uid) directory_->users[uid] = {uid};
  at_once();
  for (std::uint32_t uid = 1001; uid < 1010; ++uid) {
    at_once(uid);
    loop_.pass(seconds(2));
    EXPECT_NE(known(1000), nullptr);
  }
  EXPECT_EQ(known(1001), nullptr);
}

TEST_F(UserGroupsTest, do_not_take_a_user_whom_others_displace_for_a_stranger_again) {
  EXPECT_EQ(at_once(7), List{});
  for (std::uint32_t uid : {7, 1001, 1002, 1003, 1004}) directory_->users[uid] = {uid};
  loop_.pass(seconds(63));
  EXPECT_EQ(*known(7), List{});
  loop_.pass(seconds(2));
  EXPECT_EQ(*known(7), List{7});
  for (std::uint32_t uid : {1001, 1002, 1003, 1004}) at_once(uid);
  loop_.pass(seconds(2));
  EXPECT_EQ(known(7), nullptr);
  EXPECT_EQ(at_once(7), List{7});
}

TEST_F(UserGroupsTest, a_user_that_goes_on_calling_waits_once_however_long_the_service_hangs) {
  at_once();
  workers_->at_once = false;
  for (int i = 0; i < 180; ++i) {
    loop_.pass(minutes(1));
    EXPECT_EQ(at_once(), both_) << i;
  }
  EXPECT_EQ(workers_->held.size(), 1u) << "is asked once at a time";
  directory_->users[1000] = {40};
  answer();
  EXPECT_EQ(*known(1000), List{40});
}

TEST_F(UserGroupsTest, a_user_that_has_not_called_for_long_waits_again) {
  at_once();
  loop_.pass(minutes(31));
  directory_->users[1000] = {40};
  EXPECT_EQ(known(1000), nullptr);
  EXPECT_EQ(at_once(), List{40});
}

TEST_F(UserGroupsTest, a_question_is_waited_for_no_longer_than_patience_in_all) {
  workers_->at_once = false;
  const auto first = call(), late = (loop_.pass(seconds(4)), call());
  EXPECT_FALSE(first->ended || late->ended);
  loop_.pass(seconds(1));
  EXPECT_TRUE(first->ended && late->ended);
  EXPECT_EQ(first->groups, nullptr);
  EXPECT_EQ(at_once(), List{kUndecided}) << "nobody waits any more";
  answer();
  EXPECT_EQ(at_once(), both_);
  EXPECT_EQ(directory_->asked, 1);
}

TEST_F(UserGroupsTest, an_answer_in_the_moment_in_which_patience_ends_resumes_a_call_once) {
  workers_->at_once = false;
  const auto before = call();
  workers_->run_all();  // posts
  loop_.pass(seconds(5));
  EXPECT_EQ(*before->groups, both_);
  const auto after = call(7);
  while (!after->ended) loop_.advance();  // the timer
  answer();
  EXPECT_EQ(after->groups, nullptr);
}

TEST_F(UserGroupsTest, an_old_answer_is_better_than_none) {
  at_once();
  loop_.pass(minutes(31));
  workers_->at_once = false;
  const auto waits = call();
  EXPECT_FALSE(waits->ended);
  loop_.pass(seconds(5));
  EXPECT_EQ(*waits->groups, both_);
  EXPECT_EQ(at_once(), both_);
}

TEST_F(UserGroupsTest, a_known_list_holds_while_the_service_fails) {
  at_once();
  directory_->fails = true;
  loop_.pass(minutes(31));
  EXPECT_EQ(at_once(), both_);
  for (int i = 0; i < 60; ++i) {
    loop_.pass(minutes(1));
    ASSERT_NE(known(1000), nullptr) << i;
  }
  directory_->fails = false;
  directory_->users[1000] = {40};
  loop_.pass(seconds(6));
  known(1000);
  loop_.pass(seconds(2));
  EXPECT_EQ(*known(1000), List{40});
}

TEST_F(UserGroupsTest,
       somebody_unknown_is_undecided_while_the_service_fails_and_soon_asked_for_again) {
  directory_->fails = true;
  EXPECT_EQ(at_once(), List{kUndecided});
  EXPECT_EQ(at_once(), List{kUndecided});
  EXPECT_EQ(directory_->asked, 1);
  directory_->fails = false;
  loop_.pass(seconds(6));
  EXPECT_EQ(at_once(), both_);
}

TEST_F(UserGroupsTest, a_forgotten_list_is_asked_for_anew) {
  at_once();
  directory_->users[1000] = {40};
  groups_.forget();
  EXPECT_EQ(known(1000), nullptr);
  EXPECT_EQ(at_once(), List{40});
}

TEST_F(UserGroupsTest, a_forgotten_list_counts_only_where_the_service_fails) {
  at_once();
  groups_.forget();
  directory_->fails = true;
  EXPECT_EQ(at_once(), both_);
  EXPECT_EQ(*known(1000), both_);
}

TEST_F(UserGroupsTest, an_answer_from_before_all_was_forgotten_does_not_count) {
  workers_->at_once = false;
  const auto before = call();
  groups_.forget();
  const auto after = call();
  directory_->users[1000] = {40};
  ASSERT_EQ(workers_->held.size(), 2u);
  answer();
  EXPECT_TRUE(before->ended);
  EXPECT_EQ(*after->groups, List{40});
  EXPECT_EQ(directory_->asked, 1) << "the first question had lost its sense";
}

TEST_F(UserGroupsTest, an_answer_that_was_on_its_way_when_all_was_forgotten_does_not_count) {
  directory_->meanwhile = [this] {
    directory_->users[1000] = {40};
    groups_.forget();
  };
  EXPECT_EQ(at_once(), List{kUndecided});
  EXPECT_EQ(at_once(), List{40});
}

TEST_F(UserGroupsTest, clients_take_turns_and_each_has_its_own_question) {
  workers_->at_once = false;
  const auto one = call(1000, "192.0.2.1"), other = call(1000, "192.0.2.2");
  const auto same = call(1000, "::ffff:192.0.2.1");
  const auto third = call(1000, "2001:db8::1"), neighbour = call(1000, "2001:db8::2");
  ASSERT_EQ(workers_->held.size(), 3u);
  EXPECT_NE(workers_->held[0].client, workers_->held[1].client);
  answer();
  for (const auto& each : {one, other, same}) EXPECT_EQ(*each->groups, both_);
  EXPECT_EQ(directory_->asked, 1) << "the others find it answered";
}

TEST_F(UserGroupsTest, some_calls_of_a_client_may_wait_and_no_more_of_all) {
  workers_->at_once = false;
  const auto first = call(), second = call();
  EXPECT_EQ(at_once(), List{kUndecided}) << "the client has two";
  const auto other = call(1000, "192.0.2.2");
  EXPECT_FALSE(other->ended);
  EXPECT_EQ(at_once(1000, "192.0.2.3"), List{kUndecided}) << "there are three";
  loop_.pass(seconds(5));
  EXPECT_TRUE(first->ended && second->ended && other->ended);
  answer();
  const auto again = call(7);
  EXPECT_FALSE(again->ended) << "those who have waited are not counted";
  answer();
  EXPECT_TRUE(again->ended);
}

TEST_F(UserGroupsTest, have_a_call_come_again_where_the_workers_take_no_more) {
  workers_->full = true;
  EXPECT_EQ(at_once(), List{kUndecided});
  workers_->full = false;
  EXPECT_EQ(at_once(), both_);
}

TEST_F(UserGroupsTest, a_call_that_waited_for_workers_that_gave_up_comes_again) {
  workers_->at_once = false;
  const auto waits = call();
  workers_->give_all_back();
  loop_.drain();
  EXPECT_TRUE(waits->ended);
  EXPECT_EQ(waits->groups, nullptr);
  workers_->at_once = true;
  EXPECT_EQ(at_once(), both_);
}

class AuthSysWithGroupsTest : public UserGroupsTest {
 protected:
  AuthSysWithGroupsTest() {
    const std::array<std::uint32_t, 2> claimed{1, 2};
    who_ = rpc::Credentials::sys("client", 1000, 100, claimed);
    header_.credential = who_.credential();
    origin_->peer = {"192.0.2.1", 700};
    origin_->loop = &loop_;
    call_.origin = origin_;
  }
  rpc::Authentication authenticate() {
    rpc::Authentication made;
    if (sys_->authenticate_at_once(header_, call_, made)) return made;
    return *loop_.run(sys_->authenticate(header_, call_));
  }

  rpc::Credentials who_;
  oncrpc::CallHeader header_;
  std::shared_ptr<rpc::Origin> origin_ = std::make_shared<rpc::Origin>();
  rpc::IncomingCall call_;
  // It shares nothing with the other.
  const std::unique_ptr<rpc::Authenticator> sys_ = auth_sys_with(
      std::make_shared<UserGroups>(directory_, workers_, [this] { return loop_.now(); }));
};

TEST_F(AuthSysWithGroupsTest, callers_have_the_groups_of_the_service_beside_those_they_claim) {
  for (int i = 0; i < 2; ++i) {
    const rpc::Authentication who = authenticate();
    EXPECT_EQ(who.verdict, rpc::Authentication::Verdict::Accepted);
    EXPECT_EQ(who.caller.uid, 1000u);
    EXPECT_EQ(who.caller.gid, 100u);
    EXPECT_EQ(who.caller.gids, (decltype(who.caller.gids){1, 2}));
    EXPECT_EQ(*who.caller.groups, both_);
    EXPECT_FALSE(who.caller.groups_undecided);
  }
  rpc::Authentication again;
  EXPECT_TRUE(sys_->authenticate_at_once(header_, call_, again)) << "without a coroutine";
  EXPECT_EQ(directory_->asked, 1);
}

TEST_F(AuthSysWithGroupsTest, callers_are_undecided_while_the_service_does_not_answer) {
  workers_->at_once = false;
  const rpc::Authentication who = authenticate();
  EXPECT_EQ(who.verdict, rpc::Authentication::Verdict::Accepted);
  EXPECT_EQ(who.caller.groups, nullptr);
  EXPECT_TRUE(who.caller.groups_undecided);
}

TEST_F(AuthSysWithGroupsTest, a_credential_that_cannot_be_read_is_refused) {
  header_.credential.body = header_.credential.body.first(9);
  const rpc::Authentication who = authenticate();
  EXPECT_EQ(who.verdict, rpc::Authentication::Verdict::Refused);
  EXPECT_EQ(who.refusal, oncrpc::AuthStat::AUTH_BADCRED);
  EXPECT_FALSE(sys_->may_accept(header_));
  EXPECT_EQ(directory_->asked, 0);
}

}  // namespace
}  // namespace stag::nfs
