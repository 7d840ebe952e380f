#include <gtest/gtest.h>

#include "nfs/server/mount_list.h"
#include "testing/nfs/server_fixture.h"

namespace stag::nfs {
namespace {

using namespace mount3;

class Mount : public testing::NfsServed {
 protected:
  mountstat3 mount(const std::string& path) { return call<MOUNTPROC3_MNT>(path).fhs_status; }
};

TEST_F(Mount, gives_the_root_handle_and_the_flavors_it_takes) {
  const auto res = call<MOUNTPROC3_MNT>("/data");
  ASSERT_EQ(res.fhs_status, MNT3_OK);
  EXPECT_EQ(res.mountinfo().auth_flavors, std::vector<std::int32_t>{1});
  const auto attributes = call<v3::NFSPROC3_GETATTR>({mounted("/data")});
  EXPECT_EQ(attributes.resok().obj_attributes.type, v3::NF3DIR);
}

TEST_F(Mount, reaches_directories_below_an_export) {
  const v3::nfs_fh3 outer = mkdir(root(), "outer");
  const v3::nfs_fh3 inner = mkdir(outer, "inner");
  EXPECT_EQ(mounted("/data/outer/inner"), inner);
  EXPECT_EQ(mounted("//data/outer//inner/"), inner);
}

TEST_F(Mount, refuses_what_is_no_exported_directory) {
  create(root(), "file");
  mkdir(root(), "closed", 0700);
  mkdir(mkdir(root(), "dir"), "below");
  EXPECT_EQ(mount("/"), MNT3ERR_NOENT);
  EXPECT_EQ(mount("/database"), MNT3ERR_NOENT);
  EXPECT_EQ(mount("/data/none"), MNT3ERR_NOENT);
  EXPECT_EQ(mount("/data/file"), MNT3ERR_NOTDIR);
  EXPECT_EQ(mount("/data/file/x"), MNT3ERR_NOTDIR);
  EXPECT_EQ(mount("/data/" + std::string(256, 'x')), MNT3ERR_NAMETOOLONG);
  EXPECT_EQ(mount("/data/dir/.."), MNT3ERR_ACCES);
  EXPECT_EQ(mount("data"), MNT3ERR_ACCES);
  EXPECT_EQ(mount(""), MNT3ERR_ACCES);
  as(1000, 1000);
  EXPECT_EQ(mount("/data/closed/x"), MNT3ERR_ACCES);
}

TEST_F(Mount, follows_no_symbolic_link) {
  mkdir(root(), "dir");
  ASSERT_EQ(call<v3::NFSPROC3_SYMLINK>({{root(), "link"}, {{}, "dir"}}).status, v3::NFS3_OK);
  EXPECT_EQ(mount("/data/link"), MNT3ERR_NOTDIR);
}

TEST_F(Mount, lists_the_exports) {
  const auto exports = call<MOUNTPROC3_EXPORT>({});
  ASSERT_EQ(exports.size(), 2u);
  EXPECT_EQ(exports[0].ex_dir, "/data");
  EXPECT_EQ(exports[1].ex_dir, "/odd");
  EXPECT_TRUE(exports[0].ex_groups.empty());
}

TEST_F(Mount, remembers_who_mounted_what_until_unmounted) {
  mount("/data");
  mount("/data/");
  mount("/odd");
  channel_.origin().peer.host = "198.51.100.7";
  mount("/data");
  mount("/none");
  EXPECT_EQ(call<MOUNTPROC3_DUMP>({}),
            (mountlist{{"192.0.2.1", "/data"}, {"192.0.2.1", "/odd"}, {"198.51.100.7", "/data"}}));
  call<MOUNTPROC3_UMNT>("/data/");
  EXPECT_EQ(call<MOUNTPROC3_DUMP>({}), (mountlist{{"192.0.2.1", "/data"}, {"192.0.2.1", "/odd"}}));
  channel_.origin().peer.host = "192.0.2.1";
  call<MOUNTPROC3_UMNTALL>({});
  EXPECT_TRUE(call<MOUNTPROC3_DUMP>({}).empty());
}

TEST(MountList, forgets_the_oldest_when_full) {
  MountList list;
  for (std::size_t i = 0; i <= MountList::kMost; ++i) list.add("host", "/" + std::to_string(i));
  const auto all = list.all();
  ASSERT_EQ(all.size(), MountList::kMost);
  EXPECT_EQ(all.front().path, "/1");
}

class SecureMount : public testing::NfsServed {
 protected:
  SecureMount() : NfsServed(*parse_export_options("secure")) {}
};

TEST_F(SecureMount, wants_a_reserved_port) {
  const v3::nfs_fh3 handle = mounted("/odd");
  channel_.origin().peer.port = 40000;
  EXPECT_EQ(call<MOUNTPROC3_MNT>("/odd").fhs_status, MNT3ERR_ACCES);
  EXPECT_EQ(call<v3::NFSPROC3_ACCESS>({handle, 1}).status, v3::NFS3ERR_STALE);
  EXPECT_EQ(call<v3::NFSPROC3_LOOKUP>({{handle, "x"}}).status, v3::NFS3ERR_ACCES);
  // RDMA clients use no reserved ports.
  channel_.origin().transport = rpc::TransportKind::Rdma;
  EXPECT_EQ(call<v3::NFSPROC3_ACCESS>({handle, 1}).status, v3::NFS3_OK);
}

}  // namespace
}  // namespace stag::nfs
