// NFSACL versions 2 and 3, called as a client calls them.
#include "nfs/server/acl/acl.h"

#include "nfs/proto/nfsacl.h"
#include "testing/held_executor.h"
#include "testing/nfs/faulty_store.h"
#include "testing/nfs/one_name.h"
#include "testing/nfs/server_fixture.h"
#include "testing/vfs/awaited.h"

namespace stag::nfs::acl_test {
namespace {

using namespace nfsacl;
using Entries = std::vector<aclent>;

// 0640 of root:root, but user 1001 may read and write; as it is on the wire.
const Entries kForBob{{ACL_USER_OBJ, 0, 6},
                      {ACL_USER, 1001, 6},
                      {ACL_GROUP_OBJ, 0, 4},
                      {ACL_CLASS_OBJ, 0, 6},
                      {ACL_OTHER_OBJ, 0, 0}};
Entries as_defaults(Entries list) {
  for (aclent& entry : list) entry.type |= NFS_ACL_DEFAULT;
  return list;
}

secattr lists(const Entries& access) {
  const auto count = static_cast<std::uint32_t>(access.size());
  return {NFS_ACL | NFS_ACLCNT, count, access, 0, {}};
}
secattr lists(const Entries& access, const Entries& defaults) {
  const auto count = static_cast<std::uint32_t>(access.size());
  return {NFS_ACL_MASK, count, access, static_cast<std::uint32_t>(defaults.size()), defaults};
}

class Nfsacl : public testing::NfsServerTest {
 protected:
  GETACL3res look(const v3::nfs_fh3& object, std::uint32_t mask = NFS_ACL_MASK) {
    return call<ACLPROC3_GETACL>({object.data, mask});
  }
  std::uint32_t set(const v3::nfs_fh3& object, const secattr& acls) {
    return call<ACLPROC3_SETACL>({object.data, acls}).status;
  }
  std::uint32_t mode_of(const v3::nfs_fh3& object) {
    return call<v3::NFSPROC3_GETATTR>({object}).resok().obj_attributes.mode;
  }
  fhandle2 handle2(const std::string& name) {
    const vfs::Credentials who{0, 0, {}};
    const vfs::CallerContext caller{loop_, who};
    const auto found = loop_.run(testing::awaited(store_->lookup(caller, store_->root(), name)));
    const FileHandles handles(nfs::ServerState::ephemeral(7).handle_key);
    return *handles.seal2(handles.export_id("/data"), (*found)->node.handle);
  }
};

TEST_F(Nfsacl, shows_a_mode_as_a_list_of_four_with_the_owners_in_it) {
  as(1000, 2000);
  const v3::nfs_fh3 file = create(root(), "file", 0751);
  const GETACL3res res = look(file);
  ASSERT_EQ(res.status, ACL_OK);
  EXPECT_EQ(res.resok().acls.mask, NFS_ACL_MASK);
  EXPECT_EQ(res.resok().acls.aclcnt, 4u);
  const Entries expected{{ACL_USER_OBJ, 1000, 7},
                         {ACL_GROUP_OBJ, 2000, 5},
                         {ACL_CLASS_OBJ, 0, 5},
                         {ACL_OTHER_OBJ, 0, 1}};
  EXPECT_EQ(res.resok().acls.aclents, expected);
  EXPECT_EQ(res.resok().acls.dfaclcnt, 0u);
  ASSERT_TRUE(res.resok().attributes.attributes_follow);
  EXPECT_EQ(res.resok().attributes.attributes().uid, 1000u);
  EXPECT_EQ(res.resok().attributes.attributes().mode, 0751u);
}

TEST_F(Nfsacl, keeps_a_list_in_whatever_order_it_comes) {
  const v3::nfs_fh3 file = create(root(), "file", 0600);
  ASSERT_EQ(set(file, lists({kForBob.rbegin(), kForBob.rend()})), ACL_OK);
  EXPECT_EQ(look(file).resok().acls.aclents, kForBob);
  EXPECT_EQ(mode_of(file), 0660u);
  as(1001, 1001);
  EXPECT_EQ(call<v3::NFSPROC3_ACCESS>({file, 0x3f}).resok().access,
            v3::ACCESS3_READ | v3::ACCESS3_MODIFY | v3::ACCESS3_EXTEND);
}

TEST_F(Nfsacl, makes_a_mode_of_a_list_whose_mask_says_nothing) {
  const v3::nfs_fh3 file = create(root(), "file", 0600);
  const Entries four{
      {ACL_USER_OBJ, 0, 7}, {ACL_GROUP_OBJ, 0, 5}, {ACL_CLASS_OBJ, 0, 5}, {ACL_OTHER_OBJ, 0, 4}};
  ASSERT_EQ(set(file, lists(four)), ACL_OK);
  EXPECT_EQ(mode_of(file), 0754u);
  EXPECT_EQ(look(file).resok().acls.aclents, four);
}

TEST_F(Nfsacl, gives_directories_a_default_list_and_takes_it_away) {
  const v3::nfs_fh3 dir = mkdir(root(), "dir", 0755);
  const Entries access = look(dir).resok().acls.aclents;
  ASSERT_EQ(set(dir, lists(access, as_defaults(kForBob))), ACL_OK);
  EXPECT_EQ(look(dir).resok().acls.aclents, access);
  EXPECT_EQ(look(dir).resok().acls.dfaclents, as_defaults(kForBob));
  EXPECT_EQ(look(create(dir, "inside", 0666)).resok().acls.aclents, kForBob);
  ASSERT_EQ(set(dir, lists(access)), ACL_OK) << "its bit is not set: it stays";
  EXPECT_EQ(look(dir).resok().acls.dfaclcnt, 5u);
  ASSERT_EQ(set(dir, lists(access, {})), ACL_OK);
  EXPECT_EQ(look(dir).resok().acls.dfaclcnt, 0u);
}

TEST_F(Nfsacl, tells_lengths_alone_when_asked_for_no_more) {
  const v3::nfs_fh3 dir = mkdir(root(), "dir", 0755);
  ASSERT_EQ(set(dir, lists(kForBob, as_defaults(kForBob))), ACL_OK);
  const secattr counts = look(dir, NFS_ACLCNT | NFS_DFACLCNT).resok().acls;
  EXPECT_EQ(counts.aclcnt, 5u);
  EXPECT_EQ(counts.dfaclcnt, 5u);
  EXPECT_TRUE(counts.aclents.empty());
  EXPECT_TRUE(counts.dfaclents.empty());
  const secattr one = look(dir, NFS_DFACL).resok().acls;
  EXPECT_EQ(one.aclcnt, 0u);
  EXPECT_EQ(one.dfaclents, as_defaults(kForBob));
}

TEST_F(Nfsacl, refuses_invalid_lists) {
  const v3::nfs_fh3 file = create(root(), "file", 0600);
  EXPECT_EQ(look(file, 0x10).status, v3::NFS3ERR_INVAL);
  EXPECT_TRUE(look(file, 0x10).resfail().attributes_follow);
  secattr acls = lists(kForBob);
  acls.mask = 0x11;
  EXPECT_EQ(set(file, acls), v3::NFS3ERR_INVAL);
  acls = lists(kForBob);
  acls.aclcnt = 4;
  EXPECT_EQ(set(file, acls), v3::NFS3ERR_INVAL) << "not so many";
  Entries list = kForBob;
  list[1].type = 0x10002;
  EXPECT_EQ(set(file, lists(list)), v3::NFS3ERR_INVAL) << "no such type";
  list = kForBob;
  list.erase(list.begin() + 3);
  EXPECT_EQ(set(file, lists(list)), v3::NFS3ERR_INVAL) << "a name and no mask";
  list = kForBob;
  list[1].perm = 8;
  EXPECT_EQ(set(file, lists(list)), v3::NFS3ERR_INVAL) << "no such permission";
  EXPECT_EQ(set(file, lists(kForBob, as_defaults(kForBob))), v3::NFS3ERR_ACCES)
      << "a default list of a file";
  EXPECT_EQ(mode_of(file), 0600u);
  EXPECT_EQ(look({}).status, v3::NFS3ERR_BADHANDLE);
  EXPECT_EQ(set({}, lists(kForBob)), v3::NFS3ERR_BADHANDLE);
}

TEST_F(Nfsacl, lets_only_the_owner_set_and_everybody_read_a_list) {
  const v3::nfs_fh3 file = create(root(), "file", 0600);
  as(1001, 1001);
  EXPECT_EQ(set(file, lists(kForBob)), v3::NFS3ERR_PERM);
  EXPECT_EQ(look(file).status, ACL_OK);
}

// Without what a store need not have.
class PlainStore final : public testing::FaultyStore {
 public:
  using FaultyStore::FaultyStore;
  vfs::Operation<vfs::ObjectAcls> acls(vfs::CallerContext caller,
                                       const vfs::Handle& object) override {
    return FileSystem::acls(caller, object);
  }
  vfs::Operation<vfs::Change> set_acls(vfs::CallerContext caller, const vfs::Handle& object,
                                       const vfs::SetAcls& changes) override {
    return FileSystem::set_acls(caller, object, changes);
  }
};

TEST_F(Nfsacl, returns_NOTSUPP_for_a_store_without_lists) {
  ASSERT_TRUE(nfs_.add_export("/plain", std::make_shared<PlainStore>(store_), {}).ok());
  const v3::nfs_fh3 plain = mounted("/plain");
  EXPECT_EQ(look(plain).status, v3::NFS3ERR_NOTSUPP);
  EXPECT_EQ(set(plain, lists(kForBob)), v3::NFS3ERR_NOTSUPP);
}

class NfsaclReadOnly : public Nfsacl {
 protected:
  NfsaclReadOnly() {
    STAG_CHECK(nfs_.add_export("/ro", store_, *parse_export_options("ro,no_root_squash")).ok());
  }
};

TEST_F(NfsaclReadOnly, shows_lists_and_changes_none) {
  create(root(), "file", 0640);
  const v3::nfs_fh3 file = call<v3::NFSPROC3_LOOKUP>({{mounted("/ro"), "file"}}).resok().object;
  EXPECT_EQ(look(file).resok().acls.aclcnt, 4u);
  EXPECT_EQ(set(file, lists(kForBob)), v3::NFS3ERR_ROFS);
}

TEST_F(Nfsacl, speaks_version_2_as_well) {
  create(root(), "file", 0640);
  const fhandle2 file = handle2("file");
  const auto set_answer = call<ACLPROC2_SETACL>({file, lists(kForBob)});
  ASSERT_EQ(set_answer.status, ACL_OK);
  EXPECT_EQ(set_answer.resok().mode & 0777, 0660u);
  const auto got = call<ACLPROC2_GETACL>({file, NFS_ACL_MASK});
  ASSERT_EQ(got.status, ACL_OK);
  EXPECT_EQ(got.resok().acls.aclents, kForBob);
  EXPECT_EQ(got.resok().attributes, set_answer.resok());
  EXPECT_EQ(call<ACLPROC2_GETATTR>(file).resok(), set_answer.resok());
  as(1001, 1001);
  EXPECT_EQ(call<ACLPROC2_ACCESS>({file, 0x3f}).resok().access,
            v3::ACCESS3_READ | v3::ACCESS3_MODIFY | v3::ACCESS3_EXTEND);
  EXPECT_EQ(call<ACLPROC2_SETACL>({file, lists(kForBob)}).status, 1u) << "NFSERR_PERM";
  EXPECT_EQ(call<ACLPROC2_GETACL>({file, 0x10}).status, 22u) << "NFSERR_INVAL";
  constexpr std::uint32_t kStale = 70;
  EXPECT_EQ(call<ACLPROC2_GETACL>({{}, NFS_ACL}).status, kStale);
  EXPECT_EQ(call<ACLPROC2_GETATTR>({}).status, kStale);
  EXPECT_EQ(call<ACLPROC2_ACCESS>({{}, 1}).status, kStale);
}

TEST_F(Nfsacl, waits_for_the_name_of_a_client) {
  const v3::nfs_fh3 file3 = create(root(), "file");
  const fhandle2 file = handle2("file");
  const auto worker = std::make_shared<testing::HeldExecutor>();
  ExportOptions open;
  open.root_squash = false;
  ASSERT_TRUE(
      nfs_.replace_exports({{"/data", store_, open, {testing::rule_by_name(open, worker)}}}).ok());
  channel_.origin().peer = {"192.0.2.1", 700};
  const auto looked = start<ACLPROC2_GETACL>({file, NFS_ACL_MASK});
  const auto set = start<ACLPROC2_SETACL>({file, lists(kForBob)});
  const auto asked = start<ACLPROC2_ACCESS>({file, 1});
  const auto attributes = start<ACLPROC2_GETATTR>(file);
  const auto looked3 = start<ACLPROC3_GETACL>({file3.data, NFS_ACL_MASK});
  const auto set3 = start<ACLPROC3_SETACL>({file3.data, lists(kForBob)});
  loop_.pass(std::chrono::seconds(3));
  EXPECT_FALSE(*looked || *set || *asked || *attributes || *looked3 || *set3);
  worker->run_all();
  loop_.pass(std::chrono::milliseconds(200));
  ASSERT_TRUE(*looked && *set && *asked && *attributes && *looked3 && *set3);
  EXPECT_EQ((*looked)->status, ACL_OK);
  EXPECT_EQ((*set)->status, ACL_OK);
  EXPECT_EQ((*asked)->status, ACL_OK);
  EXPECT_EQ((*attributes)->status, ACL_OK);
  EXPECT_EQ((*looked3)->status, ACL_OK);
  EXPECT_EQ((*set3)->status, ACL_OK);
}

}  // namespace
}  // namespace stag::nfs::acl_test
