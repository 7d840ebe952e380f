// COMPOUND as RFC 8881 16.2 and 2.10 want it.
#include "nfs/v4/compound/compound.h"

#include <set>

#include "testing/nfs/nfs4_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

class Nfs4Compound : public Nfs4Served {};

TEST_F(Nfs4Compound, is_refused_without_results_in_an_unknown_minor_version) {
  const Res results = compound({putrootfh()}, 9);
  EXPECT_EQ(results.status, v4::NFS4ERR_MINOR_VERS_MISMATCH);
  EXPECT_TRUE(results.resarray.empty());
}

TEST_F(Nfs4Compound, repeats_the_tag) {
  EXPECT_EQ(run({putrootfh()}).tag, "tag");
}

TEST_F(Nfs4Compound, ends_at_the_first_operation_that_fails) {
  const Res results = run({putrootfh(), lookup("nothing"), getfh()});
  EXPECT_EQ(results.status, v4::NFS4ERR_NOENT);
  ASSERT_EQ(results.resarray.size(), 2u);
  EXPECT_EQ(results.resarray[1].oplookup().status, v4::NFS4ERR_NOENT);
}

TEST_F(Nfs4Compound, runs_nothing_without_a_session_but_what_makes_one) {
  EXPECT_EQ(compound({putrootfh()}).status, v4::NFS4ERR_OP_NOT_IN_SESSION);
  v4::EXCHANGE_ID4args args;
  const Op exchange = op(v4::OP_EXCHANGE_ID, &Op::opexchange_id, args);
  EXPECT_EQ(compound({exchange, putrootfh()}).status, v4::NFS4ERR_NOT_ONLY_OP);
}

TEST_F(Nfs4Compound, binds_a_connection_in_a_COMPOUND_of_its_own_only) {
  const Op bind = op(v4::OP_BIND_CONN_TO_SESSION, &Op::opbind_conn_to_session,
                     v4::BIND_CONN_TO_SESSION4args{session_, v4::CDFC4_FORE, false});
  EXPECT_EQ(run({bind}).status, v4::NFS4ERR_NOT_ONLY_OP) << "behind SEQUENCE";
  EXPECT_EQ(compound({bind, putrootfh()}).status, v4::NFS4ERR_NOT_ONLY_OP);
  EXPECT_EQ(compound({bind}).status, v4::NFS4_OK);
}

TEST_F(Nfs4Compound, ends_its_own_session_with_its_last_operation_only) {
  const auto destroy = [](const v4::sessionid4& session) {
    return op(v4::OP_DESTROY_SESSION, &Op::opdestroy_session, v4::DESTROY_SESSION4args{session});
  };
  const v4::sessionid4 first = session_;
  set_up_session("another client");
  EXPECT_EQ(run({destroy(session_), putrootfh()}).status, v4::NFS4ERR_NOT_ONLY_OP);
  EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK) << "it is still there";
  EXPECT_EQ(run({destroy(first), putrootfh()}).status, v4::NFS4_OK) << "another one";
  EXPECT_EQ(run({putrootfh(), destroy(session_)}).status, v4::NFS4_OK);
  EXPECT_EQ(run({putrootfh()}).status, v4::NFS4ERR_BADSESSION);
}

TEST_F(Nfs4Compound, takes_SEQUENCE_in_the_first_place_only) {
  const Op first = sequence();
  EXPECT_EQ(compound({first, putrootfh(), first}).status, v4::NFS4ERR_SEQUENCE_POS);
}

TEST_F(Nfs4Compound, is_refused_without_the_filehandle_that_its_operation_needs) {
  EXPECT_EQ(run({getfh()}).status, v4::NFS4ERR_NOFILEHANDLE);
  EXPECT_EQ(run({op(v4::OP_RESTOREFH)}).status, v4::NFS4ERR_NOFILEHANDLE);
}

TEST_F(Nfs4Compound, is_illegal_at_an_operation_that_is_not_of_its_minor_version) {
  const Res results = run({putrootfh(), op(v4::OP_SEEK, &Op::opseek, v4::SEEK4args{})});
  EXPECT_EQ(results.status, v4::NFS4ERR_OP_ILLEGAL);
  ASSERT_EQ(results.resarray.size(), 2u);
  EXPECT_EQ(results.resarray[1].resop, v4::OP_ILLEGAL);
}

TEST_F(Nfs4Compound, does_not_support_an_operation_of_version_4_0) {
  EXPECT_EQ(run({op(v4::OP_RENEW, &Op::oprenew, v4::RENEW4args{})}).status, v4::NFS4ERR_NOTSUPP);
}

TEST_F(Nfs4Compound, does_not_support_an_optional_operation_that_this_server_lacks) {
  for (const Op& lacking :
       {op(v4::OP_DELEGPURGE, &Op::opdelegpurge, v4::DELEGPURGE4args{}),
        op(v4::OP_OPENATTR, &Op::opopenattr, v4::OPENATTR4args{}),
        op(v4::OP_SET_SSV, &Op::opset_ssv, v4::SET_SSV4args{}),
        op(v4::OP_GET_DIR_DELEGATION, &Op::opget_dir_delegation, v4::GET_DIR_DELEGATION4args{}),
        op(v4::OP_GETDEVICEINFO, &Op::opgetdeviceinfo, v4::GETDEVICEINFO4args{}),
        op(v4::OP_LAYOUTGET, &Op::oplayoutget, v4::LAYOUTGET4args{})})
    EXPECT_EQ(run({putrootfh(), lacking}).status, v4::NFS4ERR_NOTSUPP) << lacking.argop;
}

TEST_F(Nfs4Compound, sent_again_gets_the_results_that_were_kept) {
  create("file");
  const std::vector<Op> operations = {sequence(true), putrootfh(), lookup("data"),
                                      op(v4::OP_REMOVE, &Op::opremove, v4::REMOVE4args{"file"})};
  const Res done = compound(operations);
  EXPECT_EQ(done.status, v4::NFS4_OK);
  // Run again it would find nothing.
  EXPECT_EQ(compound(operations), done);
}

TEST_F(Nfs4Compound, sent_again_that_was_not_to_be_kept_is_told_so) {
  const std::vector<Op> operations = {sequence(), putrootfh(), getfh()};
  EXPECT_EQ(compound(operations).status, v4::NFS4_OK);
  const Res results = compound(operations);
  EXPECT_EQ(results.status, v4::NFS4ERR_RETRY_UNCACHED_REP);
  ASSERT_EQ(results.resarray.size(), 2u);
  EXPECT_EQ(results.resarray[0].opsequence().sr_status, v4::NFS4_OK);
}

TEST_F(Nfs4Compound, is_a_false_retry_with_other_operations_under_the_same_sequence) {
  const Op first = sequence(true);
  EXPECT_EQ(compound({first, putrootfh()}).status, v4::NFS4_OK);
  EXPECT_EQ(compound({first, putrootfh(), getfh()}).status, v4::NFS4ERR_SEQ_FALSE_RETRY);
}

TEST_F(Nfs4Compound, is_a_false_retry_with_another_name_at_its_end_under_the_same_sequence) {
  const std::string from(250, 'a'), to(250, 'b');
  v4::CREATE4args folder;
  folder.objtype.type = v4::NF4DIR;
  folder.objname = from;
  const v4::nfs_fh4 data = walk({"data"});
  ASSERT_EQ(run({putfh(data), op(v4::OP_CREATE, &Op::opcreate, std::move(folder))}).status,
            v4::NFS4_OK);
  const Op first = sequence(true);
  const auto rename = [&](const std::string& name) {
    return compound({first, putfh(data), op(v4::OP_SAVEFH), putfh(data),
                     op(v4::OP_RENAME, &Op::oprename, v4::RENAME4args{from, name})})
        .status;
  };
  EXPECT_EQ(rename(to + "one"), v4::NFS4_OK);
  EXPECT_EQ(rename(to + "two"), v4::NFS4ERR_SEQ_FALSE_RETRY);
  EXPECT_EQ(rename(to + "one"), v4::NFS4_OK) << "it is a retry";
}

TEST_F(Nfs4Compound, is_a_false_retry_by_another_principal_under_the_same_sequence) {
  const Op first = sequence(true);
  as(1001, 1001);
  EXPECT_EQ(compound({first, putrootfh()}).status, v4::NFS4_OK);
  as(1002, 1001);
  EXPECT_EQ(compound({first, putrootfh()}).status, v4::NFS4ERR_SEQ_FALSE_RETRY);
  as(1001, 1001);
  EXPECT_EQ(compound({first, putrootfh()}).status, v4::NFS4_OK);
}

TEST_F(Nfs4Compound, knows_a_false_retry_by_the_principal_alone_without_kept_results) {
  const Op first = sequence();
  as(1001, 1001);
  EXPECT_EQ(compound({first, putrootfh()}).status, v4::NFS4_OK);
  EXPECT_EQ(compound({first, putrootfh(), getfh()}).status, v4::NFS4ERR_RETRY_UNCACHED_REP);
  as(1002, 1001);
  EXPECT_EQ(compound({first, putrootfh()}).status, v4::NFS4ERR_SEQ_FALSE_RETRY);
}

TEST_F(Nfs4Compound, is_misordered_with_a_sequence_that_is_not_the_next) {
  sequenceid_ += 5;
  EXPECT_EQ(compound({sequence(), putrootfh()}).status, v4::NFS4ERR_SEQ_MISORDERED);
}

TEST_F(Nfs4Compound, is_refused_in_an_unknown_session) {
  session_.fill(std::byte{9});
  EXPECT_EQ(compound({sequence(), putrootfh()}).status, v4::NFS4ERR_BADSESSION);
}

TEST_F(Nfs4Compound, is_not_served_by_UDP) {
  PROVES("R8267-6.7.1-a", "R8267-6.7.1-d");
  rpc::Client client(channel_, ulb::nfs4(), credentials_);
  const auto answered = [&] {
    return loop_.run(client.call<v4::NFSPROC4_COMPOUND>({"", 1, {putrootfh()}}))->ok();
  };
  channel_.origin().transport = rpc::TransportKind::Tcp;
  EXPECT_TRUE(answered());
  channel_.origin().transport = rpc::TransportKind::Udp;
  EXPECT_FALSE(answered());
}

class Nfs4PseudoFs : public Nfs4Served {};

TEST_F(Nfs4PseudoFs, leads_from_the_root_to_every_export) {
  EXPECT_NE(walk({"data"}), walk({}));
  EXPECT_NE(walk({"srv", "fixed"}), walk({"srv"}));
}

TEST_F(Nfs4PseudoFs, has_handles_that_name_the_same_folder_again) {
  const Res results = run({putfh(walk({"srv"})), lookup("fixed"), getfh()});
  ASSERT_EQ(results.status, v4::NFS4_OK);
  EXPECT_EQ(results.resarray[2].opgetfh().resok4().object, walk({"srv", "fixed"}));
}

TEST_F(Nfs4PseudoFs, is_left_and_entered_by_LOOKUPP) {
  const Res results = run({putfh(walk({"srv", "fixed"})), op(v4::OP_LOOKUPP), getfh()});
  ASSERT_EQ(results.status, v4::NFS4_OK);
  EXPECT_EQ(results.resarray[2].opgetfh().resok4().object, walk({"srv"}));
  EXPECT_EQ(run({putrootfh(), op(v4::OP_LOOKUPP)}).status, v4::NFS4ERR_NOENT);
}

TEST_F(Nfs4PseudoFs, is_read_only) {
  v4::CREATE4args args;
  args.objtype.type = v4::NF4DIR;
  args.objname = "new";
  EXPECT_EQ(run({putrootfh(), op(v4::OP_CREATE, &Op::opcreate, args)}).status, v4::NFS4ERR_ROFS);
}

TEST_F(Nfs4PseudoFs, lists_what_lies_below_it) {
  v4::READDIR4args args;
  args.dircount = args.maxcount = 4096;
  args.attr_request = {1u << v4::FATTR4_TYPE | 1u << v4::FATTR4_FSID};
  const Res results = run({putrootfh(), op(v4::OP_READDIR, &Op::opreaddir, args)});
  ASSERT_EQ(results.status, v4::NFS4_OK);
  const v4::dirlist4& list = results.resarray[1].opreaddir().resok4().reply;
  ASSERT_EQ(list.entries.size(), 2u);
  EXPECT_EQ(std::set({list.entries[0].name, list.entries[1].name}),
            (std::set<std::string>{"data", "srv"}));
  EXPECT_TRUE(list.eof);
}

TEST(Nfs4ChangeInfo, has_numbers_that_the_object_had_and_is_atomic_where_nothing_lay_between) {
  vfs::BeforeChange before;
  before.change = 7;
  vfs::Attributes after;
  after.change = 8;
  EXPECT_EQ(to_change_info4({before, after, {}}), (v4::change_info4{true, 7, 8}));
  EXPECT_EQ(to_change_info4({{}, after, 5}), (v4::change_info4{false, 5, 8}));
  EXPECT_EQ(to_change_info4({{}, after, {}}), (v4::change_info4{false, 8, 8}));
  EXPECT_EQ(to_change_info4({before, {}, {}}), (v4::change_info4{false, 7, 7}));
}

}  // namespace
}  // namespace stag::nfs::nfs4
