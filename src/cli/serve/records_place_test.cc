#include "cli/serve/records_place.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stag::cli
