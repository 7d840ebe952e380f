#include <gtest/gtest.h>

#include "testing/nfs/server_fixture.h"

namespace stag::nfs {
namespace {

using namespace v3;

class Nfs3Attributes : public testing::NfsServerTest {
 protected:
  fattr3 attributes(const nfs_fh3& object) {
    const auto res = call<NFSPROC3_GETATTR>({object});
    EXPECT_EQ(res.status, NFS3_OK);
    return res.status == NFS3_OK ? res.resok().obj_attributes : fattr3{};
  }
  nfsstat3 set(const nfs_fh3& object, const sattr3& changes) {
    return call<NFSPROC3_SETATTR>({object, changes, {}}).status;
  }
};
class Nfs3Getattr : public Nfs3Attributes {};
class Nfs3Setattr : public Nfs3Attributes {};

TEST_F(Nfs3Getattr, returns_a_directory_for_the_root) {
  const fattr3 found = attributes(root());
  EXPECT_EQ(found.type, NF3DIR);
  EXPECT_EQ(found.mode, 01777u);
  EXPECT_GE(found.nlink, 2u);
  EXPECT_NE(found.fileid, 0u);
}

TEST_F(Nfs3Setattr, refuses_the_mode_of_a_symbolic_link) {
  const auto made = call<NFSPROC3_SYMLINK>({{root(), "link"}, {{}, "target"}});
  const nfs_fh3 link = made.resok().obj.handle();
  const fattr3 before = attributes(link);
  sattr3 changes = mode(0600);
  changes.uid.set_it = true;
  changes.uid.uid() = 7;
  EXPECT_EQ(set(link, changes), NFS3ERR_NOTSUPP);
  EXPECT_EQ(attributes(link), before) << "nothing of it is done";
  changes.mode.set_it = false;
  EXPECT_EQ(set(link, changes), NFS3_OK);
}

TEST_F(Nfs3Getattr, returns_the_type_of_every_kind_of_object) {
  const nfs_fh3 dir = root();
  EXPECT_EQ(attributes(create(dir, "file")).type, NF3REG);
  EXPECT_EQ(attributes(mkdir(dir, "dir")).type, NF3DIR);
  const auto link = call<NFSPROC3_SYMLINK>({{dir, "link"}, {{}, "target"}});
  EXPECT_EQ(link.resok().obj_attributes.attributes().type, NF3LNK);
  for (const ftype3 type : {NF3CHR, NF3BLK, NF3SOCK, NF3FIFO}) {
    MKNOD3args args;
    args.where = {dir, "node" + std::to_string(type)};
    args.what.type = type;
    if (type == NF3CHR || type == NF3BLK)
      args.what.device() = {mode(0600), {12, 34}};
    else
      args.what.pipe_attributes() = mode(0600);
    const auto made = call<NFSPROC3_MKNOD>(args);
    ASSERT_EQ(made.status, NFS3_OK) << type;
    const fattr3 found = attributes(made.resok().obj.handle());
    EXPECT_EQ(found.type, type);
    EXPECT_EQ(found.rdev, type == NF3CHR || type == NF3BLK ? (specdata3{12, 34}) : specdata3{});
  }
}

TEST_F(Nfs3Getattr, refuses_a_handle_that_the_server_never_gave_out) {
  nfs_fh3 forged = root();
  std::array<std::byte, 64> bytes{};
  std::copy(forged.data.bytes().begin(), forged.data.bytes().end(), bytes.begin());
  bytes[7] ^= std::byte{1};
  ASSERT_TRUE(forged.data.assign(Bytes(bytes).first(forged.data.size())));
  EXPECT_EQ(call<NFSPROC3_GETATTR>({forged}).status, NFS3ERR_BADHANDLE);
  EXPECT_EQ(call<NFSPROC3_GETATTR>({nfs_fh3{}}).status, NFS3ERR_BADHANDLE);
}

TEST_F(Nfs3Getattr, returns_STALE_for_a_removed_object) {
  const nfs_fh3 file = create(root(), "file");
  ASSERT_EQ(call<NFSPROC3_REMOVE>({{root(), "file"}}).status, NFS3_OK);
  EXPECT_EQ(call<NFSPROC3_GETATTR>({file}).status, NFS3ERR_STALE);
}

TEST_F(Nfs3Setattr, sets_each_attribute_alone) {
  const nfs_fh3 file = create(root(), "file");
  ASSERT_EQ(write(file, 0, "hello").status, NFS3_OK);
  EXPECT_EQ(set(file, mode(0123)), NFS3_OK);
  sattr3 changes;
  changes.uid.set_it = changes.gid.set_it = changes.size.set_it = true;
  changes.uid.uid() = 11;
  changes.gid.gid() = 12;
  changes.size.size() = 3;
  EXPECT_EQ(set(file, changes), NFS3_OK);
  const fattr3 found = attributes(file);
  EXPECT_EQ(found.mode, 0123u);
  EXPECT_EQ(found.uid, 11u);
  EXPECT_EQ(found.gid, 12u);
  EXPECT_EQ(found.size, 3u);
}

TEST_F(Nfs3Setattr, sets_times_of_the_client_and_of_the_server) {
  const nfs_fh3 file = create(root(), "file");
  sattr3 changes;
  changes.atime.set_it = SET_TO_CLIENT_TIME;
  changes.atime.atime() = {1000, 999'999'999};
  changes.mtime.set_it = SET_TO_CLIENT_TIME;
  changes.mtime.mtime() = {0xffffffff, 7};
  EXPECT_EQ(set(file, changes), NFS3_OK);
  EXPECT_EQ(attributes(file).atime, (nfstime3{1000, 999'999'999}));
  EXPECT_EQ(attributes(file).mtime, (nfstime3{0xffffffff, 7}));
  sattr3 now;
  now.mtime.set_it = SET_TO_SERVER_TIME;
  EXPECT_EQ(set(file, now), NFS3_OK);
  EXPECT_EQ(attributes(file).atime, (nfstime3{1000, 999'999'999}));
  EXPECT_NE(attributes(file).mtime, (nfstime3{0xffffffff, 7}));
}

TEST_F(Nfs3Setattr, refuses_a_time_that_cannot_be) {
  const nfs_fh3 file = create(root(), "file");
  sattr3 changes;
  changes.mtime.set_it = SET_TO_CLIENT_TIME;
  changes.mtime.mtime() = {1, 1'000'000'000};
  EXPECT_EQ(set(file, changes), NFS3ERR_INVAL);
}

TEST_F(Nfs3Setattr, refuses_an_owner_that_cannot_be) {
  const nfs_fh3 file = create(root(), "file");
  sattr3 changes;
  changes.gid.set_it = true;
  changes.gid.gid() = 0xffffffff;
  EXPECT_EQ(set(file, changes), NFS3ERR_INVAL);
  sattr3 others;
  others.uid.set_it = true;
  others.uid.uid() = 0xffffffff;
  EXPECT_EQ(set(file, others), NFS3ERR_INVAL);
}

TEST_F(Nfs3Setattr, checks_the_ctime_of_the_guard) {
  const nfs_fh3 file = create(root(), "file");
  SETATTR3args args{file, mode(0600), {}};
  args.guard.check = true;
  args.guard.obj_ctime() = {1, 1};
  const auto refused = call<NFSPROC3_SETATTR>(args);
  EXPECT_EQ(refused.status, NFS3ERR_NOT_SYNC);
  ASSERT_TRUE(refused.resfail().obj_wcc.after.attributes_follow);
  EXPECT_EQ(refused.resfail().obj_wcc.after.attributes().mode, 0644u);
  args.guard.obj_ctime() = attributes(file).ctime;
  EXPECT_EQ(call<NFSPROC3_SETATTR>(args).status, NFS3_OK);
}

TEST_F(Nfs3Setattr, returns_the_attributes_before_and_after) {
  const nfs_fh3 file = create(root(), "file");
  ASSERT_EQ(write(file, 0, "hello").status, NFS3_OK);
  const fattr3 before = attributes(file);
  sattr3 changes;
  changes.size.set_it = true;
  changes.size.size() = 2;
  const auto res = call<NFSPROC3_SETATTR>({file, changes, {}});
  ASSERT_EQ(res.status, NFS3_OK);
  const wcc_data& wcc = res.resok().obj_wcc;
  ASSERT_TRUE(wcc.before.attributes_follow && wcc.after.attributes_follow);
  EXPECT_EQ(wcc.before.attributes(), (wcc_attr{5, before.mtime, before.ctime}));
  EXPECT_EQ(wcc.after.attributes(), attributes(file));
}

TEST_F(Nfs3Setattr, refuses_to_change_another_users_file) {
  const nfs_fh3 file = create(root(), "file");
  as(1000, 1000);
  EXPECT_EQ(set(file, mode(0777)), NFS3ERR_PERM);
  EXPECT_EQ(attributes(file).mode, 0644u);
}

class Nfs3Access : public Nfs3Attributes {
 protected:
  std::uint32_t granted(const nfs_fh3& object, std::uint32_t asked = 0x3f) {
    const auto res = call<NFSPROC3_ACCESS>({object, asked});
    EXPECT_EQ(res.status, NFS3_OK);
    return res.status == NFS3_OK ? res.resok().access : ~0u;
  }
};

TEST_F(Nfs3Access, follows_the_mode_bits_for_owner_group_and_others) {
  as(1000, 100);
  const nfs_fh3 file = create(root(), "file", 0640);
  EXPECT_EQ(granted(file), ACCESS3_READ | ACCESS3_MODIFY | ACCESS3_EXTEND);
  as(1001, 100);
  EXPECT_EQ(granted(file), ACCESS3_READ);
  as(1001, 7, {100});
  EXPECT_EQ(granted(file), ACCESS3_READ);
  as(1001, 7);
  EXPECT_EQ(granted(file), 0u);
}

TEST_F(Nfs3Access, returns_only_the_bits_that_were_asked_for) {
  const nfs_fh3 dir = mkdir(root(), "dir");
  EXPECT_EQ(granted(dir, ACCESS3_LOOKUP), ACCESS3_LOOKUP);
  EXPECT_EQ(granted(dir, 0), 0u);
  EXPECT_EQ(granted(dir, 0xffffffc0 | ACCESS3_READ), ACCESS3_READ);
}

}  // namespace
}  // namespace stag::nfs
