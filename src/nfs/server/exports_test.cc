#include "nfs/server/exports.h"

#include <gtest/gtest.h>

namespace stag::nfs {
namespace {

rpc::Caller sys(std::uint32_t uid, std::uint32_t gid,
                std::initializer_list<std::uint32_t> gids = {}) {
  rpc::Caller caller;
  caller.flavor = oncrpc::AuthFlavor::AUTH_SYS;
  caller.uid = uid;
  caller.gid = gid;
  for (const std::uint32_t each : gids) caller.gids.push_back(each);
  return caller;
}

Export with(std::string_view options) {
  const auto parsed = parse_export_options(options);
  EXPECT_TRUE(parsed.ok()) << options;
  return Export{1, "/x", nullptr, *parsed};
}

TEST(ExportOptions, are_the_words_of_exports) {
  const auto parsed =
      parse_export_options("ro,no_root_squash,all_squash,anonuid=99,anongid=98,secure");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, (ExportOptions{true, false, true, 99, 98, true}));
  EXPECT_EQ(*parse_export_options(""), ExportOptions{});
  EXPECT_EQ(*parse_export_options("ro,rw,secure,insecure,all_squash,no_all_squash"),
            ExportOptions{});
}

TEST(ExportOptions, that_nobody_knows_are_an_error) {
  for (const char* text : {"readonly", "anonuid=", "anonuid=-1", "anonuid=4294967296",
                           "anonuid=4294967295", "ro,,rw", "anongid=1x", "RO"}) {
    const auto parsed = parse_export_options(text);
    EXPECT_FALSE(parsed.ok()) << text;
  }
  EXPECT_NE(parse_export_options("ro,bogus").error().message.find("'bogus'"), std::string::npos);
}

TEST(Squash, turns_root_and_its_groups_into_nobody_by_default) {
  const vfs::Credentials who = with("").credentials(sys(0, 0, {0, 5}));
  EXPECT_EQ(who.uid, 65534u);
  EXPECT_EQ(who.gid, 65534u);
  EXPECT_EQ(who.groups, (decltype(who.groups){65534, 5}));
  const vfs::Credentials user = with("").credentials(sys(1000, 0, {10}));
  EXPECT_EQ(user.uid, 1000u);
  EXPECT_EQ(user.gid, 65534u);
}

TEST(Squash, leaves_root_alone_when_told) {
  const vfs::Credentials who = with("no_root_squash").credentials(sys(0, 0, {0}));
  EXPECT_EQ(who.uid, 0u);
  EXPECT_EQ(who.gid, 0u);
  EXPECT_EQ(who.groups, (decltype(who.groups){0}));
}

TEST(Squash, of_all_leaves_nobody_his_groups) {
  const Export shared = with("all_squash,no_root_squash,anonuid=7,anongid=8");
  for (const std::uint32_t uid : {0u, 1000u}) {
    const vfs::Credentials who = shared.credentials(sys(uid, 20, {30}));
    EXPECT_EQ(who.uid, 7u);
    EXPECT_EQ(who.gid, 8u);
    EXPECT_TRUE(who.groups.empty());
  }
}

TEST(Squash, makes_a_caller_without_credentials_anonymous) {
  const vfs::Credentials who = with("no_root_squash,anonuid=7,anongid=8").credentials({});
  EXPECT_EQ(who.uid, 7u);
  EXPECT_EQ(who.gid, 8u);
}

TEST(Squash, never_lets_through_the_number_that_means_no_change) {
  const std::uint32_t none = 0xffffffff;
  const vfs::Credentials who = with("no_root_squash").credentials(sys(none, none, {none, 5}));
  EXPECT_EQ(who.uid, 65534u);
  EXPECT_EQ(who.gid, 65534u);
  EXPECT_EQ(who.groups, (decltype(who.groups){65534, 5}));
}

TEST(Export, that_is_secure_admits_reserved_ports_and_rdma) {
  const Export secure = with("secure");
  rpc::Origin origin;
  origin.peer = {"192.0.2.1", 1023};
  EXPECT_TRUE(secure.admits(origin));
  origin.peer.port = 1024;
  EXPECT_FALSE(secure.admits(origin));
  EXPECT_TRUE(with("").admits(origin));
  origin.transport = rpc::TransportKind::Rdma;
  EXPECT_TRUE(secure.admits(origin));
}

TEST(Exports, match_the_longest_whole_path) {
  Exports exports;
  for (const auto& [id, path] : {std::pair(1u, "/a"), std::pair(2u, "/a/b"), std::pair(3u, "//c/")})
    ASSERT_TRUE(exports.add(id, path, nullptr, {}).ok());
  const auto matched = [&](std::string_view path) {
    const auto match = exports.match(path);
    return match ? match->found->path + ":" + std::string(match->rest) : "none";
  };
  EXPECT_EQ(matched("/a"), "/a:");
  EXPECT_EQ(matched("/a/x/y"), "/a:x/y");
  EXPECT_EQ(matched("/a/b"), "/a/b:");
  EXPECT_EQ(matched("/a/b/c"), "/a/b:c");
  EXPECT_EQ(matched("/a/bc"), "/a:bc");
  EXPECT_EQ(matched("/ab"), "none");
  EXPECT_EQ(matched("/c"), "/c:");
  EXPECT_EQ(matched("/"), "none");
  ASSERT_TRUE(exports.add(4, "/", nullptr, {}).ok());
  EXPECT_EQ(matched("/"), "/:");
  EXPECT_EQ(matched("/ab/c"), "/:ab/c");
  EXPECT_EQ(matched("/a/b"), "/a/b:");
}

TEST(Exports, refuse_names_that_are_no_absolute_path_or_taken) {
  Exports exports;
  ASSERT_TRUE(exports.add(1, "/a", nullptr, {}).ok());
  EXPECT_FALSE(exports.add(2, "a", nullptr, {}).ok());
  EXPECT_FALSE(exports.add(2, "", nullptr, {}).ok());
  EXPECT_FALSE(exports.add(2, "/x/../y", nullptr, {}).ok());
  EXPECT_FALSE(exports.add(2, "/./y", nullptr, {}).ok());
  EXPECT_FALSE(exports.add(2, "/" + std::string(1024, 'x'), nullptr, {}).ok());
  EXPECT_FALSE(exports.add(2, "/a/", nullptr, {}).ok());
  EXPECT_FALSE(exports.add(1, "/b", nullptr, {}).ok());
  EXPECT_EQ(exports.all().size(), 1u);
  EXPECT_EQ(exports.find(2), nullptr);
}

}  // namespace
}  // namespace stag::nfs
