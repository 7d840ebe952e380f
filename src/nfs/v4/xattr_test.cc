// Extended attributes (RFC 8276 section 8).
#include <algorithm>

#include "testing/nfs/nfs4_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

class Nfs4Xattrs : public Nfs4Served {
 protected:
  Nfs4Xattrs() { minor_ = 2; }

  static Op set_op(const std::string& name, const std::string& value,
                   v4::setxattr_option4 option = v4::SETXATTR4_EITHER) {
    return op(v4::OP_SETXATTR, &Op::opsetxattr,
              v4::SETXATTR4args{option, name, Rope::copy_of(bytes_of(value))});
  }
  static Op get_op(const std::string& name) {
    return op(v4::OP_GETXATTR, &Op::opgetxattr, v4::GETXATTR4args{name});
  }
  static Op remove_op(const std::string& name) {
    return op(v4::OP_REMOVEXATTR, &Op::opremovexattr, v4::REMOVEXATTR4args{name});
  }
  static Op list_op(std::uint64_t cookie, std::uint32_t room) {
    return op(v4::OP_LISTXATTRS, &Op::oplistxattrs, v4::LISTXATTRS4args{cookie, room});
  }
  static std::vector<std::string> sorted(std::vector<std::string> names) {
    std::ranges::sort(names);
    return names;
  }
  v4::nfsstat4 set(const v4::nfs_fh4& of, const std::string& name, const std::string& value,
                   v4::setxattr_option4 option = v4::SETXATTR4_EITHER) {
    return run({putfh(of), set_op(name, value, option)}).status;
  }
  std::uint64_t change_of(const v4::nfs_fh4& of) {
    const Res results = run({putfh(of), getattr({1u << v4::FATTR4_CHANGE})});
    xdr::Decoder values(
        results.resarray[1].opgetattr().resok4().obj_attributes.attr_vals.flatten());
    std::uint64_t change = 0;
    EXPECT_TRUE(values.u64(change));
    return change;
  }
};

TEST_F(Nfs4Xattrs, are_set_read_listed_and_removed) {
  const v4::nfs_fh4 file = create("file").handle;
  ASSERT_EQ(set(file, "one", std::string("a\0b", 3)), v4::NFS4_OK);
  ASSERT_EQ(set(file, "two", ""), v4::NFS4_OK);
  const Res got = run({putfh(file), get_op("one"), get_op("two")});
  ASSERT_EQ(got.status, v4::NFS4_OK);
  EXPECT_EQ(text(got.resarray[1].opgetxattr().gxr_value()), std::string("a\0b", 3));
  EXPECT_EQ(text(got.resarray[2].opgetxattr().gxr_value()), "");
  const Res listed = run({putfh(file), list_op(0, 1000)});
  ASSERT_EQ(listed.status, v4::NFS4_OK);
  const v4::LISTXATTRS4resok& list = listed.resarray[1].oplistxattrs().lxr_value();
  EXPECT_EQ(sorted(list.lxr_names), (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(list.lxr_eof);
  EXPECT_EQ(run({putfh(file), remove_op("one"), get_op("one")}).status, v4::NFS4ERR_NOXATTR);
  EXPECT_EQ(run({putfh(file), remove_op("one")}).status, v4::NFS4ERR_NOXATTR);
}

TEST_F(Nfs4Xattrs, are_created_or_replaced_as_asked) {
  const v4::nfs_fh4 file = create("file").handle;
  EXPECT_EQ(set(file, "name", "x", v4::SETXATTR4_REPLACE), v4::NFS4ERR_NOXATTR);
  EXPECT_EQ(set(file, "name", "x", v4::SETXATTR4_CREATE), v4::NFS4_OK);
  EXPECT_EQ(set(file, "name", "x", v4::SETXATTR4_CREATE), v4::NFS4ERR_EXIST);
  EXPECT_EQ(set(file, "name", "y", v4::SETXATTR4_REPLACE), v4::NFS4_OK);
}

TEST_F(Nfs4Xattrs, change_the_change_attribute_and_tell_so) {
  const v4::nfs_fh4 file = create("file").handle;
  const std::uint64_t before = change_of(file);
  const Res results = run({putfh(file), set_op("name", "x")});
  ASSERT_EQ(results.status, v4::NFS4_OK);
  const v4::change_info4& info = results.resarray[1].opsetxattr().sxr_info();
  EXPECT_TRUE(info.atomic);
  EXPECT_EQ(info.before, before);
  EXPECT_EQ(info.after, change_of(file));
  EXPECT_GT(info.after, info.before);
  const Res removed = run({putfh(file), remove_op("name")});
  EXPECT_EQ(removed.resarray[1].opremovexattr().rxr_info().before, info.after);
  EXPECT_EQ(removed.resarray[1].opremovexattr().rxr_info().after, change_of(file));
}

TEST_F(Nfs4Xattrs, are_refused_with_the_status_of_the_fault) {
  const v4::nfs_fh4 file = create("file").handle;
  EXPECT_EQ(set(file, "", "x"), v4::NFS4ERR_INVAL);
  EXPECT_EQ(set(file, std::string(300, 'n'), "x"), v4::NFS4ERR_NAMETOOLONG);
  EXPECT_EQ(set(file, "name", std::string(70'000, 'v')), v4::NFS4ERR_XATTR2BIG);
  EXPECT_EQ(set(walk({"srv", "fixed"}), "name", "x"), v4::NFS4ERR_ROFS);
  EXPECT_EQ(run({putfh(walk({"srv", "fixed"})), remove_op("name")}).status, v4::NFS4ERR_ROFS);
  EXPECT_EQ(set(walk({"srv"}), "name", "x"), v4::NFS4ERR_NOTSUPP);
  v4::CREATE4args args;
  args.objtype.type = v4::NF4FIFO;
  args.objname = "fifo";
  EXPECT_EQ(run({putrootfh(), lookup("data"), op(v4::OP_CREATE, &Op::opcreate, args),
                 set_op("name", "x")})
                .status,
            v4::NFS4ERR_WRONG_TYPE);
}

TEST_F(Nfs4Xattrs, are_listed_as_none_of_what_can_have_none) {
  for (const v4::nfs_ftype4 type : {v4::NF4FIFO, v4::NF4SOCK, v4::NF4LNK}) {
    v4::CREATE4args args;
    args.objtype.type = type;
    if (type == v4::NF4LNK) args.objtype.linkdata() = Rope::copy_of(bytes_of("target"));
    args.objname = "object " + std::to_string(type);
    Res results = run(
        {putrootfh(), lookup("data"), op(v4::OP_CREATE, &Op::opcreate, args), list_op(0, 1000)});
    ASSERT_EQ(results.status, v4::NFS4_OK) << args.objname;
    const v4::LISTXATTRS4resok& list = results.resarray[3].oplistxattrs().lxr_value();
    EXPECT_TRUE(list.lxr_names.empty());
    EXPECT_TRUE(list.lxr_eof);
  }
}

TEST_F(Nfs4Xattrs, are_for_those_who_may_read_and_write) {
  const v4::nfs_fh4 file = create("file").handle;
  ASSERT_EQ(set(file, "name", "x"), v4::NFS4_OK);
  as(1000, 1000);
  set_up_session("another client");
  EXPECT_EQ(set(file, "name", "y"), v4::NFS4ERR_ACCESS);
  EXPECT_EQ(run({putfh(file), remove_op("name")}).status, v4::NFS4ERR_ACCESS);
}

TEST_F(Nfs4Xattrs, are_told_of_by_ACCESS) {
  const v4::nfs_fh4 file = create("file").handle;
  constexpr std::uint32_t kAll = v4::ACCESS4_XAREAD | v4::ACCESS4_XAWRITE | v4::ACCESS4_XALIST;
  const auto access = [&](std::uint32_t asked) {
    const Res results =
        run({putfh(file), op(v4::OP_ACCESS, &Op::opaccess, v4::ACCESS4args{asked})});
    return results.resarray[1].opaccess().resok4();
  };
  EXPECT_EQ(access(kAll), (v4::ACCESS4resok{kAll, kAll}));
  EXPECT_EQ(access(v4::ACCESS4_XALIST), (v4::ACCESS4resok{v4::ACCESS4_XALIST, v4::ACCESS4_XALIST}));
  run({putfh(file), op(v4::OP_SETATTR, &Op::opsetattr, [] {
         v4::SETATTR4args args;
         args.obj_attributes.attrmask = {0, 1u << (v4::FATTR4_MODE - 32)};
         args.obj_attributes.attr_vals = Rope::copy_of(
             std::array<std::byte, 4>{std::byte{0}, std::byte{0}, std::byte{1}, std::byte{0x84}});
         return args;
       }())});
  as(1000, 1000);
  set_up_session("another client");
  EXPECT_EQ(access(kAll | v4::ACCESS4_READ),
            (v4::ACCESS4resok{kAll | v4::ACCESS4_READ,
                              v4::ACCESS4_XAREAD | v4::ACCESS4_XALIST | v4::ACCESS4_READ}));
  minor_ = 1;
  EXPECT_EQ(access(kAll | v4::ACCESS4_READ),
            (v4::ACCESS4resok{v4::ACCESS4_READ, v4::ACCESS4_READ}));
}

TEST_F(Nfs4Xattrs, are_an_attribute_of_file_systems_in_version_4_2) {
  constexpr std::uint32_t kBit = 1u << (v4::FATTR4_XATTR_SUPPORT - 64);
  const auto asked = [&] {
    const Res results = run({putfh(walk({"data"})), getattr({0, 0, kBit})});
    return results.resarray[1].opgetattr().resok4().obj_attributes.attrmask;
  };
  EXPECT_EQ(asked(), (v4::bitmap4{0, 0, kBit}));
  minor_ = 1;
  EXPECT_EQ(asked(), v4::bitmap4{});
}

TEST_F(Nfs4Xattrs, are_listed_in_pages_as_long_as_asked_for) {
  const v4::nfs_fh4 file = create("file").handle;
  std::vector<std::string> expected;
  for (char c = 'a'; c < 'k'; ++c) {
    expected.push_back(std::string(10, c));
    ASSERT_EQ(set(file, expected.back(), "x"), v4::NFS4_OK);
  }
  std::vector<std::string> names;
  std::uint64_t cookie = 0;
  for (bool eof = false; !eof;) {
    const Res results = run({putfh(file), list_op(cookie, 16 + 3 * 16)});
    ASSERT_EQ(results.status, v4::NFS4_OK);
    const v4::LISTXATTRS4resok& page = results.resarray[1].oplistxattrs().lxr_value();
    ASSERT_LE(page.lxr_names.size(), 3u);
    names.insert(names.end(), page.lxr_names.begin(), page.lxr_names.end());
    cookie = page.lxr_cookie;
    eof = page.lxr_eof;
  }
  EXPECT_EQ(sorted(names), expected);
  EXPECT_EQ(run({putfh(file), list_op(0, 16 + 15)}).status, v4::NFS4ERR_TOOSMALL);
  EXPECT_EQ(run({putfh(file), list_op(0, 15)}).status, v4::NFS4ERR_TOOSMALL);
  EXPECT_TRUE(
      run({putfh(file), list_op(~0ull, 100)}).resarray[1].oplistxattrs().lxr_value().lxr_eof);
}

// As a client does that removes all of them page by page.
TEST_F(Nfs4Xattrs, are_all_listed_that_stay_while_others_go_between_two_pages) {
  const v4::nfs_fh4 file = create("file").handle;
  for (char c = 'a'; c < 'k'; ++c) ASSERT_EQ(set(file, std::string(10, c), "x"), v4::NFS4_OK);
  std::uint64_t cookie = 0;
  std::size_t removed = 0;
  for (bool eof = false; !eof;) {
    const Res results = run({putfh(file), list_op(cookie, 16 + 3 * 16)});
    ASSERT_EQ(results.status, v4::NFS4_OK);
    const v4::LISTXATTRS4resok& page = results.resarray[1].oplistxattrs().lxr_value();
    for (const std::string& name : page.lxr_names) {
      ASSERT_EQ(run({putfh(file), remove_op(name)}).status, v4::NFS4_OK);
      ++removed;
    }
    cookie = page.lxr_cookie;
    eof = page.lxr_eof;
  }
  EXPECT_EQ(removed, 10u);
}

}  // namespace
}  // namespace stag::nfs::nfs4
