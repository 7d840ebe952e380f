// Version 4.0 (RFC 7530): clients without sessions, owners that number their operations.
#include "nfs/v4/ops/owner_turn.h"
#include "testing/nfs/nfs40_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

class Nfs40 : public Nfs40Served {};

TEST_F(Nfs40, has_clients_that_are_confirmed_and_renewed) {
  EXPECT_EQ(renew(client_), v4::NFS4_OK);
  EXPECT_EQ(renew(setclientid("another").clientid), v4::NFS4ERR_STALE_CLIENTID);
  EXPECT_EQ(renew(client_ ^ std::uint64_t{1} << 50), v4::NFS4ERR_STALE_CLIENTID);
}

// They are recalled through a connection that this server makes (RFC 7530 10.2), which it is not to
// make here.
TEST_F(Nfs40, gets_no_delegation_where_clients_of_later_versions_alone_are_called_back) {
  PROVES("R8167-3.1-b");
  nfs4_.start_callbacks(loop_);
  open_file(1, "file", "owner");
  const Res opened = open_raw(3, "file", "owner");
  nfs4_.stop_callbacks();
  ASSERT_EQ(opened.status, v4::NFS4_OK);
  EXPECT_EQ(opened.resarray[2].opopen().resok4().delegation.delegation_type,
            v4::OPEN_DELEGATE_NONE);
}

TEST_F(Nfs40, opens_writes_reads_and_closes) {
  const Opened file = open_file(1, "file", "owner");
  EXPECT_EQ(run({putfh(file.handle), write_op(file.stateid, 0, "hello")}).status, v4::NFS4_OK);
  const Res read = run({putfh(file.handle), read_op(file.stateid, 1, 100)});
  ASSERT_EQ(read.status, v4::NFS4_OK);
  EXPECT_EQ(text(read.resarray[1].opread().resok4().data), "ello");
  EXPECT_EQ(close(file, 3).status, v4::NFS4_OK);
  EXPECT_EQ(run({putfh(file.handle), read_op(file.stateid, 0, 1)}).status, v4::NFS4ERR_BAD_STATEID);
}

// RFC 7530 16.28.5: the principal that has confirmed the client ID, or one that has a file open.
TEST_F(Nfs40, renews_the_lease_for_its_own_principals_alone) {
  open_file(1, "file", "owner");
  as(4242, 4242);
  EXPECT_EQ(renew(client_), v4::NFS4ERR_ACCESS);
  open_raw(1, "file", "his owner");
  EXPECT_EQ(renew(client_), v4::NFS4ERR_ACCESS) << "his open is not confirmed";
  open_file(2, "file of his own", "his owner");
  EXPECT_EQ(renew(client_), v4::NFS4_OK);
  as(4243, 4243);
  EXPECT_EQ(renew(client_), v4::NFS4ERR_ACCESS);
  EXPECT_EQ(renew(1), v4::NFS4ERR_STALE_CLIENTID);
}

// Else what a client held that has vanished would be kept for ever.
TEST_F(Nfs40, does_not_outlive_its_lease_by_what_a_stranger_renews) {
  const v4::clientid4 first = client_;
  client_ = set_up_client("another client");
  as(4242, 4242);
  for (int i = 0; i < 4; ++i) {
    loop_.pass(std::chrono::seconds(30));
    EXPECT_EQ(renew(first), i < 3 ? v4::NFS4ERR_ACCESS : v4::NFS4ERR_EXPIRED) << i;
  }
}

TEST_F(Nfs40, has_no_lock_under_a_special_stateid) {
  const Opened file = open_file(1, "file", "owner");
  v4::LOCK4args args;
  args.locktype = v4::WRITE_LT;
  args.length = 10;
  args.locker.lock_owner() = {};
  EXPECT_EQ(run({putfh(file.handle), op(v4::OP_LOCK, &Op::oplock, args)}).status,
            v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs40, asks_once_that_an_open_owner_is_confirmed) {
  open_file(1, "file", "owner");
  const Res second = open_raw(3, "another", "owner");
  ASSERT_EQ(second.status, v4::NFS4_OK);
  EXPECT_EQ(second.resarray[2].opopen().resok4().rflags & v4::OPEN4_RESULT_CONFIRM, 0u);
}

TEST_F(Nfs40, cancels_an_open_that_is_not_confirmed_when_another_comes) {
  const Res first = open_raw(5, "file", "owner");
  const v4::stateid4 cancelled = first.resarray[2].opopen().resok4().stateid;
  const v4::nfs_fh4 handle = first.resarray[3].opgetfh().resok4().object;
  EXPECT_EQ(open_raw(9, "another", "owner").status, v4::NFS4_OK);
  EXPECT_EQ(run({putfh(handle), read_op(cancelled, 0, 1)}).status, v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs40, repeats_the_results_of_an_owners_last_operation) {
  const Opened file = open_file(1, "file", "owner");
  const Res opened = open_raw(3, "other", "owner");
  EXPECT_EQ(open_raw(3, "other", "owner"), opened) << "the filehandle too";
  const Opened other{v4::NFS4_OK, opened.resarray[2].opopen().resok4().stateid,
                     opened.resarray[3].opgetfh().resok4().object};
  const Res closed = close(other, 4);
  EXPECT_EQ(closed.status, v4::NFS4_OK);
  EXPECT_EQ(close(other, 4), closed);
  EXPECT_EQ(close(other, 5).status, v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(close(file, 7).status, v4::NFS4ERR_BAD_SEQID);
  EXPECT_EQ(close(file, 5).status, v4::NFS4_OK);
}

TEST_F(Nfs40, repeats_them_to_the_same_principal_alone) {
  open_file(1, "file", "owner");
  const Res opened = open_raw(3, "file", "owner");
  EXPECT_EQ(opened.status, v4::NFS4_OK);
  as(8, 8);
  EXPECT_EQ(open_raw(3, "file", "owner").status, v4::NFS4ERR_BAD_SEQID);
  as(0, 0);
  EXPECT_EQ(open_raw(3, "file", "owner"), opened);
}

TEST_F(Nfs40, acts_behind_a_repeated_OPEN_on_the_terms_that_hold_then) {
  open_file(1, "file", "owner");
  const Res opened = open_raw(3, "file", "owner");
  ASSERT_EQ(opened.status, v4::NFS4_OK);
  const v4::stateid4 stateid = opened.resarray[2].opopen().resok4().stateid;
  nfs::ExportOptions read_only;
  read_only.read_only = true;
  nfs::Exports exports;
  STAG_CHECK(exports.add(1, {"/data", store_, read_only}).ok());
  context_.exports.replace(std::move(exports));
  const Res again = run(
      {putrootfh(), lookup("data"), open_op(3, "file", "owner"), write_op(stateid, 0, "hello")});
  ASSERT_EQ(again.resarray.size(), 4u);
  EXPECT_EQ(again.resarray[2].opopen(), opened.resarray[2].opopen());
  EXPECT_EQ(again.status, v4::NFS4ERR_ROFS);
}

TEST_F(Nfs40, counts_a_failure_as_an_operation) {
  const Opened file = open_file(1, "file", "owner");
  // In a folder of the pseudo file system nothing is opened; that is said in the owner's turn.
  EXPECT_EQ(run({putrootfh(), open_op(3, "new", "owner")}).status, v4::NFS4ERR_ROFS);
  EXPECT_EQ(close(file, 3).status, v4::NFS4ERR_BAD_SEQID);
  EXPECT_EQ(close(file, 4).status, v4::NFS4_OK);
}

TEST_F(Nfs40, opens_no_FIFO_and_calls_it_a_symlink_as_RFC_7530_16_16_5_does) {
  v4::CREATE4args args;
  args.objtype.type = v4::NF4FIFO;
  args.objname = "fifo";
  ASSERT_EQ(run({putrootfh(), lookup("data"), op(v4::OP_CREATE, &Op::opcreate, args)}).status,
            v4::NFS4_OK);
  EXPECT_EQ(open_raw(1, "fifo", "owner").status, v4::NFS4ERR_SYMLINK);
  Op open = open_op(2, "fifo", "owner");
  open.opopen().openhow = {};
  EXPECT_EQ(run({putrootfh(), lookup("data"), open}).status, v4::NFS4ERR_SYMLINK);
}

TEST_F(Nfs40, opens_nothing_of_the_pseudo_file_system_and_says_what_a_name_is) {
  const auto opened = [&](std::uint32_t seqid, const std::string& name) {
    Op open = open_op(seqid, name, "owner");
    open.opopen().openhow = {};
    return run({putrootfh(), open}).status;
  };
  EXPECT_EQ(opened(1, "missing"), v4::NFS4ERR_NOENT);
  EXPECT_EQ(opened(2, "data"), v4::NFS4ERR_ISDIR);
  EXPECT_EQ(opened(3, "srv"), v4::NFS4ERR_ISDIR);
}

TEST_F(Nfs40, counts_on_after_every_status_but_those_of_RFC_7530_9_1_7) {
  for (const v4::nfsstat4 status :
       {v4::NFS4ERR_STALE_CLIENTID, v4::NFS4ERR_STALE_STATEID, v4::NFS4ERR_BAD_STATEID,
        v4::NFS4ERR_BAD_SEQID, v4::NFS4ERR_BADXDR, v4::NFS4ERR_RESOURCE, v4::NFS4ERR_NOFILEHANDLE,
        v4::NFS4ERR_MOVED})
    EXPECT_FALSE(advances_seqid(status)) << status;
  for (const v4::nfsstat4 status : {v4::NFS4_OK, v4::NFS4ERR_DELAY, v4::NFS4ERR_DENIED,
                                    v4::NFS4ERR_OLD_STATEID, v4::NFS4ERR_GRACE})
    EXPECT_TRUE(advances_seqid(status)) << status;
}

TEST_F(Nfs40, locks_unlocks_and_releases_lock_owners) {
  const Opened file = open_file(1, "file", "owner");
  const Res first = lock(file, 3, 20, "locker");
  ASSERT_EQ(first.status, v4::NFS4_OK);
  const Res more = relock(file, lock_stateid(first), 21, 100);
  ASSERT_EQ(more.status, v4::NFS4_OK);
  EXPECT_EQ(relock(file, lock_stateid(more), 40, 200).status, v4::NFS4ERR_BAD_SEQID);
  EXPECT_EQ(relock(file, lock_stateid(first), 22, 200).status, v4::NFS4ERR_OLD_STATEID);
  EXPECT_EQ(release("locker"), v4::NFS4ERR_LOCKS_HELD);
  EXPECT_EQ(unlock(file, lock_stateid(more), 23).status, v4::NFS4_OK);
  EXPECT_EQ(release("locker"), v4::NFS4_OK);
  EXPECT_EQ(unlock(file, lock_stateid(more), 24).status, v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(lock(file, 4, 1, "locker").status, v4::NFS4_OK) << "it counts from anew";
}

// The answer is longer than any other that is kept.
TEST_F(Nfs40, repeats_that_a_lock_is_denied_with_an_owner_of_a_kibibyte) {
  const Opened one = open_file(1, "file", "one"), two = open_file(1, "file", "two");
  const std::string longest(1024, 'x');
  ASSERT_EQ(lock(one, 3, 1, longest).status, v4::NFS4_OK);
  const Res denied = lock(two, 3, 1, "second");
  ASSERT_EQ(denied.status, v4::NFS4ERR_DENIED);
  EXPECT_EQ(text(denied.resarray[1].oplock().denied().owner.owner), longest);
  ASSERT_EQ(close(one, 4).status, v4::NFS4_OK);
  EXPECT_EQ(lock(two, 3, 1, "second"), denied);
  EXPECT_EQ(lock(two, 4, 2, "second").status, v4::NFS4_OK);
}

// RFC 7530 16.10.5: only locking state makes a lock owner known.
TEST_F(Nfs40, lets_a_lock_owner_that_got_no_lock_begin_again_with_any_number) {
  const Opened one = open_file(1, "file", "one"), two = open_file(1, "file", "two");
  const Res locked = lock(one, 3, 1, "locker");
  ASSERT_EQ(locked.status, v4::NFS4_OK);
  ASSERT_EQ(lock(two, 3, 0, "second").status, v4::NFS4ERR_DENIED);
  ASSERT_EQ(unlock(one, lock_stateid(locked), 2).status, v4::NFS4_OK);
  EXPECT_EQ(lock(two, 4, 0, "second").status, v4::NFS4_OK) << "this is no retransmission";
  EXPECT_EQ(lock(two, 5, 0, "second").status, v4::NFS4_OK) << "this is: by its lock_seqid";
}

TEST_F(Nfs40, repeats_a_lock_of_a_new_owner_by_either_number) {
  const Opened file = open_file(1, "file", "owner");
  const Res locked = lock(file, 3, 20, "locker");
  EXPECT_EQ(lock(file, 3, 20, "locker"), locked);
  EXPECT_EQ(lock(file, 4, 20, "locker"), locked);
  EXPECT_EQ(lock(file, 4, 25, "locker").status, v4::NFS4ERR_BAD_SEQID);
  EXPECT_EQ(lock(file, 4, 21, "locker", 50).status, v4::NFS4_OK);
}

// A stranger with its client ID could open, and end what it holds, in its name.
TEST_F(Nfs40, tells_no_stranger_whose_a_lock_is) {
  const Opened file = open_file(1, "file", "owner");
  ASSERT_EQ(lock(file, 3, 1, "locker").status, v4::NFS4_OK);
  const auto told = [&](const Opened& by) {
    const Res denied = lock(by, 3, 1, "second");
    EXPECT_EQ(denied.status, v4::NFS4ERR_DENIED);
    return denied.resarray[1].oplock().denied().owner;
  };
  EXPECT_EQ(told(open_file(1, "file", "another owner")).clientid, client_) << "its own";
  const v4::clientid4 holder = std::exchange(client_, set_up_client("a stranger"));
  const v4::lock_owner4 shown = told(open_file(1, "file", "owner"));
  EXPECT_EQ(text(shown.owner), "locker");
  EXPECT_NE(shown.clientid, holder);
  EXPECT_NE(shown.clientid, client_);
  EXPECT_EQ(renew(shown.clientid), v4::NFS4ERR_STALE_CLIENTID);
  client_ = set_up_client("another");
  EXPECT_EQ(told(open_file(1, "file", "owner")).clientid, shown.clientid) << "the same to all";
}

TEST_F(Nfs40, tells_stateids_apart) {
  const Opened file = open_file(1, "file", "owner");
  const auto read = [&](const v4::stateid4& stateid) {
    return run({putfh(file.handle), read_op(stateid, 0, 1)}).status;
  };
  const auto filled = [](std::byte with, std::uint32_t seqid) {
    v4::stateid4 stateid{seqid, {}};
    stateid.other.fill(with);
    return stateid;
  };
  EXPECT_EQ(read(filled(std::byte{0}, 0)), v4::NFS4_OK);
  EXPECT_EQ(read(filled(std::byte{0xff}, 0xffffffff)), v4::NFS4_OK);
  EXPECT_EQ(read(filled(std::byte{0}, 1)), v4::NFS4ERR_BAD_STATEID) << "no current stateid";
  EXPECT_EQ(read(filled(std::byte{0xff}, 7)), v4::NFS4ERR_BAD_STATEID);
  v4::stateid4 other = file.stateid;
  --other.seqid;
  EXPECT_EQ(read(other), v4::NFS4ERR_OLD_STATEID);
  other.seqid += 2;
  EXPECT_EQ(read(other), v4::NFS4ERR_BAD_STATEID);
  other = file.stateid;
  other.other[11] ^= std::byte{1};
  EXPECT_EQ(read(other), v4::NFS4ERR_BAD_STATEID);
  other = file.stateid;
  other.other[0] ^= std::byte{1};
  EXPECT_EQ(read(other), v4::NFS4ERR_STALE_STATEID);
  other = filled(std::byte{0}, 0);
  EXPECT_EQ(close({{}, other, file.handle}, 3).status, v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs40, renews_a_lease_by_whatever_names_its_client) {
  v4::OPEN4args args = open_args("file", v4::OPEN4_SHARE_ACCESS_READ, true, "owner");
  args.owner.clientid = client_;
  args.seqid = 1;
  args.share_deny = v4::OPEN4_SHARE_DENY_WRITE;
  const Res opened =
      run({putrootfh(), lookup("data"), op(v4::OP_OPEN, &Op::opopen, std::move(args)), getfh()});
  ASSERT_EQ(opened.status, v4::NFS4_OK);
  const v4::nfs_fh4 handle = opened.resarray[3].opgetfh().resok4().object;
  const v4::stateid4 stateid = opened.resarray[2].opopen().resok4().stateid;
  const v4::clientid4 first = std::exchange(client_, set_up_client("another client"));
  std::uint32_t seqid = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(open_raw(++seqid, "file", "other").status, v4::NFS4ERR_SHARE_DENIED);
    loop_.pass(std::chrono::seconds(60));
    EXPECT_EQ(run({putfh(handle), read_op(stateid, 0, 1)}).status, v4::NFS4_OK);
    renew(client_);
  }
  loop_.pass(std::chrono::seconds(60));
  renew(client_);
  loop_.pass(std::chrono::seconds(60));
  EXPECT_EQ(open_raw(++seqid, "file", "other").status, v4::NFS4_OK);
  EXPECT_EQ(run({putfh(handle), read_op(stateid, 0, 1)}).status, v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(renew(first), v4::NFS4ERR_EXPIRED);
}

TEST_F(Nfs40, ends_what_a_client_held_before_it_started_anew) {
  const Opened file = open_file(1, "file", "owner");
  client_ = set_up_client("a client", 2);
  EXPECT_EQ(run({putfh(file.handle), read_op(file.stateid, 0, 1)}).status, v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(open_file(1, "file", "owner").status, v4::NFS4_OK);
}

TEST_F(Nfs40, runs_a_retransmitted_COMPOUND_once) {
  open_file(1, "file", "owner");
  const Res removed =
      run({putrootfh(), lookup("data"), op(v4::OP_REMOVE, &Op::opremove, v4::REMOVE4args{"file"})});
  ASSERT_EQ(removed.status, v4::NFS4_OK);
  EXPECT_EQ(last_call_again(), removed);
}

TEST_F(Nfs40, knows_no_operation_of_later_versions) {
  for (const Op& later :
       {sequence(), op(v4::OP_EXCHANGE_ID, &Op::opexchange_id, v4::EXCHANGE_ID4args{}),
        op(v4::OP_SEEK, &Op::opseek, v4::SEEK4args{})}) {
    const Res results = run({putrootfh(), later});
    EXPECT_EQ(results.status, v4::NFS4ERR_OP_ILLEGAL);
    ASSERT_EQ(results.resarray.size(), 2u);
    EXPECT_EQ(results.resarray[1].resop, v4::OP_ILLEGAL);
  }
  EXPECT_EQ(compound({putrootfh()}, 1).status, v4::NFS4ERR_OP_NOT_IN_SESSION);
  EXPECT_EQ(run(std::vector<Op>(65, putrootfh())).status, v4::NFS4ERR_RESOURCE);
}

// RFC 7530 16.31.4.
TEST_F(Nfs40, keeps_the_current_filehandle_behind_SECINFO) {
  const v4::nfs_fh4 root = run({putrootfh(), getfh()}).resarray[1].opgetfh().resok4().object;
  const Res told =
      run({putrootfh(), op(v4::OP_SECINFO, &Op::opsecinfo, v4::SECINFO4args{"data"}), getfh()});
  ASSERT_EQ(told.status, v4::NFS4_OK);
  EXPECT_EQ(told.resarray[2].opgetfh().resok4().object, root);
}

TEST_F(Nfs40, knows_no_attribute_of_later_versions) {
  const std::uint32_t minor1 = 1u << (v4::FATTR4_SUPPATTR_EXCLCREAT - 64);
  const std::uint32_t minor2 = 1u << (v4::FATTR4_XATTR_SUPPORT - 64);
  const auto supported = [&](std::uint32_t minor) {
    const Res told = compound({putrootfh(), getattr({1u << v4::FATTR4_SUPPORTED_ATTRS})}, minor);
    xdr::Decoder values(
        told.resarray.back().opgetattr().resok4().obj_attributes.attr_vals.flatten());
    std::uint32_t words[4]{};
    for (std::uint32_t& word : words)
      if (!values.u32(word)) break;
    return words[3];
  };
  EXPECT_EQ(supported(0) & (minor1 | minor2), 0u);
  for (const v4::bitmap4& later : {v4::bitmap4{0, 0, minor1}, v4::bitmap4{0, 0, minor2}}) {
    v4::NVERIFY4args args;
    args.obj_attributes = {later, Rope::copy_of(bytes_of("\0\0\0"))};
    EXPECT_EQ(run({putrootfh(), op(v4::OP_NVERIFY, &Op::opnverify, std::move(args))}).status,
              v4::NFS4ERR_ATTRNOTSUPP);
  }
}

TEST_F(Nfs40, keeps_one_table_with_later_versions) {
  open_file(1, "file", "owner");
  set_up_session("a client of version 4.1");
  v4::OPEN4args args = open_args("file", v4::OPEN4_SHARE_ACCESS_READ, false, "x");
  args.share_deny = v4::OPEN4_SHARE_DENY_WRITE;
  EXPECT_EQ(open(std::move(args)).status, v4::NFS4ERR_SHARE_DENIED);
}

}  // namespace
}  // namespace stag::nfs::nfs4
