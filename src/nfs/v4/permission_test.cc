// A caller whom the store would refuse anyway moves no holder: what others hold stays theirs,
// whatever that caller sends (RFC 8881 9.7, 10.4).
#include <utility>
#include <vector>

#include "testing/nfs/nfs4_delegations_fixture.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

constexpr Duration kPastLease = 92s;

// As that of a server that cannot switch users: it sees this one, whichever user sets attributes.
class OneUsersStore final : public vfs::testing::SteppedStore {
 public:
  OneUsersStore(std::shared_ptr<vfs::FileSystem> inner, vfs::Credentials user)
      : SteppedStore(std::move(inner),
                     std::make_shared<vfs::testing::FailingSteps>(
                         [](vfs::testing::Point) { return std::optional<vfs::Status>(); })),
        user_(std::move(user)) {}

  const vfs::Credentials& acting_as(const vfs::Credentials&) const override { return user_; }
  vfs::Operation<vfs::Access> access(vfs::CallerContext caller, const vfs::Handle& object,
                                     std::uint32_t asked) override {
    return SteppedStore::access({caller.loop, user_, caller.client}, object, asked);
  }
  vfs::Operation<vfs::Change> set_attributes(vfs::CallerContext caller, const vfs::Handle& object,
                                             const vfs::SetAttributes& changes,
                                             std::optional<vfs::Time> guard) override {
    return SteppedStore::set_attributes({caller.loop, user_, caller.client}, object, changes,
                                        guard);
  }

 private:
  const vfs::Credentials user_;
};

// Root's file is its own, in a folder that all may write to; the other client's user is a stranger.
class Nfs4Strangers : public Nfs4DelegationsServed {
 protected:
  Nfs4Strangers() { minor_ = 2; }
  void SetUp() override {
    Nfs4DelegationsServed::SetUp();
    handle_ = walk({"data", "file"});
    STAG_CHECK(run({putfh(handle_), set_mode(0600)}).status == v4::NFS4_OK);
    STAG_CHECK(run({putrootfh(), lookup("data"), make("private"), set_mode(0700)}).status ==
               v4::NFS4_OK);
    holder_ = now_acting();
  }

  static Op make(const std::string& folder) {
    v4::CREATE4args args;
    args.objtype.type = v4::NF4DIR;
    args.objname = folder;
    return op(v4::OP_CREATE, &Op::opcreate, args);
  }
  static Op set(std::uint32_t attribute, const Rope& value) {
    v4::SETATTR4args args;
    if (!value.empty()) {
      args.obj_attributes.attrmask.assign(attribute / 32 + 1, 0);
      args.obj_attributes.attrmask[attribute / 32] = 1u << attribute % 32;
      args.obj_attributes.attr_vals = value;
    }
    return op(v4::OP_SETATTR, &Op::opsetattr, args);
  }
  static Op set_mode(std::uint32_t mode) {
    xdr::Encoder value;
    value.u32(mode);
    return set(v4::FATTR4_MODE, std::move(value).finish().rope());
  }
  static Op set_size(std::uint64_t size) {
    xdr::Encoder value;
    value.u64(size);
    return set(v4::FATTR4_SIZE, std::move(value).finish().rope());
  }
  static Op set_time() {
    xdr::Encoder value;
    value.u32(v4::SET_TO_SERVER_TIME4);
    return set(v4::FATTR4_TIME_MODIFY_SET, std::move(value).finish().rope());
  }
  static Op set_owner(std::string_view owner) {
    xdr::Encoder value;
    value.string(xdr::kNoItem, owner);
    return set(v4::FATTR4_OWNER, std::move(value).finish().rope());
  }
  // In the folder that is called so, of the file that has the name `file`.
  std::vector<Op> link_in(std::initializer_list<const char*> folder) {
    std::vector<Op> operations{putfh(handle_), op(v4::OP_SAVEFH), putrootfh()};
    for (const char* name : folder) operations.push_back(lookup(name));
    operations.push_back(op(v4::OP_LINK, &Op::oplink, v4::LINK4args{"link"}));
    return operations;
  }
  static std::vector<Op> rename(const std::string& from, const std::string& to) {
    return {putrootfh(), lookup("data"), op(v4::OP_SAVEFH),
            op(v4::OP_RENAME, &Op::oprename, v4::RENAME4args{from, to})};
  }
  v4::nfsstat4 as_user(std::uint32_t uid, std::vector<Op> operations) {
    const rpc::Credentials before =
        std::exchange(credentials_, rpc::Credentials::sys("tests", uid, uid, {}));
    const v4::nfsstat4 status = as(other_, [&] { return run(std::move(operations)).status; });
    credentials_ = before;
    return status;
  }

  // What the other client hears of the locks of a file.
  v4::LOCKT4res tested_by(std::uint32_t uid, const v4::nfs_fh4& handle) {
    v4::LOCKT4args args;
    args.locktype = v4::WRITE_LT;
    args.length = 10;
    args.owner.owner = Rope::copy_of(bytes_of("another owner"));
    const rpc::Credentials before =
        std::exchange(credentials_, rpc::Credentials::sys("tests", uid, uid, {}));
    const Res results = as(other_, [&] {
      return run({putfh(handle), op(v4::OP_LOCKT, &Op::oplockt, args)});
    });
    credentials_ = before;
    return results.resarray.at(1).oplockt();
  }
  void lock(const Opened& file) {
    v4::LOCK4args args{v4::WRITE_LT, false, 0, 10, {}};
    args.locker.new_lock_owner = true;
    args.locker.open_owner() = {0, file.stateid, 0, {clientid_, Rope::copy_of(bytes_of("o"))}};
    ASSERT_EQ(run({putfh(file.handle), op(v4::OP_LOCK, &Op::oplock, args)}).status, v4::NFS4_OK);
  }

  using Deed = std::pair<const char*, std::vector<Op>>;
  // All that needs the owner, or the owner's leave.
  std::vector<Deed> deeds() {
    return {
        {"READ", {putfh(handle_), read_op({}, 0, 10)}},
        {"WRITE", {putfh(handle_), write_op({}, 0, "X")}},
        {"SEEK", {putfh(handle_), op(v4::OP_SEEK, &Op::opseek, {{}, 0, v4::NFS4_CONTENT_DATA})}},
        {"ALLOCATE", {putfh(handle_), op(v4::OP_ALLOCATE, &Op::opallocate, {{}, 0, 10})}},
        {"SETATTR of the mode", {putfh(handle_), set_mode(0777)}},
        {"SETATTR of the size", {putfh(handle_), set_size(3)}},
        {"SETATTR of a time", {putfh(handle_), set_time()}},
        {"SETXATTR",
         {putfh(handle_), op(v4::OP_SETXATTR, &Op::opsetxattr,
                             {v4::SETXATTR4_EITHER, "name", Rope::copy_of(bytes_of("x"))})}},
        {"REMOVEXATTR", {putfh(handle_), op(v4::OP_REMOVEXATTR, &Op::opremovexattr, {"name"})}},
        {"LINK in a folder that is not his", link_in({"data", "private"})},
        {"REMOVE", {putrootfh(), lookup("data"), op(v4::OP_REMOVE, &Op::opremove, {"file"})}},
        {"RENAME of it", rename("file", "new")},
        {"RENAME over it", rename("his", "file")},
    };
  }
  static bool is_refused(v4::nfsstat4 status) {
    return status == v4::NFS4ERR_ACCESS || status == v4::NFS4ERR_PERM;
  }
  void make_his() {
    const v4::nfsstat4 made =
        as_user(4242, {putrootfh(), lookup("data"), op(v4::OP_OPEN, &Op::opopen, as(other_, [&] {
                                                         return open_args("his", kForBoth, true);
                                                       }))});
    EXPECT_EQ(made, v4::NFS4_OK);
  }
  // A file of user 4242 that no client has open.
  v4::nfs_fh4 make_for_him(std::uint32_t mode) {
    const Opened made =
        open(open_args("his", kForBoth | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG, true));
    EXPECT_EQ(close(made), v4::NFS4_OK);
    EXPECT_EQ(run({putfh(made.handle), set_owner("4242"), set_mode(mode)}).status, v4::NFS4_OK);
    return made.handle;
  }
};

TEST_F(Nfs4Strangers, recall_no_delegation_of_a_file_that_is_not_theirs) {
  make_his();
  ASSERT_EQ(open_for(kForBoth).delegation_type, v4::OPEN_DELEGATE_WRITE);
  const TimePoint begin = loop_.now();
  for (auto& [name, operations] : deeds()) {
    EXPECT_PRED1(is_refused, as_user(4242, std::move(operations))) << name;
    EXPECT_TRUE(holder_client_.asked.empty()) << name;
    holder_client_.asked.clear();
  }
  EXPECT_EQ(loop_.now(), begin) << "nobody waits";
}

TEST_F(Nfs4Strangers, recall_nothing_by_a_SETATTR_of_nothing_or_by_an_advice) {
  ASSERT_EQ(open_for(kForBoth).delegation_type, v4::OPEN_DELEGATE_WRITE);
  EXPECT_EQ(as_user(4242, {putfh(handle_), set(0, {})}), v4::NFS4_OK);
  EXPECT_EQ(as_user(4242, {putfh(handle_), op(v4::OP_IO_ADVISE, &Op::opio_advise,
                                              {{}, 0, 10, {1u << v4::IO_ADVISE4_WILLNEED}})}),
            v4::NFS4_OK);
  EXPECT_TRUE(holder_client_.asked.empty());
}

TEST_F(Nfs4Strangers, recall_delegations_where_the_store_lets_them) {
  ASSERT_EQ(run({putfh(handle_), set_mode(0606)}).status, v4::NFS4_OK);
  const std::vector<Deed> allowed{
      {"READ", {putfh(handle_), read_op({}, 0, 10)}},
      {"WRITE", {putfh(handle_), write_op({}, 0, "X")}},
      {"SETATTR of the size", {putfh(handle_), set_size(3)}},
      {"SETATTR of a time", {putfh(handle_), set_time()}},
      {"LINK", link_in({"data"})},
  };
  gives_back();
  for (auto& [name, operations] : allowed) {
    loop_.pass(31s);
    holder_client_.asked.clear();
    ASSERT_EQ(open_for(kForBoth).delegation_type, v4::OPEN_DELEGATE_WRITE) << name;
    holder_ = now_acting();
    EXPECT_EQ(as_user(4242, operations), v4::NFS4_OK) << name;
    act_as(holder_);
    EXPECT_EQ(holder_client_.asked.size(), 1u) << name;
  }
}

// RFC 1813 4.4: the owner of a file may have had it open since before its mode forbade it.
TEST_F(Nfs4Strangers, recall_delegations_of_their_own_files_whatever_the_mode) {
  const v4::nfs_fh4 his = make_for_him(0444);
  gives_back();
  const std::vector<Deed> allowed{{"WRITE", {putfh(his), write_op({}, 0, "X")}},
                                  {"SETATTR of the size", {putfh(his), set_size(3)}}};
  for (auto& [name, operations] : allowed) {
    loop_.pass(31s);
    holder_client_.asked.clear();
    ASSERT_EQ(open_for(kForBoth, 0, "his").delegation_type, v4::OPEN_DELEGATE_WRITE) << name;
    holder_ = now_acting();
    EXPECT_EQ(as_user(4242, operations), v4::NFS4_OK) << name;
    act_as(holder_);
    EXPECT_EQ(holder_client_.asked.size(), 1u) << name;
  }
  EXPECT_EQ(as_user(4243, {putfh(his), write_op({}, 0, "X")}), v4::NFS4ERR_ACCESS);
}

TEST_F(Nfs4Strangers, end_a_client_that_has_lapsed_with_their_own_files_whatever_the_mode) {
  const v4::nfs_fh4 his = make_for_him(0444);
  const std::vector<Deed> allowed{{"WRITE", {putfh(his), write_op({}, 0, "X")}},
                                  {"SETATTR of the size", {putfh(his), set_size(3)}}};
  for (auto& [name, operations] : allowed) {
    set_up_session(name);
    v4::OPEN4args denying = open_args("his", kForReading, false);
    denying.share_deny = v4::OPEN4_SHARE_DENY_BOTH;
    ASSERT_EQ(open(std::move(denying)).status, v4::NFS4_OK) << name;
    EXPECT_EQ(as_user(4242, operations), v4::NFS4ERR_LOCKED) << name;
    loop_.pass(60s);
    EXPECT_EQ(as_user(4242, {putrootfh()}), v4::NFS4_OK) << "his client lives";
    loop_.pass(60s);
    EXPECT_EQ(as_user(4242, operations), v4::NFS4_OK) << name;
  }
}

// The server has started without root: its files are everybody's, and others' are nobody's.
TEST_F(Nfs4Strangers, are_whom_the_store_takes_them_for) {
  const v4::nfs_fh4 his = make_for_him(0600);
  ASSERT_EQ(run({putfh(handle_), set_mode(0604)}).status, v4::NFS4_OK);
  nfs::ExportOptions options;
  options.root_squash = false;
  nfs::Exports exports;
  const auto store = std::make_shared<OneUsersStore>(store_, vfs::Credentials{4242, 4242, {}});
  STAG_CHECK(exports.add(1, {"/data", store, options}).ok());
  context_.exports.replace(std::move(exports));
  gives_back();
  ASSERT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_READ);
  EXPECT_PRED1(is_refused, as_user(0, {putfh(handle_), set_mode(0777)}));
  EXPECT_TRUE(holder_client_.asked.empty());
  ASSERT_EQ(open_for(kForReading, 0, "his").delegation_type, v4::OPEN_DELEGATE_READ);
  holder_ = now_acting();
  EXPECT_EQ(as_user(4243, {putfh(his), set_mode(0640)}), v4::NFS4_OK);
  EXPECT_EQ(holder_client_.asked.size(), 1u);
}

TEST_F(Nfs4Strangers, end_no_client_that_has_lapsed) {
  make_his();
  v4::OPEN4args denying = open_args("file", kForBoth, false);
  denying.share_deny = v4::OPEN4_SHARE_DENY_BOTH;
  ASSERT_EQ(open(std::move(denying)).status, v4::NFS4_OK);
  holder_ = now_acting();
  loop_.pass(kPastLease);
  for (auto& [name, operations] : deeds())
    EXPECT_PRED1(is_refused, as_user(4242, std::move(operations))) << name;
  act_as(holder_);
  EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK) << "nobody wanted what it held";
  EXPECT_EQ(as(other_,
               [&] {
                 return run({putfh(handle_), write_op({}, 0, "X")}).status;
               }),
            v4::NFS4ERR_LOCKED)
      << "it goes on as before";
}

TEST_F(Nfs4Strangers, end_no_client_that_has_lapsed_with_a_delegation) {
  make_his();
  ASSERT_EQ(open_for(kForBoth).delegation_type, v4::OPEN_DELEGATE_WRITE);
  holder_ = now_acting();
  loop_.pass(kPastLease);
  for (auto& [name, operations] : deeds())
    EXPECT_PRED1(is_refused, as_user(4242, std::move(operations))) << name;
  act_as(holder_);
  EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK);
  EXPECT_TRUE(holder_client_.asked.empty());
}

// RFC 8881 15.2, 18.11: as of OPEN, which LOCK needs.
TEST_F(Nfs4Strangers, are_not_told_who_has_locked_a_file_that_they_may_not_open) {
  lock(create("file"));
  const auto status = [&](std::uint32_t mode, std::uint32_t uid) {
    EXPECT_EQ(run({putfh(handle_), set_mode(mode)}).status, v4::NFS4_OK);
    return tested_by(uid, handle_).status;
  };
  EXPECT_EQ(status(0600, 4242), v4::NFS4ERR_ACCESS);
  EXPECT_EQ(status(0000, 0), v4::NFS4ERR_DENIED) << "its owner";
  for (const std::uint32_t others : {1u, 2u, 4u})
    EXPECT_EQ(status(others, 4242), v4::NFS4ERR_DENIED) << others;
}

TEST_F(Nfs4Strangers, end_no_client_that_has_lapsed_by_a_LOCKT) {
  make_his();
  lock(create("file"));
  holder_ = now_acting();
  loop_.pass(kPastLease);
  EXPECT_EQ(tested_by(4242, handle_).status, v4::NFS4ERR_ACCESS);
  act_as(holder_);
  EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK) << "nobody wanted what it held";
}

}  // namespace
}  // namespace stag::nfs::nfs4
