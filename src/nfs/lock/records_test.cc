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

TEST_F(RecordsOnDisk, remember_clients_until_they_are_told) {
  ASSERT_TRUE(open()->add("192.0.2.1").ok());
  const auto second = open();
  EXPECT_EQ(second->unnotified(), std::vector<std::string>{"192.0.2.1"});
  EXPECT_FALSE(second->has("192.0.2.1")) << "it holds nothing of this time";
  ASSERT_TRUE(second->add("fe80::1%eth0").ok());
  ASSERT_TRUE(second->notified("192.0.2.1").ok());
  EXPECT_TRUE(second->unnotified().empty());
  EXPECT_EQ(open()->unnotified(), std::vector<std::string>{"fe80::1%eth0"});
}

TEST_F(RecordsOnDisk, keep_a_client_that_reclaims_before_it_is_told) {
  ASSERT_TRUE(open()->add("192.0.2.1").ok());
  {
    const auto records = open();
    ASSERT_TRUE(records->add("192.0.2.1").ok());
    ASSERT_TRUE(records->notified("192.0.2.1").ok());
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

}  // namespace
}  // namespace stag::nfs::lock
