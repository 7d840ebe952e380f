// Access control lists and owners as attributes (RFC 8881 sections 5.9 and 6).
#include "nfs/acl/acl_map.h"
#include "nfs/v4/attributes/attributes.h"
#include "testing/nfs/nfs4_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using Tag = vfs::AclEntry::Tag;

constexpr std::uint32_t kAllow = v4::ACE4_ACCESS_ALLOWED_ACE_TYPE;

vfs::Acl acl_of(std::vector<vfs::AclEntry> entries) {
  return *vfs::Acl::from(std::move(entries));
}

class Nfs4Acls : public Nfs4Served {
 protected:
  static constexpr std::uint32_t kAclBit = 1u << v4::FATTR4_ACL;

  static v4::fattr4 fattr_of(const Aces& aces) {
    xdr::Encoder encoder;
    encoder.u32(static_cast<std::uint32_t>(aces.size()));
    for (const v4::nfsace4& ace : aces) encode(encoder, ace);
    v4::fattr4 attributes;
    attributes.attrmask = {kAclBit};
    attributes.attr_vals = std::move(encoder).finish().rope();
    return attributes;
  }
  Res set(const v4::nfs_fh4& object, const Aces& aces) {
    v4::SETATTR4args args;
    args.obj_attributes = fattr_of(aces);
    return run({putfh(object), op(v4::OP_SETATTR, &Op::opsetattr, args)});
  }
  Aces get(const v4::nfs_fh4& object) {
    const Res results = run({putfh(object), getattr({kAclBit})});
    EXPECT_EQ(results.status, v4::NFS4_OK);
    const v4::fattr4& found = results.resarray[1].opgetattr().resok4().obj_attributes;
    EXPECT_EQ(found.attrmask, v4::bitmap4{kAclBit});
    xdr::Decoder values(found.attr_vals.flatten());
    std::uint32_t count = 0;
    EXPECT_TRUE(values.u32(count));
    Aces aces(count);
    for (v4::nfsace4& ace : aces) EXPECT_TRUE(decode(values, ace));
    EXPECT_TRUE(values.finish());
    return aces;
  }
};

TEST_F(Nfs4Acls, are_set_read_and_honoured) {
  const v4::nfs_fh4 file = create("file").handle;
  const Aces aces = to_aces({acl_of({{Tag::Owner, 0, 6},
                                     {Tag::User, 1000, 4},
                                     {Tag::OwningGroup, 0, 0},
                                     {Tag::Mask, 0, 7},
                                     {Tag::Others, 0, 0}}),
                             {}},
                            false);
  const Res results = set(file, aces);
  ASSERT_EQ(results.status, v4::NFS4_OK);
  EXPECT_EQ(results.resarray[1].opsetattr().attrsset, v4::bitmap4{kAclBit});
  EXPECT_EQ(get(file), aces);
  as(1000, 1000);
  set_up_session("another client");
  EXPECT_EQ(run({putfh(file), read_op({}, 0, 1)}).status, v4::NFS4_OK);
  EXPECT_EQ(run({putfh(file), write_op({}, 0, "x")}).status, v4::NFS4ERR_ACCESS);
  EXPECT_EQ(set(file, aces).status, v4::NFS4ERR_PERM) << "only the owner sets it";
}

TEST_F(Nfs4Acls, are_refused_when_they_are_not_ones) {
  const v4::nfs_fh4 file = create("file").handle;
  const Aces before = get(file);
  EXPECT_EQ(set(file, {{kAllow, 0, 0, "nobody we know"}}).status, v4::NFS4ERR_BADOWNER);
  EXPECT_EQ(set(file, Aces(kMaxAces + 1, {kAllow, 0, 0, "EVERYONE@"})).status, v4::NFS4ERR_INVAL);
  EXPECT_EQ(get(file), before);
}

TEST_F(Nfs4Acls, are_given_to_what_is_created) {
  v4::CREATE4args args;
  args.objtype.type = v4::NF4DIR;
  args.objname = "dir";
  const Aces aces = to_aces({vfs::Acl::of_mode(0750), vfs::Acl::of_mode(0700)}, true);
  args.createattrs = fattr_of(aces);
  const Res results =
      run({putrootfh(), lookup("data"), op(v4::OP_CREATE, &Op::opcreate, args), getfh()});
  ASSERT_EQ(results.status, v4::NFS4_OK);
  EXPECT_EQ(results.resarray[2].opcreate().resok4().attrset, v4::bitmap4{kAclBit});
  EXPECT_EQ(get(results.resarray[3].opgetfh().resok4().object), aces);
}

TEST_F(Nfs4Acls, are_not_of_the_pseudo_file_system) {
  const Res results = run({putfh(walk({"srv"})), getattr({kAclBit})});
  ASSERT_EQ(results.status, v4::NFS4_OK);
  EXPECT_EQ(results.resarray[1].opgetattr().resok4().obj_attributes.attrmask, v4::bitmap4{});
}

}  // namespace
}  // namespace stag::nfs::nfs4
