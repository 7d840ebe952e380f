#include "cli/serve/export_line.h"

#include <gtest/gtest.h>

#include "cli/serve/ceph_export.h"

namespace stag::cli {
namespace {

TEST(ExportLine, has_a_path_a_folder_and_options) {
  const auto line = parse_export("/data=/srv/data,ro,anonuid=7,fsid=9");
  ASSERT_TRUE(line.ok()) << line.error();
  EXPECT_EQ(line->path, "/data");
  EXPECT_EQ(line->folder, "/srv/data");
  EXPECT_TRUE(line->options.read_only);
  EXPECT_EQ(line->options.anonymous_uid, 7u);
  EXPECT_EQ(line->file_system_id, 9u);
  EXPECT_TRUE(line->clients.empty());
  EXPECT_FALSE(line->nfs_only);
  EXPECT_EQ(parse_export("/m=memory")->folder, "");
  EXPECT_TRUE(parse_export("/data=/srv/data,nfs_only")->nfs_only);
  EXPECT_FALSE(line->mount_point);
  EXPECT_EQ(parse_export("/data=/srv/data,mp")->mount_point, "");
  EXPECT_EQ(parse_export("/data=/srv/data,mountpoint=/srv")->mount_point, "/srv");
}

TEST(ExportLine, gives_each_client_the_options_of_all_and_its_own_on_top) {
  const auto line = parse_export(
      "/x=memory,client=192.0.2.0/24:rw:no_root_squash,client=[2001:db8::]/32,"
      "client=[::1]:rw,client=*,ro");
  ASSERT_TRUE(line.ok()) << line.error();
  ASSERT_EQ(line->clients.size(), 4u);
  EXPECT_EQ(line->clients[0].match, "192.0.2.0/24");
  EXPECT_FALSE(line->clients[0].options.read_only);
  EXPECT_FALSE(line->clients[0].options.root_squash);
  EXPECT_EQ(line->clients[1].match, "2001:db8::/32");
  EXPECT_EQ(line->clients[1].network, IpNetwork::parse("2001:db8::/32"));
  EXPECT_TRUE(line->clients[1].options.read_only);
  EXPECT_EQ(line->clients[2].match, "::1");
  EXPECT_FALSE(line->clients[2].options.read_only);
  EXPECT_TRUE(line->clients[2].options.root_squash);
  EXPECT_FALSE(line->clients[3].network);
  EXPECT_TRUE(line->clients[3].options.read_only);
}

TEST(ExportLine, takes_all_flavors_of_a_client_for_one_option) {
  using enum oncrpc::AuthFlavor;
  const auto line =
      parse_export("/x=memory,sec=sys,client=192.0.2.0/24:sec=krb5p:krb5i:ro,client=*:rw");
  ASSERT_TRUE(line.ok()) << line.error();
  EXPECT_EQ(line->clients[0].options.flavors, (std::vector{KRB5P, KRB5I}));
  EXPECT_TRUE(line->clients[0].options.read_only);
  EXPECT_EQ(line->clients[1].options.flavors, std::vector{AUTH_SYS});
}

TEST(ExportLine, refuses_nonsense_with_one_sentence) {
  for (const char* text :
       {"", "/x", "x=memory", "/x=", "/x=memory,,ro", "/x=memory,client=", "/x=memory,client=[::1",
        "/x=memory,client=::1", "/x=memory,client=*:krb5", "/x=memory,client=10.0.0.0/8::rw",
        "/x=memory,mp", "/x=/srv,mpx", "/x=memory,fsid=", "/x=memory,fsid=18446744073709551616"}) {
    const auto line = parse_export(text);
    ASSERT_FALSE(line.ok()) << text;
    EXPECT_EQ(line.error().find('\n'), std::string::npos);
    EXPECT_NE(line.error().find(text), std::string::npos) << "it names the whole of it";
  }
}

TEST(ExportLine, offers_CephFS_only_where_this_program_has_it) {
  const auto line = parse_export("data");
  ASSERT_FALSE(line.ok());
  EXPECT_NE(line.error().find("/name=memory"), std::string::npos);
  EXPECT_EQ(line.error().find("ceph:") != std::string::npos, serves_ceph()) << line.error();
}

TEST(ExportLine, lists_the_known_options_when_it_refuses_an_unknown_one) {
  const auto of_export = parse_export("/x=memory,rx");
  ASSERT_FALSE(of_export.ok());
  EXPECT_NE(
      of_export.error().find("fsid=N, at_once, offload, nfs_only, mp, mp=PATH and client=NETWORK"),
      std::string::npos);
  const auto of_client = parse_export("/x=memory,client=*:rx");
  ASSERT_FALSE(of_client.ok());
  EXPECT_EQ(of_client.error().find("fsid=N"), std::string::npos);
}

}  // namespace
}  // namespace stag::cli
