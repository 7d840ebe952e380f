// Clients by their names, with a name service that knows these, or not, or is slow, or lies.
#include "nfs/export/client_names.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "nfs/export/exports.h"
#include "testing/held_executor.h"
#include "testing/manual_loop.h"

namespace stag::nfs {
namespace {

using Match = ClientNames::Match;

class Hosts final : public HostNameService {
 public:
  Texts names_of(const std::string& address) override {
    ++asked;
    if (silent) return Failure{NoAnswer{}};
    return names[address];
  }
  Texts addresses_of(const std::string& name) override {
    if (silent) return Failure{NoAnswer{}};
    return addresses[name];
  }
  Result<std::string, NoAnswer> domain() override { return own_domain; }
  Result<bool, NoAnswer> is_member(const std::string& netgroup, const std::string& host) override {
    netgroups_asked.insert(netgroup);
    if (netgroups_are_silent) return Failure{NoAnswer{}};
    return members.contains({netgroup, host}) || members.contains({netgroup, kEverybody});
  }
  Result<bool, NoAnswer> has_netgroup(const std::string& netgroup) override {
    return !gone.contains(netgroup);
  }
  void add(const std::string& name, const std::string& address) {
    names[address].push_back(name);
    addresses[name].push_back(address);
  }

  std::map<std::string, std::vector<std::string>> names, addresses;
  std::set<std::pair<std::string, std::string>> members;
  std::set<std::string> gone, netgroups_asked;
  static constexpr const char* kEverybody = "";  // the entry (,,)
  std::string own_domain = "example.com";
  bool silent = false;
  bool netgroups_are_silent = false;
  int asked = 0;
};

class ClientNamesTest : public ::testing::Test {
 protected:
  ClientNamesTest() { hosts_->add("build.example.com", "192.0.2.1"); }

  Match matches(const std::string& match, const std::string& host) {
    return names_->matches(match, *IpAddress::parse(host), {loop_, host});
  }
  // When the name service has answered.
  Match answered(const std::string& match, const std::string& host) {
    matches(match, host);
    loop_.drain();
    return matches(match, host);
  }
  rpc::Origin from(std::string host) {
    rpc::Origin origin;
    origin.peer = {.host = std::move(host), .port = 700};
    origin.loop = &loop_;
    return origin;
  }
  Export open_to(const std::vector<std::pair<std::string, std::string>>& clients) const {
    Export made;
    for (const auto& [match, options] : clients) {
      ClientRule rule = *make_client_rule(match, *parse_export_options(options));
      if (rule.by_name) rule.names = names_;
      made.spec.clients.push_back(std::move(rule));
    }
    return made;
  }
  static Task<void> note(Task<void> settled, bool& to) {
    co_await std::move(settled);
    to = true;
  }

  // In no more than the moment in which an answer is noticed.
  bool settles(const Export& of, const std::string& host) {
    bool settled = false;
    detach(note(of.settle(from(host)), settled));
    loop_.pass(std::chrono::milliseconds(20));
    return settled;
  }

  testing::ManualLoop loop_;
  std::shared_ptr<Hosts> hosts_ = std::make_shared<Hosts>();
  std::shared_ptr<testing::HeldExecutor> worker_ = std::make_shared<testing::HeldExecutor>(true);
  std::shared_ptr<ClientNames> names_ =
      std::make_shared<ClientNames>(hosts_, worker_, ClientNamesOptions{.entries = 3});
};

TEST_F(ClientNamesTest, patterns_match_names_whatever_their_case) {
  hosts_->add("Build.Example.Org", "2001:db8::1");
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::Yes);
  EXPECT_EQ(answered("b?ild.ex*", "192.0.2.1"), Match::Yes);
  EXPECT_EQ(answered("[a-c]uild.*", "192.0.2.1"), Match::Yes);
  EXPECT_EQ(answered("[!a-c]uild.*", "192.0.2.1"), Match::No);
  EXPECT_EQ(answered("*.example.com", "2001:db8::1"), Match::No);
  EXPECT_EQ(answered("*.example.org", "2001:db8::1"), Match::Yes);
  EXPECT_EQ(answered("*.example.com", "192.0.2.77"), Match::No) << "it has no name";
}

TEST_F(ClientNamesTest, a_name_counts_if_it_leads_back) {
  hosts_->names["198.51.100.1"] = {"build.example.com"};
  EXPECT_EQ(answered("*.example.com", "198.51.100.1"), Match::No);
  hosts_->members.insert({"trusted", "build.example.com"});
  names_->mention("@trusted");
  EXPECT_EQ(answered("@trusted", "198.51.100.1"), Match::No);
}

TEST_F(ClientNamesTest, a_name_that_no_host_can_have_matches_nothing) {
  const std::string hostile[] = {"198.51.100.2",
                                 std::string("a\0.example.com", 14),
                                 "a\n.example.com",
                                 "*.example.com",
                                 "",
                                 std::string(300, 'a') + ".example.com",
                                 "a/b.example.com",
                                 "..\x80.example.com"};
  for (const std::string& name : hostile) {
    hosts_->names.clear();
    hosts_->addresses.clear();
    hosts_->add(name, "198.51.100.2");
    names_->forget();
    EXPECT_EQ(answered("*?", "198.51.100.2"), Match::No) << name;
  }
  hosts_->names["198.51.100.2"] = std::vector<std::string>(10000, "many.example.com");
  hosts_->addresses["many.example.com"] = {"198.51.100.2"};
  names_->forget();
  EXPECT_EQ(answered("many*", "198.51.100.2"), Match::Yes);
}

TEST_F(ClientNamesTest, nothing_waits_while_a_name_is_asked_for) {
  worker_->at_once = false;
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Undecided);
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Undecided);
  EXPECT_EQ(worker_->held.size(), 1u) << "one question at a time";
  worker_->run_all();
  loop_.drain();
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Yes);
  EXPECT_EQ(hosts_->asked, 1);
}

TEST_F(ClientNamesTest, answers_hold_for_five_minutes_and_where_nobody_answers_for_thirty) {
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::Yes);
  loop_.pass(std::chrono::minutes(4));
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::Yes);
  EXPECT_EQ(hosts_->asked, 1);
  hosts_->silent = true;
  loop_.pass(std::chrono::minutes(2));
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::Yes);
  EXPECT_EQ(hosts_->asked, 2);
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::Yes);
  EXPECT_EQ(hosts_->asked, 2) << "it is tried again in five seconds";
  loop_.pass(std::chrono::minutes(25));
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::Undecided);
  hosts_->silent = false;
  hosts_->addresses.clear();
  loop_.pass(std::chrono::seconds(6));
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::No);
}

TEST_F(ClientNamesTest, a_client_without_a_name_is_asked_for_again_after_a_minute) {
  EXPECT_EQ(answered("*.example.com", "192.0.2.2"), Match::No);
  hosts_->add("new.example.com", "192.0.2.2");
  loop_.pass(std::chrono::seconds(50));
  EXPECT_EQ(answered("*.example.com", "192.0.2.2"), Match::No);
  loop_.pass(std::chrono::seconds(11));
  EXPECT_EQ(answered("*.example.com", "192.0.2.2"), Match::Yes);
}

TEST_F(ClientNamesTest, whoever_comes_beyond_the_bound_displaces_who_has_not_called_for_longest) {
  for (const char* host : {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.1", "192.0.2.4"})
    answered("*.example.com", host);
  EXPECT_EQ(hosts_->asked, 4);
  answered("*.example.com", "192.0.2.1");
  EXPECT_EQ(hosts_->asked, 4) << "he calls all the time";
  answered("*.example.com", "192.0.2.2");
  EXPECT_EQ(hosts_->asked, 5);
}

TEST_F(ClientNamesTest, nine_thousand_clients_that_call_in_turn_are_all_served) {
  names_ = std::make_shared<ClientNames>(hosts_, worker_);
  const auto in_turn = [&](auto call) {
    for (int i = 0; i < 9000; ++i)
      call("198.18." + std::to_string(i / 250) + "." + std::to_string(i % 250));
  };
  in_turn([&](const std::string& host) { answered("*.example.com", host); });
  int undecided = 0;
  in_turn([&](const std::string& host) {
    undecided += matches("*.example.com", host) == Match::Undecided ? 1 : 0;
  });
  EXPECT_EQ(undecided, 0);
  EXPECT_EQ(hosts_->asked, 9000);
}

TEST_F(ClientNamesTest, a_network_with_more_than_its_share_displaces_its_own) {
  names_ = std::make_shared<ClientNames>(hosts_, worker_,
                                         ClientNamesOptions{.entries = 4, .entries_each = 2});
  for (const char* host : {"192.0.2.1", "2001:db8::1", "2001:db8::2", "2001:db8::3"})
    answered("*.example.com", host);
  EXPECT_EQ(hosts_->asked, 4);
  for (int i = 4; i < 20; ++i) answered("*.example.com", "2001:db8::" + std::to_string(i));
  EXPECT_EQ(hosts_->asked, 20);
  answered("*.example.com", "2001:db8::19");
  EXPECT_EQ(hosts_->asked, 20) << "the last ones are kept";
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Yes);
  EXPECT_EQ(hosts_->asked, 20);
  answered("*.example.com", "192.0.2.2");
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Yes) << "called later";
}

TEST_F(ClientNamesTest, neighbours_share_the_threads_of_one_client_whatever_they_connect_by) {
  worker_->at_once = false;
  for (const char* host :
       {"192.0.2.1", "192.0.2.9", "198.51.100.1", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"})
    matches("*.example.com", host);
  std::vector<const void*> clients;
  for (const auto& job : worker_->held) clients.push_back(job.client);
  EXPECT_EQ(clients[0], clients[1]);
  EXPECT_EQ(clients[3], clients[4]);
  EXPECT_EQ(std::set<const void*>(clients.begin(), clients.end()).size(), 4u);
  worker_->run_all();
  loop_.drain();
}

TEST_F(ClientNamesTest, whoever_waits_does_not_ask_a_second_time) {
  const Export made = open_to({{"*.example.com", "rw"}});
  worker_->at_once = false;
  bool settled[2] = {};
  for (bool& each : settled) detach(note(made.settle(from("192.0.2.1")), each));
  EXPECT_EQ(worker_->held.size(), 1u);
  EXPECT_FALSE(settled[0] || settled[1]);
  worker_->run_all();
  loop_.pass(std::chrono::milliseconds(20));
  EXPECT_TRUE(settled[0] && settled[1]);
  EXPECT_NE(made.terms_for(from("192.0.2.1")).options, nullptr);
}

TEST_F(ClientNamesTest, a_question_that_there_was_no_memory_for_is_asked_again) {
  struct Worker final : Executor {
    bool submit(Job&& job) override {
      if (throws) throw std::bad_alloc();
      return with_memory.submit(std::move(job));
    }
    testing::HeldExecutor with_memory{true};
    bool throws = true;
  };
  const auto worker = std::make_shared<Worker>();
  names_ = std::make_shared<ClientNames>(hosts_, worker);
  EXPECT_THROW(matches("*.example.com", "192.0.2.1"), std::bad_alloc);
  worker->throws = false;
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::Yes);
}

TEST_F(ClientNamesTest, a_question_that_finds_no_worker_is_asked_again) {
  worker_->full = true;
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::Undecided);
  worker_->full = false;
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::Yes);
  worker_->at_once = false;
  EXPECT_EQ(matches("*.example.com", "192.0.2.2"), Match::Undecided);
  worker_->give_all_back();
  loop_.drain();
  worker_->at_once = true;
  EXPECT_EQ(answered("*.example.com", "192.0.2.2"), Match::No);
}

TEST_F(ClientNamesTest, a_netgroup_has_hosts_by_name_short_name_and_address) {
  names_->mention("@trusted");
  names_->mention("@other");
  const std::pair<std::string, std::string> entries[] = {
      {"trusted", "build.example.com"}, {"trusted", "build"}, {"trusted", "192.0.2.1"}};
  for (const auto& entry : entries) {
    hosts_->members = {entry};
    names_->forget();
    EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::Yes) << entry.second;
    EXPECT_EQ(answered("@other", "192.0.2.1"), Match::No);
  }
}

TEST_F(ClientNamesTest, a_short_name_is_that_of_a_host_of_the_servers_own_domain) {
  names_->mention("@trusted");
  hosts_->members.insert({"trusted", "build"});
  hosts_->add("build.evil.example", "198.51.100.1");
  hosts_->add("build.other.example.com", "198.51.100.2");
  hosts_->add("build.evilexample.com", "198.51.100.3");
  hosts_->add("Build.Example.COM", "192.0.2.3");
  hosts_->members.insert({"trusted", "Build"});
  for (const char* host : {"198.51.100.1", "198.51.100.2", "198.51.100.3"})
    EXPECT_EQ(answered("@trusted", host), Match::No) << host;
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::Yes);
  EXPECT_EQ(answered("@trusted", "192.0.2.3"), Match::Yes);
  hosts_->own_domain = "";
  names_->forget();
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::No);
}

TEST_F(ClientNamesTest, a_netgroup_that_any_host_belongs_to_admits_nobody) {
  names_->mention("@trusted");
  hosts_->members = {{"trusted", "build"}, {"trusted", Hosts::kEverybody}};
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::No);
  EXPECT_EQ(answered("@trusted", "198.51.100.1"), Match::No);
}

TEST_F(ClientNamesTest, netgroups_of_which_nobody_knows_now_neither_admit_nor_turn_away) {
  names_->mention("@trusted");
  names_->mention("@other");
  hosts_->netgroups_are_silent = true;
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::Undecided);
  EXPECT_EQ(hosts_->netgroups_asked.size(), 1u) << "each would take as long";
  hosts_->netgroups_are_silent = false;
  loop_.pass(std::chrono::seconds(6));
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::No);
}

// As glibc has it, whose innetgr() says "no member" where LDAP is out.
TEST_F(ClientNamesTest, a_netgroup_that_was_there_and_is_not_any_more_is_one_that_is_silent) {
  const Export made = open_to({{"@trusted", "ro"}, {"*", "rw"}});
  names_->mention("@trusted");
  hosts_->members = {{"trusted", "build"}};
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::Yes);
  hosts_->members.clear();
  hosts_->gone = {"trusted"};
  loop_.pass(std::chrono::minutes(6));
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::Yes) << "the old answer holds";
  ASSERT_NE(made.terms_for(from("192.0.2.1")).options, nullptr);
  EXPECT_TRUE(made.terms_for(from("192.0.2.1")).options->read_only);
  EXPECT_EQ(answered("@trusted", "192.0.2.2"), Match::Undecided) << "he may belong to it";
  for (int i = 0; i < 5; ++i) {
    loop_.pass(std::chrono::minutes(4));
    EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::Yes) << i;
  }
  loop_.pass(std::chrono::minutes(5));
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::Undecided);
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Yes) << "his name is known";
  EXPECT_TRUE(made.terms_for(from("192.0.2.1")).undecided);
  hosts_->gone.clear();
  loop_.pass(std::chrono::seconds(6));
  matches("@trusted", "192.0.2.1");
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::No) << "it is there, without him";
}

TEST_F(ClientNamesTest, a_netgroup_that_never_was_there_has_nobody) {
  hosts_->gone = {"trusted", "checked"};
  names_->mention("@trusted");
  names_->mention("@checked", true);
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::No);
  EXPECT_EQ(answered("@checked", "192.0.2.1"), Match::Undecided)
      << "whoever read the exports saw it";
  names_->keep_only({"@trusted"});
  hosts_->netgroups_asked.clear();
  loop_.pass(std::chrono::seconds(6));
  answered("@trusted", "192.0.2.1");
  EXPECT_EQ(hosts_->asked, 2);
  loop_.pass(std::chrono::seconds(6));
  answered("@trusted", "192.0.2.1");
  EXPECT_EQ(hosts_->asked, 2) << "what is not in the exports is not asked for any more";
  EXPECT_EQ(hosts_->netgroups_asked, std::set<std::string>{"trusted"});
  names_->mention("@checked");
  answered("@checked", "192.0.2.1");
  EXPECT_EQ(matches("@checked", "192.0.2.1"), Match::No) << "nor known to have been there";
}

TEST_F(ClientNamesTest, what_was_known_before_it_was_forgotten_holds_where_there_is_no_answer) {
  names_->mention("@trusted");
  hosts_->members = {{"trusted", "build"}};
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::Yes);
  loop_.pass(std::chrono::minutes(4));
  names_->forget();
  hosts_->silent = true;
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Undecided) << "nobody was asked yet";
  EXPECT_EQ(hosts_->asked, 2);
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::Yes);
  loop_.pass(std::chrono::minutes(27));
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::Undecided) << "its age is the same";
}

TEST_F(ClientNamesTest, what_was_forgotten_holds_again_when_nobody_has_answered_for_five_seconds) {
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::Yes);
  names_->forget();
  worker_->at_once = false;
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Undecided);
  bool settled = false;
  detach(note(open_to({{"*.example.com", "rw"}}).settle(from("192.0.2.1")), settled));
  loop_.pass(std::chrono::seconds(4));
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Undecided);
  EXPECT_FALSE(settled);
  loop_.pass(std::chrono::seconds(2));
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Yes);
  EXPECT_TRUE(settled);
  EXPECT_EQ(matches("*.example.com", "192.0.2.2"), Match::Undecided) << "nothing is known of it";
  hosts_->names.clear();
  worker_->run_all();
  loop_.drain();
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::No) << "an answer that comes late counts";
}

TEST_F(ClientNamesTest, a_question_that_hangs_since_before_all_was_forgotten_has_five_seconds) {
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::Yes);
  loop_.pass(std::chrono::minutes(6));
  worker_->at_once = false;
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Yes);
  loop_.pass(std::chrono::seconds(20));
  names_->forget();
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Undecided);
  loop_.pass(std::chrono::seconds(6));
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Yes);
  hosts_->silent = true;
  worker_->run_all();
  loop_.drain();
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Yes) << "while it is asked anew";
  worker_->run_all();
  loop_.drain();
}

TEST_F(ClientNamesTest, what_was_forgotten_holds_where_nobody_can_be_asked) {
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::Yes);
  names_->forget();
  worker_->full = true;
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Yes);
  worker_->full = worker_->at_once = false;
  names_->forget();
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Undecided);
  worker_->give_all_back();
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Yes);
  EXPECT_EQ(worker_->held.size(), 1u) << "somebody is asked all the same";
  hosts_->names.clear();
  worker_->run_all();
  loop_.drain();
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::No);
}

TEST_F(ClientNamesTest, a_new_netgroup_leaves_decided_what_does_not_depend_on_it) {
  names_->mention("@trusted");
  hosts_->members = {{"trusted", "build"}};
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::Yes);
  names_->mention("@more");
  worker_->at_once = false;
  EXPECT_EQ(matches("@more", "192.0.2.1"), Match::Undecided);
  EXPECT_EQ(matches("@trusted", "192.0.2.1"), Match::Yes);
  EXPECT_EQ(matches("*.example.com", "192.0.2.1"), Match::Yes);
  worker_->run_all();
  loop_.drain();
  EXPECT_EQ(matches("@more", "192.0.2.1"), Match::No);
}

TEST_F(ClientNamesTest, hosts_of_a_netgroup_come_and_go) {
  names_->mention("@trusted");
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::No);
  hosts_->members.insert({"trusted", "build"});
  loop_.pass(std::chrono::minutes(6));
  matches("@trusted", "192.0.2.1");
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::Yes);
  hosts_->members.clear();
  names_->forget();
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::No);
}

TEST_F(ClientNamesTest, an_answer_that_a_netgroup_was_not_asked_for_does_not_deny_it) {
  EXPECT_EQ(answered("*.example.com", "192.0.2.1"), Match::Yes);
  hosts_->members.insert({"restricted", "build.example.com"});
  names_->mention("@restricted");
  EXPECT_EQ(matches("@restricted", "192.0.2.1"), Match::Undecided);
  loop_.drain();
  EXPECT_EQ(matches("@restricted", "192.0.2.1"), Match::Yes);
  names_->mention("@restricted");
  EXPECT_EQ(matches("@restricted", "192.0.2.1"), Match::Yes) << "it was asked for";
}

TEST_F(ClientNamesTest, an_answer_to_what_was_asked_before_it_was_forgotten_does_not_count) {
  worker_->at_once = false;
  matches("@trusted", "192.0.2.1");
  names_->mention("@trusted");
  hosts_->members.insert({"trusted", "build"});
  names_->forget();
  worker_->run_all();
  loop_.drain();
  worker_->at_once = true;
  EXPECT_EQ(answered("@trusted", "192.0.2.1"), Match::Yes);
}

TEST_F(ClientNamesTest, a_rule_that_is_not_decided_is_in_the_way_of_those_behind_it) {
  const Export made = open_to({{"*", "rw"}, {"*.example.com", "ro"}, {"192.0.2.7", "rw"}});
  worker_->at_once = false;
  EXPECT_TRUE(made.terms_for(from("192.0.2.1")).undecided);
  EXPECT_EQ(made.terms_for(from("192.0.2.1")).options, nullptr);
  EXPECT_FALSE(made.terms_for(from("192.0.2.7")).undecided) << "addresses go before names";
  ASSERT_NE(made.terms_for(from("192.0.2.7")).options, nullptr);
  worker_->run_all();
  loop_.drain();
  ASSERT_NE(made.terms_for(from("192.0.2.1")).options, nullptr);
  EXPECT_TRUE(made.terms_for(from("192.0.2.1")).options->read_only);
}

TEST_F(ClientNamesTest, nobody_is_looked_up_for_an_export_without_names) {
  const Export made = open_to({{"192.0.2.0/24", "rw"}});
  EXPECT_FALSE(made.terms_for(from("198.51.100.1")).undecided);
  EXPECT_NE(made.terms_for(from("192.0.2.1")).options, nullptr);
  EXPECT_TRUE(settles(made, "198.51.100.1"));
  EXPECT_EQ(hosts_->asked, 0);
}

TEST_F(ClientNamesTest, whoever_can_wait_waits_for_the_answer_but_not_for_ever) {
  const Export made = open_to({{"*.example.com", "rw"}});
  EXPECT_TRUE(settles(made, "192.0.2.1"));
  EXPECT_NE(made.terms_for(from("192.0.2.1")).options, nullptr);
  worker_->at_once = false;
  bool settled = false;
  detach(note(made.settle(from("192.0.2.2")), settled));
  loop_.pass(std::chrono::seconds(9));
  EXPECT_FALSE(settled);
  loop_.pass(std::chrono::seconds(2));
  EXPECT_TRUE(settled);
  EXPECT_TRUE(made.terms_for(from("192.0.2.2")).undecided);
  worker_->run_all();
  loop_.drain();
}

TEST_F(ClientNamesTest, a_rule_by_names_that_nobody_knows_is_open_to_nobody) {
  Export made;
  made.spec.clients.push_back(*make_client_rule("*.example.com", {}));
  EXPECT_TRUE(made.terms_for(from("192.0.2.1")).undecided);
  EXPECT_EQ(made.terms_for(from("192.0.2.1")).options, nullptr);
}

TEST(ClientNamesPattern, is_of_what_names_are_made_of) {
  for (const char* match : {"*.example.com", "host?", "h[a-c]st", "@trusted", "**"})
    EXPECT_TRUE(ClientNames::is_pattern(match)) << match;
  for (const char* match : {"*", "@", "host", "192.0.2.1", "*/24", "a b*", "*\n", "\xff*"})
    EXPECT_FALSE(ClientNames::is_pattern(match)) << match;
}

}  // namespace
}  // namespace stag::nfs
