#include "cli/serve/records_place.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "testing/vfs/posix_backend.h"

namespace stag::cli {
namespace {

TEST(RecordsPlace, is_told_from_a_directory_by_its_first_word) {
  EXPECT_TRUE(is_records_place("ceph:nfs/a"));
  EXPECT_FALSE(is_records_place("/srv/ceph:"));
  EXPECT_FALSE(is_records_place(""));
}

TEST(RecordsPlace, is_a_pool_with_a_namespace_and_settings) {
  const auto plain = parse_records_place("ceph:nfs");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->pool, "nfs");
  EXPECT_EQ(plain->name_space, "");
  EXPECT_EQ(name_of(*plain), "ceph:nfs");
  EXPECT_EQ(uri_of(*plain), "file:///nfs:/nfs4-clients.db?vfs=ceph");
  const auto full = parse_records_place("ceph:cephfs.a.data/gateway_1?conf=/etc/other.conf&id=nfs");
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->configuration, "/etc/other.conf");
  EXPECT_EQ(full->id, "nfs");
  EXPECT_EQ(name_of(*full), "ceph:cephfs.a.data/gateway_1");
  EXPECT_EQ(uri_of(*full), "file:///cephfs.a.data:gateway_1/nfs4-clients.db?vfs=ceph");
  EXPECT_FALSE(same_records(*plain, *full));
  EXPECT_TRUE(same_records(*plain, *parse_records_place("ceph:nfs?id=other")));
}

TEST(RecordsPlace, is_refused_with_a_sentence_that_says_what_there_is) {
  for (const std::string_view wrong : {"", "nfs", "/var/lib/stag", "rados:nfs/a"})
    EXPECT_NE(parse_records_place(wrong).error().find("no place for records"), std::string::npos)
        << wrong;
  // In a URI of SQLite some of these would be another file.
  for (const std::string_view wrong : {"ceph:", "ceph:/a", "ceph:nfs/", "ceph:nfs/a/b", "ceph:*1/a",
                                       "ceph:n:s/a", "ceph:nfs/a%2fb", "ceph:nfs/a#", "ceph:n s/a"})
    EXPECT_NE(parse_records_place(wrong).error().find("names no pool"), std::string::npos) << wrong;
  for (const std::string_view wrong :
       {"ceph:nfs/a?fs=b", "ceph:nfs/a?id", "ceph:nfs/a?id=", "ceph:nfs/a?id=a&&conf=b"})
    EXPECT_NE(parse_records_place(wrong).error().find("conf=FILE and id=NAME"), std::string::npos)
        << wrong;
}

struct RecordsPlaceNote : ::testing::Test {
  std::string noted() const {
    const auto place = noted_records_place(folder.path());
    if (!place) return place.error();
    return *place ? name_of(**place) : "none";
  }
  void write(const std::string& content) const {
    std::ofstream(folder.path() / "nfs4-clients.place") << content;
  }

  vfs::testing::Folder folder{vfs::testing::kDisk};
};

TEST_F(RecordsPlaceNote, names_the_place_without_what_is_of_the_machine_until_there_is_none) {
  EXPECT_EQ(noted(), "none");
  for (const char* const text : {"ceph:nfs/a?conf=/etc/other.conf&id=nfs", "ceph:other"}) {
    const auto place = parse_records_place(text);
    ASSERT_TRUE(note_records_place(folder.path(), &*place).ok());
    EXPECT_EQ(noted(), name_of(*place));
    EXPECT_EQ(noted_records_place(folder.path()).value()->configuration, "");
  }
  ASSERT_TRUE(note_records_place(folder.path(), nullptr).ok());
  EXPECT_EQ(noted(), "none");
  EXPECT_TRUE(note_records_place(folder.path(), nullptr).ok());
}

TEST_F(RecordsPlaceNote, may_be_written_by_hand) {
  write("ceph:nfs/a");
  EXPECT_EQ(noted(), "ceph:nfs/a");
}

TEST_F(RecordsPlaceNote,
       that_names_no_place_or_chooses_a_configuration_is_refused_and_not_repeated) {
  for (const std::string& wrong :
       {std::string(), std::string("\n"), std::string("/var/lib/stag\n"),
        std::string("ceph:/\x1b[2J\n"), std::string("ceph:nfs/a?conf=/tmp/evil\n"),
        std::string("ceph:nfs/a?id=b\n"), "ceph:nfs/" + std::string(2000, 'a') + "\n"}) {
    write(wrong);
    EXPECT_NE(noted().find("does not say where"), std::string::npos) << wrong;
    EXPECT_EQ(noted().find("\x1b"), std::string::npos);
  }
}

TEST_F(RecordsPlaceNote, that_cannot_be_read_is_no_missing_one) {
  std::filesystem::create_directory(folder.path() / "nfs4-clients.place");
  EXPECT_NE(noted().find("cannot read"), std::string::npos) << noted();
}

}  // namespace
}  // namespace stag::cli
