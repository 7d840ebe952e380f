// Access control lists of POSIX by version 4: on our own server, and on one that has what POSIX
// cannot say.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "nfs/client/acl.h"
#include "testing/nfs/lying_server.h"
#include "testing/nfs/nfs4_client_world.h"

namespace stag::nfs::client {
namespace {

using testing::Compound4Results;
using testing::LyingServer;

const std::vector<AclEntry> kForCarol{{AclEntry::kUserObject, 0, 6},  {AclEntry::kUser, 1001, 6},
                                      {AclEntry::kGroupObject, 0, 4}, {AclEntry::kGroup, 1002, 4},
                                      {AclEntry::kMask, 0, 6},        {AclEntry::kOther, 0, 0}};

class Nfs4ClientAcls : public ::testing::TestWithParam<std::uint32_t>,
                       public testing::Nfs4ClientWorld {
 protected:
  Nfs4ClientAcls() : Nfs4ClientWorld(GetParam()) {}

  template <class T>
  T must(Task<Outcome<T>> task) {
    Outcome<T> outcome = run(std::move(task));
    if (!outcome) ADD_FAILURE() << outcome.error().sentence;
    return outcome ? std::move(*outcome) : T{};
  }
  Handle file() { return must(files().create(files().root(), "file", {.mode = 0640})).handle; }
  Handle directory() { return must(files().mkdir(files().root(), "dir", {.mode = 0750})).handle; }
  std::uint32_t mode(const Handle& of) { return must(files().getattr(of)).mode; }
};

TEST_P(Nfs4ClientAcls, have_three_entries_for_a_mode) {
  const Acls acls = must(files().acls(file()));
  EXPECT_EQ(acls.access, acls_of_mode(0640).access);
  EXPECT_FALSE(acls.beyond_mode());
}

TEST_P(Nfs4ClientAcls, come_back_in_order_as_they_were_set_by_one_call) {
  const Handle of = file();
  EXPECT_EQ(calls_of([&] {
              must(files().set_acls(of, {{kForCarol.rbegin(), kForCarol.rend()}, {}}));
            }),
            1);
  EXPECT_EQ(must(files().acls(of)).access, kForCarol);
  EXPECT_EQ(mode(of), 0660u);
  // Version 3 has the same, as the store keeps it.
  const Nfs4Acl native = must(files().nfs4_acl(of));
  EXPECT_EQ(to_posix_acls(native, false)->access, kForCarol);
  EXPECT_TRUE(beyond_mode(native, false));
}

TEST_P(Nfs4ClientAcls, keep_the_defaults_of_a_directory_unless_asked_to_replace_them) {
  const Handle dir = directory();
  const std::vector<AclEntry> access = must(files().acls(dir)).access;
  EXPECT_EQ(access, acls_of_mode(0750).access);
  must(files().set_acls(dir, {access, kForCarol}, true));
  EXPECT_EQ(must(files().acls(dir)).defaults, kForCarol);
  EXPECT_EQ(must(files().acls(dir)).access, access);
  must(files().set_acls(dir, {kForCarol, {}}));
  EXPECT_EQ(must(files().acls(dir)).defaults, kForCarol);
  EXPECT_EQ(must(files().acls(dir)).access, kForCarol);
  must(files().set_acls(dir, {access, {}}, true));
  EXPECT_FALSE(must(files().acls(dir)).beyond_mode());
}

TEST_P(Nfs4ClientAcls, leave_the_mode_as_it_is_where_there_is_no_access_list) {
  const Handle dir = directory();
  must(files().set_acls(dir, {{}, kForCarol}, true));
  EXPECT_EQ(must(files().acls(dir)).access, acls_of_mode(0750).access);
  EXPECT_EQ(must(files().acls(dir)).defaults, kForCarol);
  const Handle of = file();
  must(files().set_acls(of, {kForCarol, {}}));
  must(files().set_acls(of, {}));
  EXPECT_EQ(must(files().acls(of)).access, acls_of_mode(0660).access);
}

TEST_P(Nfs4ClientAcls, that_are_incomplete_are_refused_without_a_call) {
  const Handle of = file();
  EXPECT_EQ(calls_of([&] {
              const auto set = run(files().set_acls(of, {{{AclEntry::kUser, 1, 4}}, {}}));
              EXPECT_TRUE(!set && set.error().is(Status::Invalid));
            }),
            0);
}

INSTANTIATE_TEST_SUITE_P(Minor, Nfs4ClientAcls, ::testing::Values(0u, 1u, 2u));

const Nfs4Ace kAllowsOwner{v4::ACE4_ACCESS_ALLOWED_ACE_TYPE, 0, v4::ACE4_READ_DATA, "OWNER@"};
const Nfs4Ace kAudits{v4::ACE4_SYSTEM_AUDIT_ACE_TYPE, v4::ACE4_SUCCESSFUL_ACCESS_ACE_FLAG,
                      v4::ACE4_READ_DATA, "EVERYONE@"};

// A server whose objects have one list, which nobody checks.
class Nfs4NativeAcls : public ::testing::Test {
 protected:
  Nfs4NativeAcls() {
    server.lie = [this](const v4::COMPOUND4args& args, Compound4Results& results) {
      for (std::size_t i = 0; i < args.argarray.size(); ++i) answer(args.argarray[i], results, i);
    };
  }
  void answer(const v4::nfs_argop4& asked, Compound4Results& results, std::size_t at) {
    v4::nfs_resop4& result = results.resarray[at];
    if (asked.argop == v4::OP_GETATTR) result.opgetattr().resok4().obj_attributes = attributes();
    if (asked.argop == v4::OP_SETATTR)
      set = nfs4::values_of(asked.opsetattr().obj_attributes).value().acl;
    if (asked.argop != v4::OP_NVERIFY || type != FileType::Directory) return;
    result.opnverify().status = results.status = v4::NFS4ERR_SAME;
    results.resarray.resize(at + 1);
  }
  v4::fattr4 attributes() const {
    v4::fattr4 all = nfs4::type_is(type);
    xdr::Encoder encoder;
    encoder.u32(static_cast<std::uint32_t>(type));
    if (list) encoder.u32(static_cast<std::uint32_t>(list->size()));
    for (const Nfs4Ace& ace : list.value_or(Nfs4Acl())) {
      encoder.u32(ace.type);
      encoder.u32(ace.flags);
      encoder.u32(ace.mask);
      encoder.string(xdr::kNoItem, ace.who);
    }
    all.attrmask = list ? nfs4::bitmap_of({v4::FATTR4_TYPE, v4::FATTR4_ACL})
                        : nfs4::bitmap_of({v4::FATTR4_TYPE});
    all.attr_vals = std::move(encoder).finish().rope();
    return all;
  }

  LyingServer server;
  FileType type = FileType::Regular;
  std::optional<Nfs4Acl> list;  // nullopt: it has no such attribute
  Nfs4Acl set;                  // what it was given last
  FileSystem files = server.files();
};

TEST_F(Nfs4NativeAcls, that_POSIX_cannot_say_are_not_supported_and_can_be_had_as_they_are) {
  const std::vector<Nfs4Ace> kStrange[] = {
      {kAllowsOwner, kAudits},
      {kAllowsOwner, {v4::ACE4_ACCESS_ALLOWED_ACE_TYPE, 0, v4::ACE4_READ_DATA, "carol@example"}}};
  for (const Nfs4Acl& strange : kStrange) {
    list = strange;
    const auto acls = server.run(files.acls(files.root()));
    ASSERT_FALSE(acls.ok());
    EXPECT_TRUE(acls.error().is(Status::NotSupported)) << acls.error().sentence;
    const auto native = server.run(files.nfs4_acl(files.root()));
    ASSERT_TRUE(native.ok());
    EXPECT_EQ(*native, strange);
  }
}

TEST_F(Nfs4NativeAcls, are_not_supported_where_the_server_has_none) {
  for (const bool native : {false, true}) {
    const auto acls = server.run(files.acls(files.root()));
    const auto own = server.run(files.nfs4_acl(files.root()));
    const Error& error = native ? own.error() : acls.error();
    EXPECT_TRUE(error.is(Status::NotSupported));
    EXPECT_TRUE(means_no_acls(error));
  }
}

TEST_F(Nfs4NativeAcls, stay_what_they_are_for_new_objects_in_a_directory) {
  type = FileType::Directory;
  Nfs4Ace of_both = kAllowsOwner;
  of_both.flags = v4::ACE4_DIRECTORY_INHERIT_ACE | v4::ACE4_NO_PROPAGATE_INHERIT_ACE;
  Nfs4Ace of_new = kAudits;
  of_new.flags |= v4::ACE4_FILE_INHERIT_ACE | v4::ACE4_INHERIT_ONLY_ACE;
  list = Nfs4Acl{kAudits, of_both, of_new};
  ASSERT_TRUE(server.run(files.set_acls(files.root(), {kForCarol, {}})).ok());
  Nfs4Acl wanted = *to_nfs4_acl({kForCarol, {}}, true);
  of_both.flags |= v4::ACE4_INHERIT_ONLY_ACE;
  wanted.push_back(of_both);
  wanted.push_back(of_new);
  EXPECT_EQ(set, wanted);
}

TEST_F(Nfs4NativeAcls, are_replaced_where_the_object_is_no_directory) {
  list = Nfs4Acl{kAudits};
  ASSERT_TRUE(server.run(files.set_acls(files.root(), {kForCarol, {}})).ok());
  EXPECT_EQ(set, *to_nfs4_acl({kForCarol, {}}, false));
}

}  // namespace
}  // namespace stag::nfs::client
