// The back channel (RFC 8881 2.10.3.1, 20; RFC 8167 3.2) and delegations (RFC 8881 10.4).
#include "testing/nfs/nfs4_delegations_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

class Nfs4Delegations : public Nfs4DelegationsServed {};

// RFC 8881 18.36.3: with its RPC header.
TEST_F(Nfs4Delegations, are_asked_about_with_no_longer_a_Reply_than_the_session_has) {
  PROVES("R8267-6.5.2-b");
  for (const std::uint32_t most : {256u, 270u, 4096u}) {
    v4::CREATE_SESSION4args args = holder_args(exchange_id("holder " + std::to_string(most)));
    args.csa_back_chan_attrs.ca_maxresponsesize = most;
    const v4::CREATE_SESSION4resok session = make_session(args);
    ASSERT_EQ(session.csr_back_chan_attrs.ca_maxresponsesize, most);
    const v4::open_delegation4 held = open_for(kForBoth);
    ASSERT_EQ(held.delegation_type, v4::OPEN_DELEGATE_WRITE);
    close({v4::NFS4_OK, opened_, handle_});
    holder_client_.change = 7;
    as(other_, [this] { return run({putfh(handle_), getattr({1u << v4::FATTR4_SIZE})}).status; });
    ASSERT_FALSE(holder_client_.asked.empty());
    EXPECT_EQ(holder_client_.asked.back().argarray.back().argop, v4::OP_CB_GETATTR);
    EXPECT_LE(holder_client_.reply_max(), most);
    EXPECT_LE(holder_client_.reply_size(), holder_client_.reply_max());
    EXPECT_EQ(run(return_ops(held.write().stateid)).status, v4::NFS4_OK);
  }
}

TEST_F(Nfs4Delegations, are_given_when_the_client_can_be_called) {
  PROVES("R8167-6-b");
  loop_.pass(1s);
  EXPECT_EQ(holder_client_.probes, 0) << "nothing is sent before it is needed";
  const v4::open_delegation4 read = open_for(kForReading);
  EXPECT_EQ(read.delegation_type, v4::OPEN_DELEGATE_READ);
  EXPECT_EQ(holder_client_.probes, 1);
  create("another");
  EXPECT_EQ(holder_client_.probes, 1) << "it is known now";
}

TEST_F(Nfs4Delegations, write_delegations_go_with_an_open_for_writing) {
  EXPECT_EQ(open_for(kForBoth).delegation_type, v4::OPEN_DELEGATE_WRITE);
  EXPECT_EQ(run({putfh(handle_), write_op(opened_, 0, "x")}).status, v4::NFS4_OK);
}

TEST_F(Nfs4Delegations, are_not_given_without_a_back_channel) {
  PROVES("R8167-3.2-d");
  act_as(other_);
  const v4::open_delegation4 none = open_for(kForReading, v4::OPEN4_SHARE_ACCESS_WANT_READ_DELEG);
  ASSERT_EQ(none.delegation_type, v4::OPEN_DELEGATE_NONE_EXT);
  EXPECT_EQ(none.od_whynone().ond_why, v4::WND4_RESOURCE);
  EXPECT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_NONE);
}

TEST_F(Nfs4Delegations, are_not_given_to_a_client_that_does_not_answer) {
  holder_client_.answers = false;
  EXPECT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_NONE);
}

TEST_F(Nfs4Delegations, are_not_given_to_a_client_that_wants_none) {
  const auto why = [&](std::uint32_t want) {
    const v4::open_delegation4 none = open_for(kForReading, want);
    EXPECT_EQ(none.delegation_type, v4::OPEN_DELEGATE_NONE_EXT);
    return none.od_whynone().ond_why;
  };
  EXPECT_EQ(why(v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG), v4::WND4_NOT_WANTED);
  EXPECT_EQ(why(v4::OPEN4_SHARE_ACCESS_WANT_CANCEL), v4::WND4_CANCELLED);
  EXPECT_TRUE(holder_client_.asked.empty());
}

// RFC 8881 18.16.3.
TEST_F(Nfs4Delegations, are_wanted_by_bits_that_mean_something) {
  const auto status = [&](std::uint32_t bits) {
    return open(open_args("file", kForReading | bits, false)).status;
  };
  EXPECT_EQ(status(0x600), v4::NFS4ERR_INVAL);
  EXPECT_EQ(status(0x4), v4::NFS4ERR_INVAL);
  EXPECT_EQ(status(0x80000000), v4::NFS4ERR_INVAL);
  // Without effect: nothing is pushed or signalled later.
  EXPECT_EQ(status(v4::OPEN4_SHARE_ACCESS_WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL |
                   v4::OPEN4_SHARE_ACCESS_WANT_PUSH_DELEG_WHEN_UNCONTENDED),
            v4::NFS4_OK);
}

TEST_F(Nfs4Delegations, are_not_turned_into_those_of_the_other_kind) {
  const auto why = [&](std::uint32_t access, std::uint32_t want) {
    const v4::open_delegation4 none = open_for(access, want);
    EXPECT_EQ(none.delegation_type, v4::OPEN_DELEGATE_NONE_EXT);
    return none.od_whynone().ond_why;
  };
  const v4::open_delegation4 read = open_for(kForReading);
  ASSERT_EQ(read.delegation_type, v4::OPEN_DELEGATE_READ);
  EXPECT_EQ(why(kForBoth, v4::OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG), v4::WND4_NOT_SUPP_UPGRADE);
  EXPECT_EQ(run(return_ops(read.read().stateid)).status, v4::NFS4_OK);
  ASSERT_EQ(open_for(kForBoth).delegation_type, v4::OPEN_DELEGATE_WRITE);
  EXPECT_EQ(why(kForReading, v4::OPEN4_SHARE_ACCESS_WANT_READ_DELEG), v4::WND4_NOT_SUPP_DOWNGRADE);
  EXPECT_EQ(why(kForBoth, v4::OPEN4_SHARE_ACCESS_WANT_ANY_DELEG), v4::WND4_CONTENTION);
}

// An operation that a server may lack (RFC 8881 17).
TEST_F(Nfs4Delegations, are_not_to_be_had_without_an_OPEN) {
  open_for(kForReading);
  v4::WANT_DELEGATION4args args;
  args.wda_want = v4::OPEN4_SHARE_ACCESS_WANT_READ_DELEG;
  args.wda_claim.dc_claim = v4::CLAIM_FH;
  EXPECT_EQ(run({putfh(handle_), op(v4::OP_WANT_DELEGATION, &Op::opwant_delegation, args)}).status,
            v4::NFS4ERR_NOTSUPP);
}

TEST_F(Nfs4Delegations, are_not_given_of_a_file_that_another_client_writes) {
  ASSERT_EQ(other_opens(kForBoth), v4::NFS4_OK);
  const v4::open_delegation4 none = open_for(kForReading, v4::OPEN4_SHARE_ACCESS_WANT_ANY_DELEG);
  ASSERT_EQ(none.delegation_type, v4::OPEN_DELEGATE_NONE_EXT);
  EXPECT_EQ(none.od_whynone().ond_why, v4::WND4_CONTENTION);
}

TEST_F(Nfs4Delegations, are_recalled_on_the_connection_that_the_client_made) {
  PROVES("R8167-3.2-a");
  const v4::open_delegation4 read = open_for(kForReading);
  ASSERT_EQ(read.delegation_type, v4::OPEN_DELEGATE_READ);
  const std::uint32_t opened_with = sequenceid_;
  holder_ = now_acting();
  gives_back();
  EXPECT_EQ(other_opens(kForReading), v4::NFS4_OK);
  EXPECT_TRUE(holder_client_.asked.empty()) << "readers share";
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4_OK) << "it was given back in time";
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(holder_client_.recall(0).stateid, read.read().stateid);
  EXPECT_EQ(holder_client_.recall(0).fh, handle_);
  EXPECT_EQ(holder_client_.asked[0].minorversion, 1u);
  const v4::CB_SEQUENCE4args& sequence = holder_client_.sequence(0);
  EXPECT_EQ(sequence.csa_sessionid, holder_.session);
  EXPECT_EQ(sequence.csa_sequenceid, 1u);
  ASSERT_EQ(sequence.csa_referring_call_lists.size(), 1u);
  EXPECT_EQ(sequence.csa_referring_call_lists[0].rcl_referring_calls[0].rc_sequenceid, opened_with);
}

TEST_F(Nfs4Delegations, are_recalled_with_the_credentials_of_the_session) {
  open_for(kForReading);
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4ERR_DELAY);
  ASSERT_EQ(holder_client_.callers.size(), 1u);
  EXPECT_EQ(holder_client_.callers[0].uid, 17u);
  EXPECT_EQ(holder_client_.callers[0].gid, 18u);
}

TEST_F(Nfs4Delegations, are_revoked_when_they_have_delayed_others_for_a_lease) {
  const v4::open_delegation4 read = open_for(kForReading);
  holder_ = now_acting();
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4ERR_DELAY);
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4ERR_DELAY);
  EXPECT_EQ(holder_client_.asked.size(), 1u) << "it is asked once";
  for (int i = 0; i < 3; ++i) {
    loop_.pass(30s);
    as(holder_, [&] { return status_flags(); });
    as(other_, [&] { return status_flags(); });
  }
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4_OK);
  act_as(holder_);
  EXPECT_EQ(status_flags(), v4::SEQ4_STATUS_RECALLABLE_STATE_REVOKED);
  const v4::stateid4& stateid = read.read().stateid;
  EXPECT_EQ(run({putfh(handle_), read_op(stateid, 0, 1)}).status, v4::NFS4ERR_DELEG_REVOKED);
  const Op free = op(v4::OP_FREE_STATEID, &Op::opfree_stateid, v4::FREE_STATEID4args{stateid});
  EXPECT_EQ(run({free}).status, v4::NFS4_OK);
  EXPECT_EQ(status_flags(), 0u) << "until it is freed";
}

// The server may have told other clients that want the file to come later.
TEST_F(Nfs4Delegations, are_not_given_anew_after_a_recall_before_others_come_again) {
  const v4::open_delegation4 read = open_for(kForReading);
  holder_ = now_acting();
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4ERR_DELAY);
  loop_.pass(20s);
  act_as(holder_);
  ASSERT_EQ(run(return_ops(read.read().stateid)).status, v4::NFS4_OK);
  loop_.pass(28s);
  EXPECT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_NONE);
  loop_.pass(4s);
  EXPECT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_READ);
}

TEST_F(Nfs4Delegations, are_not_given_for_some_minutes_to_a_client_that_kept_one) {
  as(other_, [&] { return close(create("another file")); });
  const v4::stateid4 kept = open_for(kForReading).read().stateid;
  holder_ = now_acting();
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4ERR_DELAY);
  const auto pass = [&](int times) {
    for (int i = 0; i < times; ++i) {
      loop_.pass(31s);
      as(holder_, [&] { return status_flags(); });
      as(other_, [&] { return status_flags(); });
    }
  };
  pass(3);
  act_as(holder_);
  const Op free = op(v4::OP_FREE_STATEID, &Op::opfree_stateid, v4::FREE_STATEID4args{kept});
  ASSERT_EQ(run({free}).status, v4::NFS4_OK);
  const auto given = [&](const char* name) {
    return open_for(kForReading, 0, name).delegation_type;
  };
  EXPECT_EQ(given("another file"), v4::OPEN_DELEGATE_NONE);
  EXPECT_EQ(given("file"), v4::OPEN_DELEGATE_NONE);
  holder_ = now_acting();
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4_OK) << "it is not in anybody's way again";
  pass(10);
  act_as(holder_);
  EXPECT_EQ(given("another file"), v4::OPEN_DELEGATE_READ);
}

TEST_F(Nfs4Delegations, stay_when_their_holder_uses_the_file) {
  const v4::open_delegation4 write = open_for(kForBoth);
  ASSERT_EQ(write.delegation_type, v4::OPEN_DELEGATE_WRITE);
  const v4::stateid4 stateid = write.write().stateid;
  EXPECT_EQ(run({putfh(handle_), write_op(stateid, 0, "hello"), read_op(stateid, 0, 5),
                 write_op({}, 0, "x"), getattr({1u << v4::FATTR4_SIZE})})
                .status,
            v4::NFS4_OK);
  open_for(kForBoth);
  EXPECT_TRUE(holder_client_.asked.empty());
  EXPECT_EQ(run(return_ops(stateid)).status, v4::NFS4_OK);
  EXPECT_EQ(run(return_ops(stateid)).status, v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs4Delegations, read_delegations_do_not_allow_writing) {
  const v4::stateid4 stateid = open_for(kForReading).read().stateid;
  EXPECT_EQ(run({putfh(handle_), read_op(stateid, 0, 5)}).status, v4::NFS4_OK);
  EXPECT_EQ(run({putfh(handle_), write_op(stateid, 0, "x")}).status, v4::NFS4ERR_OPENMODE);
}

TEST_F(Nfs4Delegations, are_nothing_to_clients_of_version_4_0) {
  const v4::stateid4 stateid = open_for(kForReading).read().stateid;
  const auto in_4_0 = [&](const Op& last) { return compound({putfh(handle_), last}, 0).status; };
  EXPECT_EQ(in_4_0(op(v4::OP_DELEGRETURN, &Op::opdelegreturn, v4::DELEGRETURN4args{stateid})),
            v4::NFS4ERR_BAD_STATEID);
  EXPECT_NE(in_4_0(op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{1, stateid})), v4::NFS4_OK);
  EXPECT_NE(in_4_0(op(v4::OP_LOCKU, &Op::oplocku, {v4::WRITE_LT, 1, stateid, 0, 9})), v4::NFS4_OK);
  EXPECT_EQ(run({putfh(handle_), read_op(stateid, 0, 1)}).status, v4::NFS4_OK) << "it stands";
}

TEST_F(Nfs4Delegations, are_claimed_by_opens_while_they_are_recalled) {
  const v4::stateid4 stateid = open_for(kForReading).read().stateid;
  holder_ = now_acting();
  ASSERT_EQ(other_opens(kForBoth), v4::NFS4ERR_DELAY);
  act_as(holder_);
  v4::OPEN4args args = open_args("file", kForReading, false, "a late owner");
  args.claim.claim = v4::CLAIM_DELEGATE_CUR;
  args.claim.delegate_cur_info() = {stateid, "file"};
  EXPECT_EQ(open(args).status, v4::NFS4_OK);
  args.claim.claim = v4::CLAIM_DELEG_CUR_FH;
  args.claim.oc_delegate_stateid() = stateid;
  EXPECT_EQ(run({putfh(handle_), op(v4::OP_OPEN, &Op::opopen, args)}).status, v4::NFS4_OK);
  args.claim.oc_delegate_stateid() = opened_;
  EXPECT_EQ(run({putfh(handle_), op(v4::OP_OPEN, &Op::opopen, args)}).status,
            v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs4Delegations, are_recalled_by_all_that_changes_the_file) {
  const Op save = op(v4::OP_SAVEFH);
  const std::vector<std::pair<const char*, std::vector<Op>>> changes = {
      {"WRITE", {putrootfh(), lookup("data"), lookup("file"), write_op({}, 0, "x")}},
      {"SETATTR",
       {putrootfh(), lookup("data"), lookup("file"),
        op(v4::OP_SETATTR, &Op::opsetattr,
           v4::SETATTR4args{
               {},
               {{0, 1u << (v4::FATTR4_MODE - 32)}, Rope::copy_of(std::array<std::byte, 4>{})}})}},
      {"LINK",
       {putrootfh(), lookup("data"), lookup("file"), save, putrootfh(), lookup("data"),
        op(v4::OP_LINK, &Op::oplink, v4::LINK4args{"link"})}},
      {"RENAME",
       {putrootfh(), lookup("data"), save,
        op(v4::OP_RENAME, &Op::oprename, v4::RENAME4args{"file", "f"})}},
      {"REMOVE",
       {putrootfh(), lookup("data"), op(v4::OP_REMOVE, &Op::opremove, v4::REMOVE4args{"file"})}},
  };
  for (const auto& [name, operations] : changes) {
    holder_client_.asked.clear();
    act_as(holder_);
    const v4::open_delegation4 read = open_for(kForReading);
    ASSERT_EQ(read.delegation_type, v4::OPEN_DELEGATE_READ) << name;
    holder_ = now_acting();
    const v4::nfsstat4 status = as(other_, [&, &list = operations] { return run(list).status; });
    EXPECT_EQ(status, v4::NFS4ERR_DELAY) << name;
    EXPECT_EQ(holder_client_.asked.size(), 1u) << name;
    act_as(holder_);
    run(return_ops(read.read().stateid));
    holder_ = now_acting();
    loop_.pass(32s);
  }
}

TEST_F(Nfs4Delegations, write_delegations_are_recalled_by_every_use_of_the_file) {
  const v4::open_delegation4 write = open_for(kForBoth);
  ASSERT_EQ(write.delegation_type, v4::OPEN_DELEGATE_WRITE);
  holder_ = now_acting();
  const auto other = [&](const Op& last) {
    return as(other_, [&] {
      return run({putrootfh(), lookup("data"), lookup("file"), last}).status;
    });
  };
  EXPECT_EQ(other(getattr({1u << v4::FATTR4_TYPE})), v4::NFS4_OK) << "this does not change";
  EXPECT_TRUE(holder_client_.asked.empty());
  EXPECT_EQ(other(read_op({}, 0, 1)), v4::NFS4ERR_DELAY);
  EXPECT_EQ(other_opens(kForReading), v4::NFS4ERR_DELAY);
  EXPECT_EQ(holder_client_.asked.size(), 1u);
}

TEST_F(Nfs4Delegations, are_taken_without_a_recall_from_a_client_that_fell_silent) {
  open_for(kForReading);
  loop_.pass(60s);
  as(other_, [&] { return status_flags(); });
  loop_.pass(60s);
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4_OK);
  EXPECT_TRUE(holder_client_.asked.empty());
}

TEST_F(Nfs4Delegations, are_recalled_again_when_the_client_wants_time) {
  open_for(kForReading);
  holder_client_.statuses = {v4::NFS4ERR_DELAY, v4::NFS4ERR_BAD_STATEID};
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4ERR_DELAY);
  loop_.pass(4s);
  ASSERT_EQ(holder_client_.asked.size(), 3u);
  EXPECT_EQ(holder_client_.sequence(1).csa_sequenceid, 2u);
  loop_.pass(10s);
  EXPECT_EQ(holder_client_.asked.size(), 3u) << "it said that it heard";
}

TEST_F(Nfs4Delegations, are_recalled_on_the_next_connection_when_a_recall_is_lost_with_its_own) {
  const v4::open_delegation4 read = open_for(kForReading);
  holder_ = now_acting();
  holder_client_.answers = false;
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4ERR_DELAY);
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  act_as(holder_);
  EXPECT_EQ(status_flags(), v4::SEQ4_STATUS_CB_PATH_DOWN | v4::SEQ4_STATUS_CB_PATH_DOWN_SESSION);
  holder_client_.disconnect();
  holder_client_.connect();
  holder_client_.answers = true;
  // The first one came after all.
  holder_client_.statuses = {v4::NFS4ERR_RETRY_UNCACHED_REP};
  ASSERT_EQ(bind(v4::CDFC4_BACK).bctsr_status, v4::NFS4_OK);
  EXPECT_EQ(status_flags(), 0u);
  loop_.pass(5s);
  ASSERT_EQ(holder_client_.asked.size(), 2u);
  EXPECT_EQ(holder_client_.sequence(1).csa_sequenceid, 1u) << "the same number";
  EXPECT_EQ(holder_client_.recall(1).stateid, read.read().stateid);
}

// Both recalls go with one number, and a client need not compare them (RFC 8881 2.10.6.1.3).
TEST_F(Nfs4Delegations, are_recalled_anew_where_the_client_may_answer_for_another_that_was_lost) {
  as(other_, [&] { return close(create("file2")); });
  const v4::stateid4 first = open_for(kForReading).read().stateid;
  const auto first_handle = handle_;
  const v4::stateid4 second = open_for(kForReading, 0, "file2").read().stateid;
  holder_ = now_acting();
  holder_client_.answers = false;
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4ERR_DELAY);
  const auto reconnect = [&] {
    act_as(holder_);
    holder_client_.disconnect();
    holder_client_.connect();
  };
  reconnect();
  const Op give_back = op(v4::OP_DELEGRETURN, &Op::opdelegreturn, v4::DELEGRETURN4args{first});
  ASSERT_EQ(run({putfh(first_handle), give_back}).status, v4::NFS4_OK);
  ASSERT_EQ(bind(v4::CDFC4_BACK).bctsr_status, v4::NFS4_OK);
  EXPECT_EQ(other_opens(kForBoth, "file2"), v4::NFS4ERR_DELAY);
  loop_.pass(5s);
  reconnect();
  holder_client_.answers = true;
  holder_client_.statuses = {v4::NFS4ERR_RETRY_UNCACHED_REP};  // of the first one
  const std::size_t lost = holder_client_.asked.size();
  ASSERT_EQ(bind(v4::CDFC4_BACK).bctsr_status, v4::NFS4_OK);
  loop_.pass(5s);
  ASSERT_EQ(holder_client_.asked.size(), lost + 2);
  EXPECT_EQ(holder_client_.sequence(lost).csa_sequenceid, 1u);
  EXPECT_EQ(holder_client_.sequence(lost + 1).csa_sequenceid, 2u);
  EXPECT_EQ(holder_client_.recall(lost + 1).stateid, second);
}

TEST_F(Nfs4Delegations, are_recalled_one_after_the_other_where_there_are_more_than_slots) {
  constexpr int kFiles = 5;
  const auto name = [](int i) { return "file" + std::to_string(i); };
  for (int i = 0; i < kFiles; ++i) as(other_, [&] { return close(create(name(i))); });
  for (int i = 0; i < kFiles; ++i) open_for(kForReading, 0, name(i));
  for (int i = 0; i < kFiles; ++i) EXPECT_EQ(other_opens(kForBoth, name(i)), v4::NFS4ERR_DELAY);
  ASSERT_EQ(holder_client_.asked.size(), 5u);
  for (std::uint32_t i = 0; i < kFiles; ++i) {
    EXPECT_EQ(holder_client_.sequence(i).csa_slotid, 0u);
    EXPECT_EQ(holder_client_.sequence(i).csa_sequenceid, i + 1);
  }
}

TEST_F(Nfs4Delegations, are_not_recalled_for_ever_from_a_client_that_confuses_its_sequence) {
  open_for(kForReading);
  holder_ = now_acting();
  holder_client_.sequence_statuses = {v4::NFS4ERR_SEQ_MISORDERED, v4::NFS4ERR_SEQ_MISORDERED};
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4ERR_DELAY);
  loop_.pass(10s);
  EXPECT_EQ(holder_client_.asked.size(), 2u);
  act_as(holder_);
  EXPECT_EQ(status_flags(), v4::SEQ4_STATUS_BACKCHANNEL_FAULT);
}

class Nfs4BackChannel : public Nfs4Delegations {};

TEST_F(Nfs4BackChannel, is_the_connection_of_a_CREATE_SESSION_that_asks_for_one) {
  PROVES("R8167-3.2-b");
  v4::CREATE_SESSION4args args = holder_args(exchange_id("one more"));
  EXPECT_EQ(make_session(args).csr_flags, v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN);
  EXPECT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_READ);
  args = holder_args(exchange_id("not asked"));
  args.csa_flags = 0;
  EXPECT_EQ(make_session(args).csr_flags, 0u);
  EXPECT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_NONE);
}

TEST_F(Nfs4BackChannel, is_not_granted_where_no_credentials_are_known_or_no_calls_go_that_way) {
  v4::CREATE_SESSION4args args = holder_args(exchange_id("by Kerberos"));
  args.csa_sec_parms[0].cb_secflavor = v4::RPCSEC_GSS;
  args.csa_sec_parms[0].cbsp_gss_handles() = {};
  EXPECT_EQ(make_session(args).csr_flags, 0u);
  via_ = &channel_;
  EXPECT_EQ(make_session(holder_args(exchange_id("one way"))).csr_flags, 0u);
}

TEST_F(Nfs4BackChannel, is_no_connection_that_only_SEQUENCE_came_on) {
  v4::CREATE_SESSION4args args = holder_args(exchange_id("one more"));
  args.csa_flags = 0;
  make_session(args);
  for (int i = 0; i < 3; ++i) run({putrootfh()});
  EXPECT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_NONE);
}

TEST_F(Nfs4BackChannel, is_bound_as_far_as_asked_and_without_RDMA_mode) {
  holder_client_.connect();
  const v4::BIND_CONN_TO_SESSION4res both = bind(v4::CDFC4_FORE_OR_BOTH);
  ASSERT_EQ(both.bctsr_status, v4::NFS4_OK);
  EXPECT_EQ(both.bctsr_resok4().bctsr_dir, v4::CDFS4_BOTH);
  EXPECT_FALSE(both.bctsr_resok4().bctsr_use_conn_in_rdma_mode);
  via_ = &channel_;
  channel_.origin().connection = std::make_shared<rpc::Connection>();
  const v4::BIND_CONN_TO_SESSION4res fore = bind(v4::CDFC4_FORE_OR_BOTH);
  ASSERT_EQ(fore.bctsr_status, v4::NFS4_OK);
  EXPECT_EQ(fore.bctsr_resok4().bctsr_dir, v4::CDFS4_FORE);
  EXPECT_EQ(bind(v4::CDFC4_BACK).bctsr_status, v4::NFS4ERR_INVAL);
}

// A holder whose connection over RDMA has no use of its reverse direction.
class Nfs4BackChannelByTcp : public Nfs4DelegationsServed {
 protected:
  explicit Nfs4BackChannelByTcp(bool rdma = false) : Nfs4DelegationsServed(options(rdma)) {
    holder_client_.channel.origin().transport = rpc::TransportKind::Rdma;
    tcp_.channel.origin().transport = rpc::TransportKind::Tcp;
  }
  static Nfs4Options options(bool rdma) {
    Nfs4Options options;
    options.rdma_callbacks = rdma;
    return options;
  }
  v4::BIND_CONN_TO_SESSION4res bind_by(rpc::Channel& channel,
                                       v4::channel_dir_from_client4 direction) {
    via_ = &channel;
    const v4::BIND_CONN_TO_SESSION4res bound = bind(direction);
    via_ = &holder_client_.channel;
    return bound;
  }

  CallbackClient tcp_{loop_, server_};
};

TEST_F(Nfs4BackChannelByTcp, is_not_claimed_on_a_connection_over_RDMA) {
  EXPECT_EQ(make_session(holder_args(exchange_id("one more"))).csr_flags, 0u);
  EXPECT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_NONE);
  const v4::BIND_CONN_TO_SESSION4res fore = bind_by(holder_client_.channel, v4::CDFC4_FORE_OR_BOTH);
  ASSERT_EQ(fore.bctsr_status, v4::NFS4_OK);
  EXPECT_EQ(fore.bctsr_resok4().bctsr_dir, v4::CDFS4_FORE);
  EXPECT_EQ(bind_by(holder_client_.channel, v4::CDFC4_BACK).bctsr_status, v4::NFS4ERR_INVAL);
  EXPECT_EQ(holder_client_.probes, 0);
}

TEST_F(Nfs4BackChannelByTcp, is_the_connection_over_TCP_that_a_client_binds) {
  const v4::BIND_CONN_TO_SESSION4res back = bind_by(tcp_.channel, v4::CDFC4_BACK);
  ASSERT_EQ(back.bctsr_status, v4::NFS4_OK);
  EXPECT_EQ(back.bctsr_resok4().bctsr_dir, v4::CDFS4_BACK);
  const v4::open_delegation4 read = open_for(kForReading);
  ASSERT_EQ(read.delegation_type, v4::OPEN_DELEGATE_READ);
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4ERR_DELAY);
  ASSERT_EQ(tcp_.asked.size(), 1u);
  EXPECT_EQ(tcp_.recall(0).stateid, read.read().stateid);
  EXPECT_EQ(tcp_.probes, 1);
  EXPECT_EQ(holder_client_.probes, 0);
  EXPECT_TRUE(holder_client_.asked.empty());
}

TEST_F(Nfs4BackChannelByTcp, comes_with_a_session_that_is_made_over_TCP) {
  via_ = &tcp_.channel;
  EXPECT_EQ(make_session(holder_args(exchange_id("one more"))).csr_flags,
            v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN);
}

TEST_F(Nfs4BackChannel, has_the_parameters_of_BACKCHANNEL_CTL) {
  v4::BACKCHANNEL_CTL4args args;
  args.bca_cb_program = v4::NFS4_CALLBACK;
  args.bca_sec_parms.resize(1);
  args.bca_sec_parms[0].cb_secflavor = v4::AUTH_SYS;
  args.bca_sec_parms[0].cbsp_sys_cred() = {0, "another", 21, 22, {}};
  open_for(kForReading);
  const Op control = op(v4::OP_BACKCHANNEL_CTL, &Op::opbackchannel_ctl, args);
  EXPECT_EQ(run({control}).status, v4::NFS4_OK);
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4ERR_DELAY);
  ASSERT_EQ(holder_client_.callers.size(), 1u);
  EXPECT_EQ(holder_client_.callers[0].uid, 21u);
  args.bca_sec_parms.clear();
  EXPECT_EQ(run({op(v4::OP_BACKCHANNEL_CTL, &Op::opbackchannel_ctl, args)}).status,
            v4::NFS4ERR_INVAL);
}

TEST_F(Nfs4BackChannel, brings_no_delegation_where_the_client_lacks_the_callback_program) {
  v4::CREATE_SESSION4args args = holder_args(exchange_id("one more"));
  args.csa_cb_program = 0x40000123;
  make_session(args);
  EXPECT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_NONE);
}

TEST_F(Nfs4BackChannel, carries_no_recall_that_is_longer_than_the_client_takes) {
  v4::CREATE_SESSION4args args = holder_args(exchange_id("small"));
  args.csa_back_chan_attrs.ca_maxrequestsize = 256;
  make_session(args);
  as(other_, [&] { return close(create("x")); });
  ASSERT_EQ(open_for(kForReading, 0, "x").delegation_type, v4::OPEN_DELEGATE_READ);
  EXPECT_EQ(other_opens(kForBoth, "x"), v4::NFS4ERR_DELAY);
  for (const auto& asked : holder_client_.asked) {
    xdr::Encoder encoder;
    encode(encoder, asked);
    EXPECT_LE(encoder.position() + 24 + 60, 256u);
  }
}

}  // namespace
}  // namespace stag::nfs::nfs4
