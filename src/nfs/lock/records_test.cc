#include "nfs/lock/records.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace stag::nfs::lock {
namespace {

class RecordsOnDisk : public ::testing::Test {
 protected:
  RecordsOnDisk() {
    std::string name = (std::filesystem::temp_directory_path() / "stag-records-XXXXXX").string();
    STAG_CHECK(mkdtemp(name.data()) != nullptr);
    directory_ = name;
  }
  ~RecordsOnDisk() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<Records> open() const {
    auto opened = Records::open(directory_);
    STAG_CHECK(opened.ok());
    return *std::move(opened);
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(directory_ + "/" + name) << content;
  }

  std::string directory_;
};

TEST_F(RecordsOnDisk, count_every_start_in_odd_numbers) {
  EXPECT_EQ(open()->state(), 1);
  EXPECT_EQ(open()->state(), 3);
  write("state", "8\n");
  EXPECT_EQ(open()->state(), 11) << "an even number is that of a host that is down";
  write("state", "2147483647\n");
  EXPECT_EQ(open()->state(), 1);
  write("state", "nonsense");
  EXPECT_EQ(open()->state(), 1);
}

TEST_F(RecordsOnDisk, remember_clients_that_were_told_as_long_as_they_may_reclaim) {
  ASSERT_TRUE(open()->add("192.0.2.1").ok());
  {
    const auto second = open();
    EXPECT_EQ(second->unnotified(), std::vector<std::string>{"192.0.2.1"});
    EXPECT_FALSE(second->has("192.0.2.1")) << "it holds nothing of this time";
    EXPECT_FALSE(second->was_notified("192.0.2.1"));
    ASSERT_TRUE(second->add("fe80::1%eth0").ok());
    second->notified("192.0.2.1", second->state());
    EXPECT_TRUE(second->unnotified().empty());
    EXPECT_TRUE(second->was_notified("192.0.2.1"));
    EXPECT_FALSE(second->was_notified("fe80::1%eth0")) << "it had nothing to reclaim";
  }
  const auto third = open();
  EXPECT_EQ(third->unnotified(), (std::vector<std::string>{"192.0.2.1", "fe80::1%eth0"}));
  third->notified("192.0.2.1", third->state());
  const auto nobody = [](const std::string&) { return false; };
  ASSERT_TRUE(third->remove_unneeded(nobody, third->uses()).ok());
  EXPECT_EQ(open()->unnotified(), std::vector<std::string>{"fe80::1%eth0"});
}

bool is_due() {
  return true;
}

TEST_F(RecordsOnDisk, let_nobody_reclaim_that_has_missed_a_grace_period_and_not_locked_since) {
  const std::string away = "192.0.2.1", back = "192.0.2.2";
  {
    const auto first = open();
    for (const std::string& address : {away, back}) ASSERT_TRUE(first->add(address).ok());
    EXPECT_FALSE(first->may_reclaim(away)) << "it has what it had";
  }
  {
    const auto second = open();
    EXPECT_TRUE(second->may_reclaim(away));
    EXPECT_FALSE(second->reclaims("192.0.2.3")) << "it had nothing";
    EXPECT_TRUE(second->reclaims(back));
    ASSERT_TRUE(second->add(back).ok());
    ASSERT_TRUE(second->cut_off(is_due).ok());
    EXPECT_FALSE(second->may_reclaim(back)) << "it is over";
    second->notified(away, second->state());
    EXPECT_FALSE(second->hold(away)) << "it is to be added first";
  }
  {
    const auto third = open();
    EXPECT_EQ(third->unnotified(), (std::vector{away, back}));
    EXPECT_FALSE(third->reclaims(away));
    EXPECT_TRUE(third->may_reclaim(back));
    ASSERT_TRUE(third->add(away).ok());
    EXPECT_TRUE(third->hold(away));
    EXPECT_FALSE(third->may_reclaim(away)) << "in this period";
  }
  for (const std::string& address : {away, back}) EXPECT_TRUE(open()->may_reclaim(address));
}

TEST_F(RecordsOnDisk, cut_nobody_off_in_a_grace_period_that_is_not_due_any_more) {
  ASSERT_TRUE(open()->add("192.0.2.1").ok());
  const auto records = open();
  ASSERT_TRUE(records->cut_off([] { return false; }).ok());
  EXPECT_TRUE(records->may_reclaim("192.0.2.1"));
  EXPECT_TRUE(open()->may_reclaim("192.0.2.1"));
}

TEST_F(RecordsOnDisk, let_all_reclaim_that_an_earlier_version_has_left_and_say_when_unreadable) {
  ASSERT_TRUE(std::filesystem::create_directories(directory_ + "/hosts"));
  write("hosts/192.0.2.1", "");
  write("hosts/192.0.2.2", "name\n");
  for (const char* const address : {"192.0.2.1", "192.0.2.2"})
    EXPECT_TRUE(open()->may_reclaim(address)) << address;
  std::filesystem::create_directory(directory_ + "/missed");
  EXPECT_FALSE(Records::open(directory_).ok());
}

TEST_F(RecordsOnDisk, name_nobody_as_late_whose_record_has_gone) {
  ASSERT_TRUE(open()->add("192.0.2.1").ok());
  const auto records = open();
  ASSERT_TRUE(records->give_up("192.0.2.1", records->state()).ok());
  ASSERT_TRUE(records->cut_off(is_due).ok());
  EXPECT_EQ(std::filesystem::file_size(directory_ + "/missed"), 0u);
}

TEST_F(RecordsOnDisk, forget_clients_that_could_not_be_told) {
  ASSERT_TRUE(open()->add("192.0.2.1").ok());
  const auto second = open();
  ASSERT_TRUE(second->give_up("192.0.2.1", second->state()).ok());
  EXPECT_TRUE(second->unnotified().empty());
  EXPECT_TRUE(open()->unnotified().empty());
}

TEST_F(RecordsOnDisk, keep_a_client_that_reclaims_before_it_is_told) {
  ASSERT_TRUE(open()->add("192.0.2.1").ok());
  {
    const auto records = open();
    ASSERT_TRUE(records->add("192.0.2.1").ok());
    records->notified("192.0.2.1", records->state());
  }
  EXPECT_EQ(open()->unnotified().size(), 1u);
}

TEST_F(RecordsOnDisk, take_no_address_that_is_no_name_for_a_file) {
  const auto records = open();
  for (const char* name : {"", "..", "a/b", ".hidden", "new\nline"})
    EXPECT_FALSE(records->add(name).ok()) << name;
  write("hosts/192.0.2.7.new", "");
  write("hosts/.swap", "");
  EXPECT_TRUE(open()->unnotified().empty()) << "left over from what was never finished";
}

TEST_F(RecordsOnDisk, say_what_is_wrong_with_their_directory) {
  write("hosts", "a file");
  const auto opened = Records::open(directory_);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find(directory_ + "/hosts"), std::string::npos);
}

TEST_F(RecordsOnDisk, are_dropped_of_clients_without_locks_that_were_told_of_the_last_restart) {
  ASSERT_TRUE(open()->add("192.0.2.1").ok());
  const auto nobody = [](const std::string&) { return false; };
  const auto records = open();
  for (const char* const address : {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"})
    ASSERT_TRUE(records->add(address).ok());
  const std::uint64_t until = records->uses();
  const Records::Hold held = records->hold("192.0.2.3");
  { const Records::Hold since = records->hold("192.0.2.4"); }
  ASSERT_TRUE(records->remove_unneeded([](const std::string&) { return true; }, until).ok());
  EXPECT_TRUE(records->has("192.0.2.2")) << "it has locks";
  ASSERT_TRUE(records->remove_unneeded(nobody, until).ok());
  EXPECT_FALSE(records->has("192.0.2.2"));
  EXPECT_TRUE(records->has("192.0.2.4")) << "it has had a lock since";
  ASSERT_TRUE(records->remove_unneeded(nobody, records->uses()).ok());
  EXPECT_FALSE(records->has("192.0.2.4"));
  EXPECT_EQ(open()->unnotified(), (std::vector<std::string>{"192.0.2.1", "192.0.2.3"}));
  EXPECT_FALSE(records->hold("192.0.2.2")) << "it is recorded anew with its next lock";
}

TEST_F(RecordsOnDisk, stay_of_a_client_that_comes_back_while_others_are_dropped) {
  const auto records = open();
  for (const char* const address : {"192.0.2.1", "192.0.2.2"})
    ASSERT_TRUE(records->add(address).ok());
  const auto locks_meanwhile = [&](const std::string& address) {
    if (address == "192.0.2.1") static_cast<void>(records->hold(address));
    return false;
  };
  ASSERT_TRUE(records->remove_unneeded(locks_meanwhile, records->uses()).ok());
  EXPECT_TRUE(records->has("192.0.2.1"));
  EXPECT_FALSE(records->has("192.0.2.2"));
  EXPECT_EQ(open()->unnotified(), std::vector<std::string>{"192.0.2.1"}) << "after a crash";
}

TEST_F(RecordsOnDisk, are_removed_with_the_next_where_one_could_not_be) {
  const auto nobody = [](const std::string&) { return false; };
  const auto records = open();
  for (const char* const address : {"192.0.2.1", "192.0.2.2", "192.0.2.3"})
    ASSERT_TRUE(records->add(address).ok());
  const std::filesystem::path stuck = directory_ + "/hosts/192.0.2.1";
  std::filesystem::remove(stuck);
  std::filesystem::create_directory(stuck);  // unlink() refuses it
  EXPECT_FALSE(records->remove_unneeded(nobody, records->uses()).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/hosts/192.0.2.2")) << "though one is stuck";
  ASSERT_TRUE(records->add("192.0.2.3").ok());
  std::filesystem::remove(stuck);
  write("hosts/192.0.2.1", "");
  ASSERT_TRUE(records->remove_unneeded(nobody, 0).ok());
  EXPECT_FALSE(std::filesystem::exists(stuck));
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/hosts/192.0.2.3")) << "it has a lock again";
}

TEST(RecordsInMemory, make_room_by_dropping_the_oldest_client_without_locks) {
  auto opened = Records::open("");
  ASSERT_TRUE(opened.ok());
  Records& records = **opened;
  const auto name = [](int number) { return "host" + std::to_string(number); };
  constexpr int kMost = 4096;
  for (int i = 0; i < kMost; ++i) ASSERT_TRUE(records.add(name(i)).ok());
  const Records::Hold held = records.hold(name(0));
  ASSERT_TRUE(held);
  const auto all = [](const std::string&) { return true; };
  EXPECT_FALSE(records.add("late", all).ok());
  EXPECT_FALSE(records.hold("late"));
  const auto only_first = [&](const std::string& address) { return address == name(1); };
  EXPECT_TRUE(records.add("late", only_first).ok());
  EXPECT_TRUE(records.has("late"));
  EXPECT_TRUE(records.has(name(0))) << "held";
  EXPECT_TRUE(records.has(name(1))) << "has locks";
  EXPECT_FALSE(records.has(name(2)));
  EXPECT_TRUE(records.has(name(3)));
  EXPECT_TRUE(records.add("late", all).ok()) << "it is there";
}

TEST(RecordsInMemory, work_without_a_directory_and_remember_nobody) {
  auto records = Records::open("");
  ASSERT_TRUE(records.ok());
  EXPECT_EQ((*records)->state(), 1);
  EXPECT_TRUE((*records)->add("192.0.2.1").ok());
  EXPECT_TRUE((*records)->has("192.0.2.1"));
  EXPECT_TRUE((*records)->restart().ok());
  EXPECT_EQ((*records)->state(), 3);
  EXPECT_EQ((*records)->unnotified().size(), 1u);
}

TEST(RecordsInMemory, know_who_may_reclaim_after_a_simulated_restart) {
  auto opened = Records::open("");
  ASSERT_TRUE(opened.ok());
  Records& records = **opened;
  for (const char* const address : {"192.0.2.1", "192.0.2.2"})
    ASSERT_TRUE(records.add(address).ok());
  ASSERT_TRUE(records.restart().ok());
  EXPECT_TRUE(records.may_reclaim("192.0.2.1"));
  EXPECT_TRUE(records.reclaims("192.0.2.2"));
  ASSERT_TRUE(records.add("192.0.2.2").ok());
  ASSERT_TRUE(records.cut_off(is_due).ok());
  EXPECT_FALSE(records.any_may_reclaim());
  ASSERT_TRUE(records.restart().ok());
  EXPECT_FALSE(records.may_reclaim("192.0.2.1")) << "it has missed the first";
  EXPECT_TRUE(records.may_reclaim("192.0.2.2"));
}

class RecordsOfTwo : public RecordsOnDisk {
 protected:
  std::string lost() const { return directory_ + "/lost"; }
  Records::Lost read_lost() const {
    auto read = Records::read_ended(lost());
    STAG_CHECK(read.ok());
    return *std::move(read);
  }
  // A server that ends at once, and had this host.
  void lose(const std::string& host, const std::string& name = "lost.example.org") const {
    const auto opened = Records::open(lost());
    STAG_CHECK(opened.ok() && (*opened)->keep_name(name).ok() && (*opened)->add(host).ok());
  }
};

TEST_F(RecordsOfTwo, tell_an_adopted_host_the_name_it_knows_and_a_state_that_it_does_not) {
  for (int i = 0; i < 3; ++i) lose("192.0.2.1");
  const auto records = open();
  ASSERT_TRUE(records->adopt(read_lost()).ok());
  EXPECT_EQ(records->state(), 7);
  EXPECT_EQ(records->unnotified(), std::vector<std::string>{"192.0.2.1"});
  EXPECT_EQ(records->former_name("192.0.2.1"), "lost.example.org");
  EXPECT_EQ(records->former_name("192.0.2.2"), "");
}

TEST_F(RecordsOfTwo, lose_no_host_by_a_crash_between_the_steps) {
  lose("192.0.2.1");
  ASSERT_TRUE(open()->adopt(read_lost()).ok());
  const auto records = open();
  EXPECT_EQ(records->former_name("192.0.2.1"), "lost.example.org");
  const Records::Lost again = read_lost();
  EXPECT_EQ(again.hosts.size(), 1u);
  ASSERT_TRUE(records->adopt(again).ok());
  EXPECT_EQ(records->unnotified().size(), 1u);
  ASSERT_TRUE(Records::give_away(again).ok());
  EXPECT_TRUE(read_lost().hosts.empty());
}

TEST_F(RecordsOfTwo, keep_who_is_adopted_while_it_is_told_of_an_earlier_restart_or_given_up) {
  ASSERT_TRUE(open()->add("192.0.2.1").ok());
  lose("192.0.2.1");
  const auto records = open();
  const std::int32_t earlier = records->state();
  ASSERT_TRUE(records->adopt(read_lost()).ok());
  records->notified("192.0.2.1", earlier);
  EXPECT_EQ(records->unnotified().size(), 1u);
  ASSERT_TRUE(records->give_up("192.0.2.1", earlier).ok());
  EXPECT_EQ(records->unnotified().size(), 1u);
  EXPECT_EQ(open()->unnotified().size(), 1u);
}

TEST_F(RecordsOfTwo, let_an_adopted_host_reclaim_that_missed_nothing_at_the_lost_server) {
  lose("192.0.2.1");
  {
    const auto opened = Records::open(lost());
    ASSERT_TRUE(opened.ok() && (*opened)->cut_off(is_due).ok());
  }
  lose("192.0.2.2");
  const auto records = open();
  ASSERT_TRUE(records->adopt(read_lost()).ok());
  EXPECT_EQ(records->unnotified().size(), 2u);
  EXPECT_FALSE(records->may_reclaim("192.0.2.1"));
  EXPECT_TRUE(records->may_reclaim("192.0.2.2"));
  const auto next = open();
  EXPECT_FALSE(next->may_reclaim("192.0.2.1"));
  EXPECT_TRUE(next->may_reclaim("192.0.2.2"));
}

TEST_F(RecordsOfTwo, cut_off_adopted_hosts_and_none_that_has_had_locks_all_the_time) {
  lose("192.0.2.1");
  {
    const auto records = open();
    ASSERT_TRUE(records->add("192.0.2.2").ok());
    ASSERT_TRUE(records->adopt(read_lost()).ok());
    ASSERT_TRUE(records->cut_off(is_due).ok());
  }
  const auto records = open();
  EXPECT_FALSE(records->may_reclaim("192.0.2.1"));
  EXPECT_TRUE(records->may_reclaim("192.0.2.2"));
}

TEST_F(RecordsOfTwo, remember_the_name_while_an_adopted_host_holds_locks) {
  lose("192.0.2.1");
  {
    const auto records = open();
    ASSERT_TRUE(records->adopt(read_lost()).ok());
    ASSERT_TRUE(records->add("192.0.2.1").ok());
    records->notified("192.0.2.1", records->state());
    EXPECT_TRUE(records->unnotified().empty());
    ASSERT_TRUE(records->restart().ok());
    EXPECT_EQ(records->former_name("192.0.2.1"), "lost.example.org");
  }
  EXPECT_EQ(open()->former_name("192.0.2.1"), "lost.example.org");
}

TEST_F(RecordsOnDisk, remember_the_name_that_hosts_know_when_the_server_has_another) {
  {
    const auto records = open();
    ASSERT_TRUE(records->keep_name("old.example.org").ok());
    ASSERT_TRUE(records->add("192.0.2.1").ok());
  }
  ASSERT_TRUE(open()->keep_name("new.example.org").ok());
  for (const char* const name : {"new.example.org", "third.example.org"}) {
    const auto records = open();
    ASSERT_TRUE(records->keep_name(name).ok());
    EXPECT_EQ(records->former_name("192.0.2.1"), "old.example.org");
  }
}

TEST_F(RecordsOnDisk, know_no_former_name_where_the_server_keeps_its_own) {
  for (int i = 0; i < 2; ++i) {
    const auto records = open();
    ASSERT_TRUE(records->keep_name("old.example.org").ok());
    ASSERT_TRUE(records->add("192.0.2.1").ok());
    EXPECT_EQ(records->former_name("192.0.2.1"), "");
  }
}

TEST_F(RecordsOfTwo, leave_hosts_where_they_are_that_know_a_name_nobody_wrote_down) {
  lose("192.0.2.1", "no name: /");
  EXPECT_TRUE(read_lost().hosts.empty());
}

}  // namespace
}  // namespace stag::nfs::lock
