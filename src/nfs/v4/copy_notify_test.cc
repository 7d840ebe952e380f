// Files that clients let other servers copy (COPY_NOTIFY, RFC 7862 4.6.2, 15.3).
#include <functional>

#include "testing/nfs/nfs4_delegations_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

const std::string kContent = "what is copied";

// The holder of the fixture has a file open that the other client, another server, is to read.
class Nfs4CopyNotify : public Nfs4DelegationsServed {
 protected:
  explicit Nfs4CopyNotify(const Nfs4Options& options = {}) : Nfs4DelegationsServed(options) {
    minor_ = 2;
    as_user(0);
  }
  void SetUp() override {
    Nfs4DelegationsServed::SetUp();
    holder_client_.channel.origin().netid = "tcp";
    holder_client_.channel.origin().local = {"192.0.2.9", 2049};
    file_ = open(open_args("file", kForBoth | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG, false));
    ASSERT_EQ(run({putfh(file_.handle), write_op(file_.stateid, 0, kContent)}).status, v4::NFS4_OK);
  }
  void as_user(std::uint32_t uid) { Nfs4Served::as(uid, uid); }

  static Op notify_op(const v4::stateid4& stateid, std::string destination = "a server") {
    v4::COPY_NOTIFY4args args;
    args.cna_src_stateid = stateid;
    args.cna_destination_server.nl_type = v4::NL4_NAME;
    args.cna_destination_server.nl_name() = std::move(destination);
    return op(v4::OP_COPY_NOTIFY, &Op::opoffload_notify, args);
  }
  v4::COPY_NOTIFY4res notify(const Opened& file) {
    const Res results = run({putfh(file.handle), notify_op(file.stateid)});
    EXPECT_EQ(results.resarray.size(), 2u);
    return results.resarray.back().opcopy_notify();
  }
  v4::stateid4 noticed() {
    const v4::COPY_NOTIFY4res results = notify(file_);
    EXPECT_EQ(results.cnr_status, v4::NFS4_OK);
    return results.cnr_status == v4::NFS4_OK ? results.resok4().cnr_stateid : v4::stateid4{};
  }
  Res by_other(std::vector<Op> operations) {
    operations.insert(operations.begin(), putfh(file_.handle));
    return as(other_, [&] { return run(operations); });
  }
  v4::nfsstat4 read_by_other(const v4::stateid4& stateid) {
    return by_other({read_op(stateid, 0, 100)}).status;
  }
  using Deed = std::pair<const char*, Op>;
  std::vector<Deed> deeds_of_all(const v4::stateid4& stateid) {
    v4::LOCK4args lock{v4::READ_LT, false, 0, 10, {}};
    lock.locker.new_lock_owner = true;
    lock.locker.open_owner() = {0, stateid, 0, {clientid_, Rope::copy_of(bytes_of("o"))}};
    v4::LOCK4args more{v4::READ_LT, false, 0, 10, {}};
    more.locker.lock_owner() = {stateid, 0};
    v4::SETATTR4args size;
    size.stateid = stateid;
    size.obj_attributes.attrmask = {1u << v4::FATTR4_SIZE};
    size.obj_attributes.attr_vals = Rope::copy_of(std::vector<std::byte>(8));
    return {
        {"WRITE", write_op(stateid, 0, "X")},
        {"SETATTR", op(v4::OP_SETATTR, &Op::opsetattr, size)},
        {"LOCK", op(v4::OP_LOCK, &Op::oplock, lock)},
        {"LOCK of more", op(v4::OP_LOCK, &Op::oplock, more)},
        {"LOCKU", op(v4::OP_LOCKU, &Op::oplocku, {v4::READ_LT, 0, stateid, 0, 10})},
        {"OPEN_DOWNGRADE",
         op(v4::OP_OPEN_DOWNGRADE, &Op::opopen_downgrade, {stateid, 0, kForReading, 0})},
        {"DELEGRETURN", op(v4::OP_DELEGRETURN, &Op::opdelegreturn, {stateid})},
        {"CLOSE", op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{0, stateid})},
        {"FREE_STATEID", op(v4::OP_FREE_STATEID, &Op::opfree_stateid, {stateid})},
    };
  }
  static std::vector<Deed> deeds_of_4_2(const v4::stateid4& stateid) {
    return {
        {"SEEK", op(v4::OP_SEEK, &Op::opseek, {stateid, 0, v4::NFS4_CONTENT_DATA})},
        {"ALLOCATE", op(v4::OP_ALLOCATE, &Op::opallocate, {stateid, 0, 10})},
        {"DEALLOCATE", op(v4::OP_DEALLOCATE, &Op::opdeallocate, {stateid, 0, 10})},
        {"COPY_NOTIFY", notify_op(stateid)},
        {"OFFLOAD_STATUS", op(v4::OP_OFFLOAD_STATUS, &Op::opoffload_status, {stateid})},
        {"OFFLOAD_CANCEL", op(v4::OP_OFFLOAD_CANCEL, &Op::opoffload_cancel, {stateid})},
    };
  }
  v4::nfsstat4 cancel(const v4::stateid4& stateid) {
    return run({putfh(file_.handle),
                op(v4::OP_OFFLOAD_CANCEL, &Op::opoffload_cancel, v4::OFFLOAD_CANCEL4args{stateid})})
        .status;
  }

  Opened file_;
};

TEST_F(Nfs4CopyNotify, tells_where_and_how_and_for_how_long_the_file_can_be_read) {
  const v4::COPY_NOTIFY4res results = notify(file_);
  ASSERT_EQ(results.cnr_status, v4::NFS4_OK);
  const v4::COPY_NOTIFY4resok& ok = results.resok4();
  EXPECT_EQ(ok.cnr_lease_time, (v4::nfstime4{90, 0}));
  EXPECT_NE(ok.cnr_stateid.other, file_.stateid.other);
  ASSERT_EQ(ok.cnr_source_server.size(), 1u);
  ASSERT_EQ(ok.cnr_source_server[0].nl_type, v4::NL4_NETADDR);
  EXPECT_EQ(ok.cnr_source_server[0].nl_addr(), (v4::netaddr4{"tcp", "192.0.2.9.8.1"}));
}

TEST_F(Nfs4CopyNotify, lets_another_client_read) {
  const v4::stateid4 stateid = noticed();
  Res results = by_other({read_op(stateid, 0, 100)});
  ASSERT_EQ(results.status, v4::NFS4_OK);
  EXPECT_EQ(text(results.resarray.back().opread().resok4().data), kContent);
  results = by_other({op(v4::OP_READ_PLUS, &Op::opread_plus, v4::READ_PLUS4args{stateid, 0, 100})});
  EXPECT_EQ(results.status, v4::NFS4_OK);
  minor_ = 1;
  EXPECT_EQ(read_by_other(stateid), v4::NFS4_OK) << "RFC 7862 4.6.2: 4.x, where x >= 1";
  EXPECT_EQ(compound({putfh(file_.handle), read_op(stateid, 0, 100)}, 0).status,
            v4::NFS4ERR_STALE_STATEID);
}

TEST_F(Nfs4CopyNotify, stands_for_the_open_against_what_others_deny) {
  const v4::OPEN4args denying = [&] {
    v4::OPEN4args args =
        open_args("guarded", kForBoth | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG, true);
    args.share_deny = v4::OPEN4_SHARE_DENY_BOTH;
    return args;
  }();
  file_ = open(denying);
  const v4::stateid4 stateid = noticed();
  EXPECT_EQ(read_by_other({}), v4::NFS4ERR_LOCKED);
  EXPECT_EQ(read_by_other(stateid), v4::NFS4_OK);
}

TEST_F(Nfs4CopyNotify, leaves_the_right_to_read_to_the_credentials_of_who_reads) {
  v4::SETATTR4args mode;
  mode.obj_attributes.attrmask = {0, 1u << (v4::FATTR4_MODE - 32)};
  xdr::Encoder value;
  value.u32(0600);
  mode.obj_attributes.attr_vals = std::move(value).finish().rope();
  ASSERT_EQ(run({putfh(file_.handle), op(v4::OP_SETATTR, &Op::opsetattr, mode)}).status,
            v4::NFS4_OK);
  const v4::stateid4 stateid = noticed();
  as_user(4242);
  EXPECT_EQ(read_by_other(stateid), v4::NFS4ERR_ACCESS);
  as_user(0);
  EXPECT_EQ(read_by_other(stateid), v4::NFS4_OK);
}

TEST_F(Nfs4CopyNotify, lets_whoever_has_its_stateid_read_and_do_nothing_else) {
  const v4::stateid4 stateid = noticed();
  for (const std::uint32_t minor : {1u, 2u}) {
    minor_ = minor;
    for (const auto& [name, deed] : deeds_of_all(stateid)) {
      EXPECT_EQ(by_other({deed}).status, v4::NFS4ERR_BAD_STATEID) << name << " in 4." << minor;
      EXPECT_EQ(run({putfh(file_.handle), deed}).status, v4::NFS4ERR_BAD_STATEID)
          << name << " by the client itself in 4." << minor;
    }
  }
  for (const auto& [name, deed] : deeds_of_4_2(stateid))
    EXPECT_EQ(by_other({deed}).status, v4::NFS4ERR_BAD_STATEID) << name;
  const v4::COPY4args copy{stateid, {}, 0, 0, 0, true, true, {}};
  EXPECT_EQ(as(other_,
               [&] {
                 const Opened to = create("to");
                 return run({putfh(file_.handle), op(v4::OP_SAVEFH), putfh(to.handle),
                             op(v4::OP_COPY, &Op::opcopy, copy)});
               })
                .status,
            v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(read_by_other(stateid), v4::NFS4_OK);
}

TEST_F(Nfs4CopyNotify, is_unknown_to_clients_of_version_4_0) {
  const v4::stateid4 stateid = noticed();
  for (auto& [name, deed] : deeds_of_all(stateid)) {
    if (deed.argop == v4::OP_FREE_STATEID) continue;
    EXPECT_EQ(compound({putfh(file_.handle), deed}, 0).status, v4::NFS4ERR_STALE_STATEID) << name;
  }
}

TEST_F(Nfs4CopyNotify, lets_nobody_read_who_guesses) {
  v4::stateid4 guessed = noticed();
  guessed.other[11] ^= std::byte{1};
  EXPECT_EQ(read_by_other(guessed), v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(read_by_other(file_.stateid), v4::NFS4ERR_BAD_STATEID) << "the open is the holder's";
}

TEST_F(Nfs4CopyNotify, ends_with_the_open) {
  const v4::stateid4 stateid = noticed();
  EXPECT_EQ(close(file_), v4::NFS4_OK);
  EXPECT_EQ(read_by_other(stateid), v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs4CopyNotify, ends_when_it_is_cancelled) {
  const v4::stateid4 stateid = noticed();
  EXPECT_EQ(cancel(stateid), v4::NFS4_OK);
  EXPECT_EQ(cancel(stateid), v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(read_by_other(stateid), v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs4CopyNotify, is_cancelled_where_copies_do_not_go_on) {
  nfs4_.stop_callbacks();
  EXPECT_EQ(cancel(noticed()), v4::NFS4_OK);
}

TEST_F(Nfs4CopyNotify, lasts_as_long_as_it_is_used) {
  const v4::stateid4 stateid = noticed();
  for (int i = 0; i < 3; ++i) {
    loop_.pass(89s);
    EXPECT_EQ(read_by_other(stateid), v4::NFS4_OK);
    EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK);
  }
  for (int i = 0; i < 2; ++i) {
    loop_.pass(46s);
    EXPECT_EQ(read_by_other({}), v4::NFS4_OK);
    EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK);
  }
  EXPECT_EQ(read_by_other(stateid), v4::NFS4ERR_BAD_STATEID);
}

// It waits for no other: what it has open is there until another client wants it.
TEST_F(Nfs4CopyNotify, lasts_while_its_client_is_silent_and_nobody_wants_what_it_has) {
  const v4::stateid4 stateid = noticed();
  for (int i = 0; i < 3; ++i) {
    loop_.pass(60s);
    EXPECT_EQ(read_by_other(stateid), v4::NFS4_OK);
  }
}

TEST_F(Nfs4CopyNotify, ends_with_its_client) {
  const v4::stateid4 stateid = noticed();
  const v4::EXCHANGE_ID4resok restarted = exchange_id("the holder", 2);
  EXPECT_EQ(read_by_other(stateid), v4::NFS4_OK);
  make_session(holder_args(restarted));
  EXPECT_EQ(read_by_other(stateid), v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs4CopyNotify, is_made_with_the_current_stateid) {
  const Res results =
      run({putrootfh(), lookup("data"),
           op(v4::OP_OPEN, &Op::opopen, open_args("file", kForReading, false, "a reader")),
           notify_op({1, {}})});
  ASSERT_EQ(results.status, v4::NFS4_OK);
  v4::COPY_NOTIFY4res notice = results.resarray.back().opcopy_notify();
  EXPECT_EQ(read_by_other(notice.resok4().cnr_stateid), v4::NFS4_OK);
  EXPECT_EQ(run({putfh(file_.handle), notify_op({1, {}})}).status, v4::NFS4ERR_BAD_STATEID);
}

// RFC 7862 15.3.3: the user and the destination.
TEST_F(Nfs4CopyNotify, is_renewed_by_the_same_user_for_the_same_destination) {
  const v4::stateid4 stateid = noticed();
  EXPECT_EQ(noticed(), stateid);
  const Res other = run({putfh(file_.handle), notify_op(file_.stateid, "another server")});
  ASSERT_EQ(other.status, v4::NFS4_OK);
  v4::COPY_NOTIFY4res notice = other.resarray.back().opcopy_notify();
  EXPECT_NE(notice.resok4().cnr_stateid, stateid);
  as_user(4242);
  EXPECT_NE(noticed(), stateid);
}

TEST_F(Nfs4CopyNotify, wants_an_open_for_reading) {
  const Opened writing = open(open_args("file", v4::OPEN4_SHARE_ACCESS_WRITE, false, "a writer"));
  EXPECT_EQ(notify(writing).cnr_status, v4::NFS4ERR_OPENMODE);
  EXPECT_EQ(notify({v4::NFS4_OK, {}, file_.handle}).cnr_status, v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(by_other({notify_op(file_.stateid)}).status, v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(run({putrootfh(), notify_op(file_.stateid)}).status, v4::NFS4ERR_WRONG_TYPE);
  EXPECT_EQ(run({notify_op(file_.stateid)}).status, v4::NFS4ERR_NOFILEHANDLE);
  minor_ = 1;
  EXPECT_EQ(run({putfh(file_.handle), notify_op(file_.stateid)}).status, v4::NFS4ERR_OP_ILLEGAL);
}

TEST_F(Nfs4CopyNotify, is_granted_for_a_number_of_files) {
  const std::uint32_t kOfClient = state::CopyNoticeLimits{}.of_client;
  for (std::uint32_t i = 0; i < kOfClient; ++i)
    ASSERT_EQ(run({putfh(file_.handle), notify_op(file_.stateid, std::to_string(i))}).status,
              v4::NFS4_OK)
        << i;
  EXPECT_EQ(notify(file_).cnr_status, v4::NFS4ERR_DELAY);
  EXPECT_EQ(close(file_), v4::NFS4_OK);
  file_ = open(open_args("file", kForReading, false));
  EXPECT_EQ(notify(file_).cnr_status, v4::NFS4_OK) << "the others went with their open";
}

TEST_F(Nfs4CopyNotify, takes_room_for_a_lease_where_nobody_reads_by_it) {
  for (std::uint32_t i = 0; i < state::CopyNoticeLimits{}.of_client; ++i)
    run({putfh(file_.handle), notify_op(file_.stateid, std::to_string(i))});
  EXPECT_EQ(notify(file_).cnr_status, v4::NFS4ERR_DELAY);
  for (int i = 0; i < 2; ++i) {
    loop_.pass(60s);
    EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK);
  }
  EXPECT_EQ(notify(file_).cnr_status, v4::NFS4_OK);
}

TEST_F(Nfs4CopyNotify, takes_no_room_when_its_client_has_ended) {
  const state::CopyNoticeLimits limits;
  for (std::uint32_t start = 0; start <= limits.all / limits.of_client; ++start) {
    make_session(holder_args(exchange_id("the holder", 2 + static_cast<int>(start))));
    file_ = open(open_args("file", kForReading | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG, false));
    for (std::uint32_t i = 0; i < limits.of_client; ++i)
      ASSERT_EQ(run({putfh(file_.handle), notify_op(file_.stateid, std::to_string(i))}).status,
                v4::NFS4_OK)
          << start;
  }
}

// However long the addresses and names are that the client sends.
TEST_F(Nfs4CopyNotify, takes_any_destination) {
  const std::string kLong(60000, 'x');
  EXPECT_EQ(run({putfh(file_.handle), notify_op(file_.stateid, kLong)}).status, v4::NFS4_OK);
}

}  // namespace
}  // namespace stag::nfs::nfs4
