#include <gtest/gtest.h>

#include "nfs/server/mount/mount_list.h"
#include "testing/claimed_kerberos.h"
#include "testing/nfs/server_fixture.h"

namespace stag::nfs {
namespace {

using namespace mount3;

class Mount : public testing::NfsServerTest {
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

class MountedLinks : public Mount {
 protected:
  void link(const v3::nfs_fh3& in, const std::string& name, const std::string& target) {
    EXPECT_EQ(call<v3::NFSPROC3_SYMLINK>({{in, name}, {{}, target}}).status, v3::NFS3_OK);
  }
};

TEST_F(MountedLinks, are_followed_within_the_export) {
  const v3::nfs_fh3 dir = mkdir(root(), "dir");
  const v3::nfs_fh3 below = mkdir(dir, "below");
  link(root(), "link", "dir");
  link(root(), "again", "./link//");
  link(dir, "up", "../dir/below");
  link(below, "top", "../..");
  EXPECT_EQ(mounted("/data/link"), dir);
  EXPECT_EQ(mounted("/data/link/below"), below);
  EXPECT_EQ(mounted("/data/again/up"), below);
  EXPECT_EQ(mounted("/data/link/up/top/again"), dir);
  EXPECT_EQ(mounted("/data/dir/below/top"), root());
}

TEST_F(MountedLinks, never_lead_out_of_the_export) {
  const v3::nfs_fh3 dir = mkdir(root(), "dir");
  mkdir(root(), "odd");
  int number = 0;
  for (const char* target : {"../..", "../../odd", "/", "/odd", "/data", "/dir"}) {
    const std::string name = std::to_string(++number);
    link(dir, name, target);
    EXPECT_EQ(mount("/data/dir/" + name), MNT3ERR_NOENT) << target;
  }
}

TEST_F(MountedLinks, are_refused_when_they_lead_to_nothing_to_a_file_or_in_circles) {
  create(root(), "file");
  link(root(), "nothing", "none");
  link(root(), "a", "b");
  link(root(), "b", "a");
  link(root(), "to file", "file");
  link(root(), "through file", "file/../");
  EXPECT_EQ(mount("/data/nothing"), MNT3ERR_NOENT);
  EXPECT_EQ(mount("/data/a"), MNT3ERR_NOENT);
  EXPECT_EQ(mount("/data/to file"), MNT3ERR_NOTDIR);
  EXPECT_EQ(mount("/data/through file"), MNT3ERR_NOTDIR);
}

TEST_F(MountedLinks, are_followed_when_absolute_where_the_folder_is_known) {
  ASSERT_TRUE(nfs_.replace_exports({{"/x", store_, {}, {}, {"/srv//x/", "/mnt/disk"}}}).ok());
  const v3::nfs_fh3 dir = mkdir(mounted("/x"), "dir", 0777);
  link(dir, "a", "/srv/x/dir");
  link(dir, "b", "/mnt//disk/dir/../dir");
  link(dir, "root", "/srv/x");
  link(dir, "other", "/srv/xy/dir");
  link(dir, "above", "/srv");
  link(dir, "out", "/srv/x/..");
  EXPECT_EQ(mounted("/x/dir/a"), dir);
  EXPECT_EQ(mounted("/x/dir/b"), dir);
  EXPECT_EQ(mounted("/x/dir/root/dir"), dir);
  for (const char* name : {"other", "above", "out"})
    EXPECT_EQ(mount("/x/dir/" + std::string(name)), MNT3ERR_NOENT) << name;
}

TEST_F(MountedLinks, take_no_more_than_so_many_steps) {
  const v3::nfs_fh3 dir = mkdir(root(), "d");
  std::string around;
  for (int i = 0; i < 600; ++i) around += "../d/";
  link(dir, "0", around);
  for (int i = 1; i < 8; ++i) link(dir, std::to_string(i), std::to_string(i - 1) + "/" + "0");
  EXPECT_EQ(mounted("/data/d/0"), dir);
  EXPECT_EQ(mount("/data/d/7"), MNT3ERR_NAMETOOLONG);
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

class MountWithSys : public testing::NfsServerTest {
 protected:
  MountWithSys() : NfsServerTest(*parse_export_options("sec=sys")) {}
};

TEST_F(MountWithSys, refuses_calls_without_credentials) {
  EXPECT_EQ(call<MOUNTPROC3_MNT>("/odd").mountinfo().auth_flavors, (std::vector<std::int32_t>{1}));
  const v3::nfs_fh3 handle = mounted("/odd");
  as_nobody_known();
  EXPECT_EQ(call<MOUNTPROC3_MNT>("/odd").fhs_status, MNT3ERR_ACCES);
  EXPECT_EQ(call<v3::NFSPROC3_LOOKUP>({{handle, "x"}}).status, v3::NFS3ERR_ACCES);
  EXPECT_EQ(call<MOUNTPROC3_MNT>("/data").fhs_status, MNT3_OK);
}

class MountWithNone : public testing::NfsServerTest {
 protected:
  MountWithNone() : NfsServerTest(*parse_export_options("sec=none")) {}
};

TEST_F(MountWithNone, says_so_where_no_other_flavor_is_taken) {
  as_nobody_known();
  EXPECT_EQ(call<MOUNTPROC3_MNT>("/odd").mountinfo().auth_flavors, (std::vector<std::int32_t>{0}));
}

TEST_F(MountWithNone, tells_a_caller_with_AUTH_SYS_that_it_takes_no_credentials) {
  const auto res = call<MOUNTPROC3_MNT>("/odd");
  ASSERT_EQ(res.fhs_status, MNT3_OK);
  EXPECT_EQ(res.mountinfo().auth_flavors, (std::vector<std::int32_t>{0}));
  const v3::nfs_fh3 handle{res.mountinfo().fhandle};
  EXPECT_EQ(call<v3::NFSPROC3_LOOKUP>({{handle, "x"}}).status, v3::NFS3ERR_ACCES);
}

// Clients that use Kerberos mount with AUTH_SYS (RFC 2623 section 2.3.2).
class MountWithKerberos : public testing::NfsServerTest {
 protected:
  MountWithKerberos()
      : NfsServerTest(*parse_export_options("sec=krb5p:krb5i:krb5,no_root_squash")) {
    server_.add(std::make_unique<testing::ClaimedKerberosAuthenticator>());
  }
  void as_user(oncrpc::AuthFlavor flavor) {
    credentials_ = testing::claimed_kerberos(flavor, 0, 0);
  }
};

TEST_F(MountWithKerberos, tells_a_caller_with_AUTH_SYS_which_flavors_there_are) {
  const auto res = call<MOUNTPROC3_MNT>("/odd");
  ASSERT_EQ(res.fhs_status, MNT3_OK);
  EXPECT_EQ(res.mountinfo().auth_flavors, (std::vector<std::int32_t>{390005, 390004, 390003}));
  as_nobody_known();
  EXPECT_EQ(call<MOUNTPROC3_MNT>("/odd").fhs_status, MNT3ERR_ACCES);
}

TEST_F(MountWithKerberos, walks_with_AUTH_SYS_as_the_anonymous_user) {
  mkdir(mkdir(root(), "closed", 0700), "inner");
  EXPECT_EQ(call<MOUNTPROC3_MNT>("/odd/closed/inner").fhs_status, MNT3ERR_ACCES);
  as_user(oncrpc::AuthFlavor::KRB5);
  EXPECT_EQ(call<MOUNTPROC3_MNT>("/odd/closed/inner").fhs_status, MNT3_OK);
}

TEST_F(MountWithKerberos, shows_AUTH_SYS_what_clients_ask_of_the_root_while_they_mount_it) {
  const v3::nfs_fh3 handle = mounted("/odd");
  EXPECT_EQ(call<v3::NFSPROC3_GETATTR>({handle}).status, v3::NFS3_OK);
  EXPECT_EQ(call<v3::NFSPROC3_FSINFO>({handle}).status, v3::NFS3_OK);
  EXPECT_EQ(call<v3::NFSPROC3_LOOKUP>({{handle, "x"}}).status, v3::NFS3ERR_ACCES);
  as_user(oncrpc::AuthFlavor::KRB5I);
  const v3::nfs_fh3 inner = mkdir(handle, "inner");
  credentials_ = rpc::Credentials::sys("tests", 0, 0);
  EXPECT_EQ(call<v3::NFSPROC3_FSINFO>({inner}).status, v3::NFS3ERR_STALE);
  EXPECT_EQ(call<v3::NFSPROC3_GETATTR>({inner}).status, v3::NFS3ERR_STALE);
}

class MountSecure : public testing::NfsServerTest {
 protected:
  MountSecure() : NfsServerTest(*parse_export_options("secure")) {}
};

TEST_F(MountSecure, wants_a_reserved_port) {
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
