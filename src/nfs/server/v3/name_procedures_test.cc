// LOOKUP, READLINK and the procedures that make, move and remove names.
#include <gtest/gtest.h>

#include "testing/nfs/server_fixture.h"

namespace stag::nfs {
namespace {

using namespace v3;

class Nfs3Names : public testing::NfsServerTest {
 protected:
  nfsstat3 found(const nfs_fh3& dir, const std::string& name) {
    return call<NFSPROC3_LOOKUP>({{dir, name}}).status;
  }
  nfsstat3 linked(const nfs_fh3& file, const nfs_fh3& dir, const std::string& name) {
    return call<NFSPROC3_LINK>({file, {dir, name}}).status;
  }
  nfsstat3 renamed(const nfs_fh3& from, const std::string& name, const nfs_fh3& to,
                   const std::string& other) {
    return call<NFSPROC3_RENAME>({{from, name}, {to, other}}).status;
  }
  nfs_fh3 symlink(const nfs_fh3& dir, const std::string& name, const std::string& target) {
    const auto res = call<NFSPROC3_SYMLINK>({{dir, name}, {mode(0777), target}});
    EXPECT_EQ(res.status, NFS3_OK);
    return res.resok().obj.handle();
  }
};
class Nfs3Create : public Nfs3Names {};
class Nfs3Link : public Nfs3Names {};
class Nfs3Lookup : public Nfs3Names {};
class Nfs3Mknod : public Nfs3Names {};
class Nfs3Readlink : public Nfs3Names {};
class Nfs3Remove : public Nfs3Names {};
class Nfs3Rename : public Nfs3Names {};
class Nfs3Symlink : public Nfs3Names {};

const std::string kTooLong(256, 'n');

TEST_F(Nfs3Lookup, returns_the_handle_and_both_attributes) {
  const nfs_fh3 file = create(root(), "file");
  const auto res = call<NFSPROC3_LOOKUP>({{root(), "file"}});
  ASSERT_EQ(res.status, NFS3_OK);
  EXPECT_EQ(res.resok().object, file);
  EXPECT_EQ(res.resok().obj_attributes.attributes().type, NF3REG);
  EXPECT_EQ(res.resok().dir_attributes.attributes().type, NF3DIR);
}

TEST_F(Nfs3Names, may_be_any_bytes_but_slash_and_NUL) {
  for (const std::string& name : {std::string("\xff\x01 \n"), std::string(255, '\x80')}) {
    const nfs_fh3 file = create(root(), name);
    EXPECT_EQ(call<NFSPROC3_LOOKUP>({{root(), name}}).resok().object, file);
  }
  for (const std::string& name : {std::string(), std::string("a/b"), std::string("a\0b", 3)}) {
    EXPECT_EQ(found(root(), name), NFS3ERR_ACCES);
    CREATE3args args;
    args.where = {root(), name};
    args.how.obj_attributes() = mode(0644);
    EXPECT_EQ(call<NFSPROC3_CREATE>(args).status, NFS3ERR_ACCES);
    EXPECT_EQ(call<NFSPROC3_MKDIR>({{root(), name}, {}}).status, NFS3ERR_ACCES);
    EXPECT_EQ(call<NFSPROC3_REMOVE>({{root(), name}}).status, NFS3ERR_ACCES);
  }
}

TEST_F(Nfs3Lookup, keeps_dot_and_dotdot_inside_the_export) {
  const nfs_fh3 top = root();
  const nfs_fh3 dir = mkdir(top, "dir");
  EXPECT_EQ(call<NFSPROC3_LOOKUP>({{dir, "."}}).resok().object, dir);
  EXPECT_EQ(call<NFSPROC3_LOOKUP>({{dir, ".."}}).resok().object, top);
  EXPECT_EQ(call<NFSPROC3_LOOKUP>({{top, ".."}}).resok().object, top);
}

TEST_F(Nfs3Lookup, says_why_a_name_leads_nowhere) {
  const nfs_fh3 file = create(root(), "file");
  EXPECT_EQ(found(root(), "other"), NFS3ERR_NOENT);
  EXPECT_EQ(found(file, "x"), NFS3ERR_NOTDIR);
  EXPECT_EQ(found(root(), kTooLong), NFS3ERR_NAMETOOLONG);
  EXPECT_EQ(found(nfs_fh3{}, "x"), NFS3ERR_BADHANDLE);
  const auto res = call<NFSPROC3_LOOKUP>({{root(), "other"}});
  EXPECT_TRUE(res.resfail().dir_attributes.attributes_follow);
  const nfs_fh3 closed = mkdir(root(), "closed", 0700);
  as(1000, 1000);
  EXPECT_EQ(found(closed, "x"), NFS3ERR_ACCES);
}

TEST_F(Nfs3Readlink, returns_the_text_of_a_link) {
  const std::string target = "../any text, not even a path\xff";
  const nfs_fh3 link = symlink(root(), "link", target);
  const auto res = call<NFSPROC3_READLINK>({link});
  ASSERT_EQ(res.status, NFS3_OK);
  EXPECT_EQ(res.resok().data, target);
  EXPECT_EQ(res.resok().symlink_attributes.attributes().type, NF3LNK);
  const auto refused = call<NFSPROC3_READLINK>({root()});
  EXPECT_EQ(refused.status, NFS3ERR_INVAL);
  EXPECT_TRUE(refused.resfail().symlink_attributes.attributes_follow);
}

TEST_F(Nfs3Readlink, moves_link_texts_by_chunk_both_ways) {
  PROVES("R8267-4-b", "R8267-4-d");
  channel_.reduce = true;
  const std::string target(1001, 't');
  const nfs_fh3 link = symlink(root(), "link", target);
  EXPECT_LT(channel_.last_call.size(), target.size());
  EXPECT_EQ(call<NFSPROC3_READLINK>({link}).resok().data, target);
}

TEST_F(Nfs3Create, follows_its_mode) {
  CREATE3args args;
  args.where = {root(), "file"};
  args.how.mode = GUARDED;
  args.how.obj_attributes() = mode(0600);
  const auto made = call<NFSPROC3_CREATE>(args);
  ASSERT_EQ(made.status, NFS3_OK);
  EXPECT_EQ(made.resok().obj_attributes.attributes().mode, 0600u);
  EXPECT_TRUE(made.resok().dir_wcc.before.attributes_follow);
  EXPECT_TRUE(made.resok().dir_wcc.after.attributes_follow);

  const auto again = call<NFSPROC3_CREATE>(args);
  EXPECT_EQ(again.status, NFS3ERR_EXIST);
  EXPECT_TRUE(again.resfail().dir_wcc.after.attributes_follow);

  ASSERT_EQ(write(made.resok().obj.handle(), 0, "data").status, NFS3_OK);
  args.how.mode = UNCHECKED;
  args.how.obj_attributes() = {};
  args.how.obj_attributes().size.set_it = true;
  args.how.obj_attributes().size.size() = 0;
  const auto reused = call<NFSPROC3_CREATE>(args);
  ASSERT_EQ(reused.status, NFS3_OK);
  EXPECT_EQ(reused.resok().obj, made.resok().obj);
  EXPECT_EQ(reused.resok().obj_attributes.attributes().size, 0u);
}

TEST_F(Nfs3Create, repeats_an_exclusive_one_for_the_same_client_only) {
  CREATE3args args;
  args.where = {root(), "file"};
  args.how.mode = EXCLUSIVE;
  args.how.verf() = {std::byte{1}, std::byte{2}};
  const auto made = call<NFSPROC3_CREATE>(args);
  ASSERT_EQ(made.status, NFS3_OK);
  const auto repeated = call<NFSPROC3_CREATE>(args);
  ASSERT_EQ(repeated.status, NFS3_OK);
  EXPECT_EQ(repeated.resok().obj, made.resok().obj);
  args.how.verf()[0] = std::byte{9};
  EXPECT_EQ(call<NFSPROC3_CREATE>(args).status, NFS3ERR_EXIST);
}

TEST_F(Nfs3Create, refuses_names_where_they_may_not_be) {
  const nfs_fh3 file = create(root(), "file");
  const nfs_fh3 closed = mkdir(root(), "closed", 0755);
  EXPECT_EQ(call<NFSPROC3_MKDIR>({{file, "x"}, {}}).status, NFS3ERR_NOTDIR);
  EXPECT_EQ(call<NFSPROC3_MKDIR>({{root(), "file"}, {}}).status, NFS3ERR_EXIST);
  EXPECT_EQ(call<NFSPROC3_MKDIR>({{root(), kTooLong}, {}}).status, NFS3ERR_NAMETOOLONG);
  EXPECT_EQ(call<NFSPROC3_MKDIR>({{root(), "."}, {}}).status, NFS3ERR_EXIST);
  EXPECT_EQ(call<NFSPROC3_SYMLINK>({{root(), "file"}, {{}, "t"}}).status, NFS3ERR_EXIST);
  sattr3 odd;
  odd.atime.set_it = SET_TO_CLIENT_TIME;
  odd.atime.atime() = {0, 4'000'000'000};
  EXPECT_EQ(call<NFSPROC3_MKDIR>({{root(), "odd"}, odd}).status, NFS3ERR_INVAL);
  EXPECT_EQ(call<NFSPROC3_SYMLINK>({{root(), "odd"}, {odd, "t"}}).status, NFS3ERR_INVAL);
  as(1000, 1000);
  EXPECT_EQ(call<NFSPROC3_MKDIR>({{closed, "x"}, {}}).status, NFS3ERR_ACCES);
}

TEST_F(Nfs3Symlink, takes_texts_that_READLINK_can_return) {
  const auto linking = [this](const std::string& target) {
    return call<NFSPROC3_SYMLINK>({{root(), "l"}, {{}, target}}).status;
  };
  EXPECT_EQ(linking(std::string(4097, 't')), NFS3ERR_NAMETOOLONG);
  EXPECT_EQ(linking(std::string("a\0b", 3)), NFS3ERR_INVAL);
  EXPECT_EQ(found(root(), "l"), NFS3ERR_NOENT);
}

TEST_F(Nfs3Mknod, makes_special_files_of_every_kind) {
  MKNOD3args args;
  args.where = {root(), "node"};
  for (const ftype3 type : {NF3REG, NF3DIR, NF3LNK}) {
    args.what.type = type;
    EXPECT_EQ(call<NFSPROC3_MKNOD>(args).status, NFS3ERR_BADTYPE) << type;
  }
  as(1000, 1000);
  args.what.type = NF3CHR;
  args.what.device() = {mode(0600), {1, 3}};
  EXPECT_EQ(call<NFSPROC3_MKNOD>(args).status, NFS3ERR_ACCES);
  args.what = {};
  args.what.type = NF3FIFO;
  args.what.pipe_attributes() = mode(0600);
  EXPECT_EQ(call<NFSPROC3_MKNOD>(args).status, NFS3_OK);
}

TEST_F(Nfs3Remove, removes_names_as_RMDIR_does) {
  create(root(), "file");
  const nfs_fh3 dir = mkdir(root(), "dir");
  create(dir, "inside");
  EXPECT_EQ(call<NFSPROC3_REMOVE>({{root(), "dir"}}).status, NFS3ERR_ACCES);
  EXPECT_EQ(call<NFSPROC3_REMOVE>({{root(), "none"}}).status, NFS3ERR_NOENT);
  EXPECT_EQ(call<NFSPROC3_RMDIR>({{root(), "file"}}).status, NFS3ERR_NOTDIR);
  EXPECT_EQ(call<NFSPROC3_RMDIR>({{root(), "dir"}}).status, NFS3ERR_NOTEMPTY);
  EXPECT_EQ(call<NFSPROC3_RMDIR>({{root(), "none"}}).status, NFS3ERR_NOENT);
  EXPECT_EQ(call<NFSPROC3_RMDIR>({{root(), "."}}).status, NFS3ERR_INVAL);
  const auto removed = call<NFSPROC3_REMOVE>({{root(), "file"}});
  EXPECT_EQ(removed.status, NFS3_OK);
  EXPECT_TRUE(removed.resok().dir_wcc.before.attributes_follow);
  EXPECT_EQ(found(root(), "file"), NFS3ERR_NOENT);
  EXPECT_EQ(call<NFSPROC3_REMOVE>({{dir, "inside"}}).status, NFS3_OK);
  EXPECT_EQ(call<NFSPROC3_RMDIR>({{root(), "dir"}}).status, NFS3_OK);
  EXPECT_EQ(found(root(), "dir"), NFS3ERR_NOENT);
}

TEST_F(Nfs3Rename, moves_names_and_keeps_their_handles) {
  const nfs_fh3 file = create(root(), "file");
  const nfs_fh3 dir = mkdir(root(), "dir");
  const auto res = call<NFSPROC3_RENAME>({{root(), "file"}, {dir, "moved"}});
  ASSERT_EQ(res.status, NFS3_OK);
  EXPECT_TRUE(res.resok().fromdir_wcc.before.attributes_follow);
  EXPECT_TRUE(res.resok().todir_wcc.after.attributes_follow);
  EXPECT_EQ(found(root(), "file"), NFS3ERR_NOENT);
  EXPECT_EQ(call<NFSPROC3_LOOKUP>({{dir, "moved"}}).resok().object, file);
  create(root(), "second");
  EXPECT_EQ(renamed(root(), "second", dir, "moved"), NFS3_OK);
  EXPECT_EQ(call<NFSPROC3_GETATTR>({file}).status, NFS3ERR_STALE);
}

TEST_F(Nfs3Rename, leaves_names_that_cannot_move) {
  create(root(), "file");
  const nfs_fh3 dir = mkdir(root(), "dir");
  const nfs_fh3 inner = mkdir(dir, "inner");
  EXPECT_EQ(renamed(root(), "none", dir, "x"), NFS3ERR_NOENT);
  EXPECT_EQ(renamed(root(), "file", root(), "dir"), NFS3ERR_EXIST);
  EXPECT_EQ(renamed(root(), "dir", inner, "x"), NFS3ERR_INVAL);
  EXPECT_EQ(renamed(root(), "file", root(), kTooLong), NFS3ERR_NAMETOOLONG);
  EXPECT_EQ(renamed(root(), "file", nfs_fh3{}, "x"), NFS3ERR_BADHANDLE);
  EXPECT_EQ(renamed(root(), "file", mounted("/odd"), "x"), NFS3ERR_XDEV);
  EXPECT_EQ(found(root(), "file"), NFS3_OK);
}

TEST_F(Nfs3Link, gives_a_file_another_name) {
  const nfs_fh3 file = create(root(), "file");
  const auto res = call<NFSPROC3_LINK>({file, {root(), "second"}});
  ASSERT_EQ(res.status, NFS3_OK);
  EXPECT_EQ(res.resok().file_attributes.attributes().nlink, 2u);
  EXPECT_TRUE(res.resok().linkdir_wcc.after.attributes_follow);
  EXPECT_EQ(call<NFSPROC3_LOOKUP>({{root(), "second"}}).resok().object, file);
  EXPECT_EQ(linked(file, root(), "second"), NFS3ERR_EXIST);
  EXPECT_EQ(linked(file, file, "x"), NFS3ERR_NOTDIR);
  EXPECT_EQ(linked(file, mounted("/odd"), "x"), NFS3ERR_XDEV);
  EXPECT_EQ(linked(mkdir(root(), "dir"), root(), "x"), NFS3ERR_INVAL);
}

}  // namespace
}  // namespace stag::nfs
