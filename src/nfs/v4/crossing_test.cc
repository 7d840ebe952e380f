// Exports below others, at any depth: entered by name, left by LOOKUPP, and listed as what they are
// (RFC 8881 7.5, 5.8.2.23).
#include "testing/nfs/nfs4_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

// /srv has the folders a/b and c/b; /srv/a/b and /srv/x/y are other exports. What a/b covers has a
// file "covered", the export a file "inside".
class Nfs4Crossing : public Nfs4Served {
 protected:
  void SetUp() override {
    Nfs4Served::SetUp();
    for (const auto& [path, name] : {std::pair{"", "a"}, {"a", "b"}, {"", "c"}, {"c", "b"}})
      make_folder(path, name);
    make_file({"data", "a", "b"}, "covered");
    nfs::ExportOptions open;
    open.root_squash = false;
    nfs::ExportOptions other = open;
    other.flavors = {oncrpc::AuthFlavor::AUTH_NONE};
    nfs::Exports exports;
    STAG_CHECK(exports.add(1, {"/srv", store_, open}).ok());
    STAG_CHECK(exports.add(2, {"/srv/a/b", fixed_store_, open}).ok());
    STAG_CHECK(exports.add(3, {"/srv/x/y", third_store_, open}).ok());
    STAG_CHECK(exports.add(4, {"/srv/a/none", third_store_, other}).ok());
    context_.exports.replace(std::move(exports));
    make_file({"srv", "a", "b"}, "inside");
  }
  void make_folder(std::string_view below, std::string name) {
    std::vector<Op> operations{putrootfh(), lookup("data")};
    if (!below.empty()) operations.push_back(lookup(std::string(below)));
    v4::CREATE4args args;
    args.objtype.type = v4::NF4DIR;
    args.objname = std::move(name);
    operations.push_back(op(v4::OP_CREATE, &Op::opcreate, std::move(args)));
    ASSERT_EQ(run(std::move(operations)).status, v4::NFS4_OK);
  }
  void make_file(std::initializer_list<const char*> folder, const std::string& name) {
    v4::OPEN4args args = open_args(name, v4::OPEN4_SHARE_ACCESS_BOTH, true);
    ASSERT_EQ(run({putfh(walk(folder)), op(v4::OP_OPEN, &Op::opopen, std::move(args))}).status,
              v4::NFS4_OK);
  }
  v4::nfsstat4 look(const v4::nfs_fh4& folder, const std::string& name) {
    return run({putfh(folder), lookup(name)}).status;
  }
  v4::nfs_fh4 above(const v4::nfs_fh4& folder) {
    const Res results = run({putfh(folder), op(v4::OP_LOOKUPP), getfh()});
    EXPECT_EQ(results.status, v4::NFS4_OK);
    if (results.status != v4::NFS4_OK) return {};
    return results.resarray[2].opgetfh().resok4().object;
  }
  std::string values(const v4::nfs_fh4& of, const v4::bitmap4& asked) {
    const Res results = run({putfh(of), getattr(asked)});
    EXPECT_EQ(results.status, v4::NFS4_OK);
    return text(results.resarray[1].opgetattr().resok4().obj_attributes.attr_vals);
  }
  std::vector<v4::entry4> list(const v4::nfs_fh4& folder, const v4::bitmap4& asked) {
    v4::READDIR4args args;
    args.dircount = args.maxcount = 8192;
    args.attr_request = asked;
    const Res results = run({putfh(folder), op(v4::OP_READDIR, &Op::opreaddir, args)});
    EXPECT_EQ(results.status, v4::NFS4_OK);
    if (results.status != v4::NFS4_OK) return {};
    return results.resarray[1].opreaddir().resok4().reply.entries;
  }

  const std::shared_ptr<vfs::MemoryFileSystem> third_store_ =
      std::make_shared<vfs::MemoryFileSystem>();
};

TEST_F(Nfs4Crossing, enters_an_export_by_its_name_at_any_depth) {
  const v4::nfs_fh4 inside = walk({"srv", "a", "b"});
  EXPECT_EQ(look(inside, "inside"), v4::NFS4_OK);
  EXPECT_EQ(look(inside, "covered"), v4::NFS4ERR_NOENT);
  // Also with nothing but the filehandle of the folder above.
  EXPECT_EQ(run({putfh(walk({"srv", "a"})), lookup("b"), lookup("inside")}).status, v4::NFS4_OK);
}

TEST_F(Nfs4Crossing, enters_nothing_by_the_same_name_elsewhere) {
  EXPECT_EQ(run({putfh(walk({"srv", "c"})), lookup("b"), lookup("inside")}).status,
            v4::NFS4ERR_NOENT);
  // What is a path to an export is said by names: another folder takes the place of this one.
  const v4::nfs_fh4 a = walk({"srv", "a"}), root = walk({"srv"});
  const Res renamed = run({putfh(root), op(v4::OP_SAVEFH), putfh(root),
                           op(v4::OP_RENAME, &Op::oprename, v4::RENAME4args{"a", "z"})});
  ASSERT_EQ(renamed.status, v4::NFS4_OK);
  EXPECT_EQ(run({putfh(a), lookup("b"), lookup("covered")}).status, v4::NFS4_OK);
  EXPECT_EQ(run({putfh(root), lookup("a"), lookup("b"), lookup("inside")}).status, v4::NFS4_OK);
}

TEST_F(Nfs4Crossing, leaves_an_export_into_the_folder_above) {
  EXPECT_EQ(above(walk({"srv", "a", "b"})), walk({"srv", "a"}));
  EXPECT_EQ(above(walk({"srv", "a"})), walk({"srv"}));
}

TEST_F(Nfs4Crossing, finds_folders_that_only_the_paths_of_exports_speak_of) {
  const v4::nfs_fh4 y = walk({"srv", "x", "y"});
  EXPECT_EQ(above(y), walk({"srv", "x"}));
  EXPECT_EQ(above(walk({"srv", "x"})), walk({"srv"}));
  EXPECT_EQ(look(walk({"srv"}), "w"), v4::NFS4ERR_NOENT);
  EXPECT_EQ(look(walk({"srv", "x"}), "w"), v4::NFS4ERR_NOENT);
}

TEST_F(Nfs4Crossing, lists_an_export_as_what_a_LOOKUP_finds) {
  const v4::bitmap4 asked{1u << v4::FATTR4_FSID | 1u << v4::FATTR4_FILEHANDLE,
                          1u << (v4::FATTR4_MOUNTED_ON_FILEID - 32)};
  const v4::nfs_fh4 a = walk({"srv", "a"});
  const auto entries = list(a, asked);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].name, "b");
  EXPECT_EQ(text(entries[0].attrs.attr_vals), values(walk({"srv", "a", "b"}), asked));
  EXPECT_NE(values(walk({"srv", "a", "b"}), {1u << v4::FATTR4_FSID}),
            values(a, {1u << v4::FATTR4_FSID}));
  // Elsewhere a folder of that name is what it is.
  const auto others = list(walk({"srv", "c"}), asked);
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(text(others[0].attrs.attr_vals), values(walk({"srv", "c", "b"}), asked));
}

TEST_F(Nfs4Crossing, tells_in_a_listing_that_an_export_may_not_be_entered) {
  v4::CREATE4args args;
  args.objtype.type = v4::NF4DIR;
  args.objname = "none";
  ASSERT_EQ(run({putfh(walk({"srv", "a"})), op(v4::OP_CREATE, &Op::opcreate, args)}).status,
            v4::NFS4_OK);
  const auto entries = list(walk({"srv", "a"}), {1u << v4::FATTR4_TYPE});
  ASSERT_EQ(entries.size(), 2u);
  const auto& none = entries[entries[0].name == "none" ? 0 : 1];
  EXPECT_TRUE(none.attrs.attrmask.empty());
  const auto told =
      list(walk({"srv", "a"}), {1u << v4::FATTR4_TYPE | 1u << v4::FATTR4_RDATTR_ERROR});
  const auto& why = told[told[0].name == "none" ? 0 : 1];
  EXPECT_EQ(why.attrs.attrmask, (v4::bitmap4{1u << v4::FATTR4_RDATTR_ERROR}));
}

// NFS4ERR_NOENT would be kept by clients as "there is no such name".
TEST_F(Nfs4Crossing, opens_no_name_that_leads_to_an_export) {
  const auto opened = [&](std::initializer_list<const char*> folder, const std::string& name,
                          bool create = false) {
    v4::OPEN4args args = open_args(name, v4::OPEN4_SHARE_ACCESS_READ, create);
    return run({putfh(walk(folder)), op(v4::OP_OPEN, &Op::opopen, std::move(args))}).status;
  };
  EXPECT_EQ(opened({"srv"}, "x"), v4::NFS4ERR_ISDIR);
  EXPECT_EQ(opened({"srv"}, "x", true), v4::NFS4ERR_ISDIR);
  EXPECT_EQ(opened({"srv", "x"}, "y"), v4::NFS4ERR_ISDIR);
  EXPECT_EQ(opened({"srv", "x"}, "w"), v4::NFS4ERR_NOENT);
  EXPECT_EQ(opened({"srv", "a"}, "b"), v4::NFS4ERR_ISDIR);
  EXPECT_EQ(opened({"srv", "a"}, "none"), v4::NFS4ERR_WRONGSEC);
  EXPECT_EQ(opened({"srv", "c"}, "none"), v4::NFS4ERR_NOENT);
  // Where it leads nowhere else, it is the folder's own.
  EXPECT_EQ(opened({"srv", "a", "b"}, "inside"), v4::NFS4_OK);
}

TEST_F(Nfs4Crossing, tells_the_flavors_of_an_export_at_any_depth) {
  EXPECT_EQ(look(walk({"srv", "a"}), "none"), v4::NFS4ERR_WRONGSEC);
  const Res results = run(
      {putfh(walk({"srv", "a"})), op(v4::OP_SECINFO, &Op::opsecinfo, v4::SECINFO4args{"none"})});
  ASSERT_EQ(results.status, v4::NFS4_OK);
  const auto& flavors = results.resarray[1].opsecinfo().resok4();
  ASSERT_EQ(flavors.size(), 1u);
  EXPECT_EQ(flavors[0].flavor, 0u);
}

// RFC 8881 7.3: a client must get there.
TEST_F(Nfs4Crossing, leads_through_exports_that_are_closed_to_a_client_to_those_that_are_not) {
  nfs::ExportOptions open;
  open.root_squash = false;
  const std::vector<nfs::ClientRule> elsewhere{*nfs::make_client_rule("10.0.0.0/8", open)};
  nfs::Exports exports;
  STAG_CHECK(exports.add(1, {"/", store_, open, elsewhere}).ok());
  STAG_CHECK(exports.add(2, {"/a", third_store_, open, elsewhere}).ok());
  STAG_CHECK(exports.add(3, {"/a/b/c", fixed_store_, open}).ok());
  STAG_CHECK(exports.add(4, {"/closed", third_store_, open, elsewhere}).ok());
  context_.exports.replace(std::move(exports));
  const v4::nfs_fh4 c = walk({"a", "b", "c"});
  EXPECT_EQ(look(c, "inside"), v4::NFS4_OK);
  EXPECT_EQ(above(c), walk({"a", "b"}));
  EXPECT_EQ(above(walk({"a", "b"})), walk({"a"}));
  EXPECT_EQ(look(walk({"a"}), "anything"), v4::NFS4ERR_NOENT);
  EXPECT_EQ(look(walk({}), "closed"), v4::NFS4ERR_ACCESS);
  const Res told =
      run({putfh(walk({})), op(v4::OP_SECINFO, &Op::opsecinfo, v4::SECINFO4args{"a"})});
  ASSERT_EQ(told.status, v4::NFS4_OK);
  EXPECT_FALSE(told.resarray[1].opsecinfo().resok4().empty());
}

}  // namespace
}  // namespace stag::nfs::nfs4
