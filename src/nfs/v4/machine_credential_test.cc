// State protection by the credential of the client's machine: SP4_MACH_CRED (RFC 8881 2.10.8.3,
// 18.35).
#include <functional>

#include "testing/claimed_kerberos.h"
#include "testing/nfs/nfs4_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

class Nfs4MachineCredential : public Nfs4Served {
 protected:
  using enum oncrpc::AuthFlavor;
  static constexpr const char* kMachine = "host/client.example.org@EXAMPLE.ORG";
  static constexpr const char* kUser = "user@EXAMPLE.ORG";

  void SetUp() override {
    server_.add(std::make_unique<ClaimedKerberosAuthenticator>());
    connect();
    as_machine(KRB5I);
  }
  void connect() {
    connection_ = std::make_shared<rpc::Connection>();
    channel_.origin().connection = connection_;
  }
  void as_machine(oncrpc::AuthFlavor flavor) {
    credentials_ = claimed_kerberos(flavor, 65534, 65534, kMachine);
  }
  void as_user(oncrpc::AuthFlavor flavor) { credentials_ = claimed_kerberos(flavor, 7, 7, kUser); }

  static v4::bitmap4 bitmap(std::initializer_list<std::uint32_t> operations) {
    v4::bitmap4 made{0, 0};
    for (const std::uint32_t each : operations) made[each / 32] |= 1u << each % 32;
    return made;
  }
  // As Linux's client asks.
  static v4::state_protect4_a machine_credential() {
    v4::state_protect4_a asked;
    asked.spa_how = v4::SP4_MACH_CRED;
    v4::state_protect_ops4& ops = asked.spa_mach_ops();
    ops.spo_must_enforce = enforced();
    ops.spo_must_allow =
        bitmap({v4::OP_CLOSE, v4::OP_OPEN_DOWNGRADE, v4::OP_LOCKU, v4::OP_DELEGRETURN,
                v4::OP_COMMIT, v4::OP_SECINFO, v4::OP_SECINFO_NO_NAME, v4::OP_LAYOUTRETURN,
                v4::OP_TEST_STATEID, v4::OP_FREE_STATEID, v4::OP_WRITE});
    return asked;
  }
  static v4::bitmap4 enforced() {
    return bitmap({v4::OP_BIND_CONN_TO_SESSION, v4::OP_EXCHANGE_ID, v4::OP_CREATE_SESSION,
                   v4::OP_DESTROY_SESSION, v4::OP_DESTROY_CLIENTID});
  }
  v4::EXCHANGE_ID4res ask(v4::state_protect4_a protect, std::uint8_t verifier = 1,
                          std::uint32_t flags = 0) {
    v4::EXCHANGE_ID4args args;
    args.eia_clientowner.co_ownerid = Rope::copy_of(bytes_of("a machine"));
    args.eia_clientowner.co_verifier.fill(std::byte{verifier});
    args.eia_flags = flags;
    args.eia_state_protect = std::move(protect);
    Res results = compound({op(v4::OP_EXCHANGE_ID, &Op::opexchange_id, std::move(args))});
    return std::move(results.resarray[0].opexchange_id());
  }
  v4::nfsstat4 create_session(v4::clientid4 clientid, v4::sequenceid4 sequence) {
    const Res made = compound(
        {op(v4::OP_CREATE_SESSION, &Op::opcreate_session, session_args(clientid, sequence))});
    if (made.status == v4::NFS4_OK)
      session_ = made.resarray[0].opcreate_session().csr_resok4().csr_sessionid;
    sequenceid_ = 0;
    return made.status;
  }
  // A client that is protected, with a session.
  void set_up() {
    v4::EXCHANGE_ID4res found = ask(machine_credential());
    ASSERT_EQ(found.eir_status, v4::NFS4_OK);
    clientid_ = found.eir_resok4().eir_clientid;
    ASSERT_EQ(create_session(clientid_, found.eir_resok4().eir_sequenceid), v4::NFS4_OK);
    ASSERT_EQ(reclaim_complete(), v4::NFS4_OK);
  }
  v4::nfsstat4 bind() {
    return compound({op(v4::OP_BIND_CONN_TO_SESSION, &Op::opbind_conn_to_session,
                        v4::BIND_CONN_TO_SESSION4args{session_, v4::CDFC4_FORE_OR_BOTH, false})})
        .status;
  }
  void export_to(const std::string& flavors) {
    nfs::Exports exports;
    STAG_CHECK(exports.add(1, {"/data", store_, *parse_export_options("sec=" + flavors)}).ok());
    context_.exports.replace(std::move(exports));
  }
  // Everybody who is not the machine with integrity.
  void for_each_other(const std::function<void(const char*)>& function) {
    as_user(KRB5P), function("another principal");
    as_machine(KRB5), function("the machine without integrity");
    as(0, 0), function("AUTH_SYS");
    as_machine(KRB5I);
  }

  std::shared_ptr<rpc::Connection> connection_;
};

TEST_F(Nfs4MachineCredential, is_granted_with_what_Linux_counts_on_and_no_more) {
  v4::EXCHANGE_ID4res found = ask(machine_credential());
  ASSERT_EQ(found.eir_status, v4::NFS4_OK);
  v4::state_protect4_r& protect = found.eir_resok4().eir_state_protect;
  ASSERT_EQ(protect.spr_how, v4::SP4_MACH_CRED);
  EXPECT_EQ(protect.spr_mach_ops().spo_must_enforce, enforced());
  EXPECT_EQ(protect.spr_mach_ops().spo_must_allow,
            bitmap({v4::OP_CLOSE, v4::OP_OPEN_DOWNGRADE, v4::OP_LOCKU, v4::OP_DELEGRETURN,
                    v4::OP_TEST_STATEID, v4::OP_FREE_STATEID}));
}

TEST_F(Nfs4MachineCredential, is_enforced_for_DELEGPURGE_where_the_client_wants_it) {
  v4::state_protect4_a asked;
  asked.spa_how = v4::SP4_MACH_CRED;
  asked.spa_mach_ops().spo_must_enforce = bitmap({v4::OP_DELEGPURGE});
  v4::EXCHANGE_ID4res found = ask(asked);
  ASSERT_EQ(found.eir_status, v4::NFS4_OK);
  const v4::state_protect_ops4& ops = found.eir_resok4().eir_state_protect.spr_mach_ops();
  EXPECT_EQ(ops.spo_must_enforce[0], 1u << v4::OP_DELEGPURGE);
  EXPECT_EQ(ops.spo_must_enforce[1], enforced()[1]);
  EXPECT_EQ(ops.spo_must_allow, bitmap({}));
}

TEST_F(Nfs4MachineCredential, wants_RPCSEC_GSS_with_integrity_or_privacy) {
  as_machine(KRB5);
  EXPECT_EQ(ask(machine_credential()).eir_status, v4::NFS4ERR_INVAL);
  as(0, 0);
  EXPECT_EQ(ask(machine_credential()).eir_status, v4::NFS4ERR_INVAL);
  as_machine(KRB5P);
  EXPECT_EQ(ask(machine_credential()).eir_status, v4::NFS4_OK);
}

TEST_F(Nfs4MachineCredential, is_kept_by_a_client_ID_that_is_known) {
  set_up();
  for (const std::uint32_t flags : {0u, v4::EXCHGID4_FLAG_UPD_CONFIRMED_REC_A}) {
    v4::EXCHANGE_ID4res again = ask({}, 1, flags);
    ASSERT_EQ(again.eir_status, v4::NFS4_OK);
    EXPECT_EQ(again.eir_resok4().eir_clientid, clientid_);
    EXPECT_EQ(again.eir_resok4().eir_state_protect.spr_how, v4::SP4_MACH_CRED);
  }
}

TEST_F(Nfs4MachineCredential, is_wanted_of_whoever_updates_or_replaces_the_client) {
  set_up();
  for_each_other([&](const char* who) {
    EXPECT_EQ(ask({}, 1, v4::EXCHGID4_FLAG_UPD_CONFIRMED_REC_A).eir_status, v4::NFS4ERR_PERM)
        << who;
    EXPECT_EQ(ask({}, 2).eir_status, v4::NFS4ERR_CLID_INUSE) << who;
  });
  EXPECT_EQ(ask(machine_credential(), 2).eir_status, v4::NFS4_OK) << "the machine, restarted";
}

TEST_F(Nfs4MachineCredential, is_wanted_by_CREATE_SESSION) {
  v4::EXCHANGE_ID4res found = ask(machine_credential());
  const v4::EXCHANGE_ID4resok& ok = found.eir_resok4();
  for_each_other([&](const char* who) {
    EXPECT_EQ(create_session(ok.eir_clientid, ok.eir_sequenceid), v4::NFS4ERR_WRONG_CRED) << who;
  });
  as_machine(KRB5P);
  EXPECT_EQ(create_session(ok.eir_clientid, ok.eir_sequenceid), v4::NFS4_OK);
}

TEST_F(Nfs4MachineCredential, is_wanted_to_bind_a_connection_or_end_a_session_or_the_client) {
  set_up();
  for_each_other([&](const char* who) {
    EXPECT_EQ(bind(), v4::NFS4ERR_WRONG_CRED) << who;
    EXPECT_EQ(destroy_session(), v4::NFS4ERR_WRONG_CRED) << who;
    EXPECT_EQ(destroy_clientid(), v4::NFS4ERR_WRONG_CRED) << who;
  });
  EXPECT_EQ(bind(), v4::NFS4_OK);
  EXPECT_EQ(destroy_session(), v4::NFS4_OK);
  EXPECT_EQ(destroy_clientid(), v4::NFS4_OK);
}

TEST_F(Nfs4MachineCredential, keeps_sessions_to_connections_that_the_machine_has_bound) {
  set_up();
  as_user(KRB5);
  EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK) << "users work in it as they are";
  connect();
  EXPECT_EQ(compound({sequence(), putrootfh()}).status, v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
  --sequenceid_;  // which it did not use up
  EXPECT_EQ(bind(), v4::NFS4ERR_WRONG_CRED);
  as_machine(KRB5I);
  EXPECT_EQ(bind(), v4::NFS4_OK);
  as_user(KRB5);
  EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK);
}

// RFC 8881 18.37.3
TEST_F(Nfs4MachineCredential, ends_a_session_on_connections_that_it_has_bound) {
  set_up();
  connect();
  EXPECT_EQ(destroy_session(), v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
  EXPECT_EQ(bind(), v4::NFS4_OK);
  EXPECT_EQ(destroy_session(), v4::NFS4_OK);
}

// 2.10.3.1
TEST_F(Nfs4MachineCredential, is_missing_then_a_connection_that_SEQUENCE_came_by_ends_the_session) {
  as(0, 0);
  set_up_session();
  const Op destroy =
      op(v4::OP_DESTROY_SESSION, &Op::opdestroy_session, v4::DESTROY_SESSION4args{session_});
  connect();
  EXPECT_EQ(destroy_session(), v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION);
  const auto other = session_;
  set_up_session("another client");
  EXPECT_EQ(run({destroy}).status, v4::NFS4ERR_CONN_NOT_BOUND_TO_SESSION) << "of another session";
  session_ = other;
  sequenceid_ = 1;
  EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK) << "and it is there still";
  EXPECT_EQ(destroy_session(), v4::NFS4_OK);
}

TEST_F(Nfs4MachineCredential, is_missing_then_a_session_ends_with_its_own_COMPOUND) {
  as(0, 0);
  set_up_session();
  connect();
  EXPECT_EQ(run({putrootfh(), op(v4::OP_DESTROY_SESSION, &Op::opdestroy_session,
                                 v4::DESTROY_SESSION4args{session_})})
                .status,
            v4::NFS4_OK);
}

TEST_F(Nfs4MachineCredential, gives_back_what_a_user_had_though_the_export_wants_another_flavor) {
  export_to("krb5p");
  set_up();
  as_user(KRB5P);
  const Opened file = create("file");
  ASSERT_EQ(file.status, v4::NFS4_OK);
  const Op close = op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{1, file.stateid});
  const Op type = getattr({1u << v4::FATTR4_TYPE});
  as_user(KRB5);
  EXPECT_EQ(run({putfh(file.handle), type, close}).status, v4::NFS4ERR_WRONGSEC);
  as_machine(KRB5I);
  EXPECT_EQ(run({putfh(file.handle), type}).status, v4::NFS4ERR_WRONGSEC);
  EXPECT_EQ(run({putfh(file.handle), read_op(file.stateid, 0, 1), close}).status,
            v4::NFS4ERR_WRONGSEC);
  EXPECT_EQ(run({putfh(file.handle), type, close}).status, v4::NFS4_OK) << "as Linux sends it";
}

TEST_F(Nfs4MachineCredential, shows_attributes_of_the_file_that_it_gives_back_and_of_no_other) {
  export_to("krb5p");
  set_up();
  as_user(KRB5P);
  const Opened file = create("file");
  ASSERT_EQ(file.status, v4::NFS4_OK);
  const Op close = op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{1, file.stateid});
  const Op test = op(v4::OP_TEST_STATEID, &Op::optest_stateid, v4::TEST_STATEID4args{});
  const Op type = getattr({1u << v4::FATTR4_TYPE});
  as_machine(KRB5I);
  EXPECT_EQ(run({test}).status, v4::NFS4_OK);
  EXPECT_EQ(run({putfh(file.handle), type, test}).status, v4::NFS4ERR_WRONGSEC);
  EXPECT_EQ(run({test, putfh(file.handle), type}).status, v4::NFS4ERR_WRONGSEC);
  EXPECT_EQ(run({putrootfh(), lookup("data"), type, putfh(file.handle), close}).status,
            v4::NFS4ERR_WRONGSEC);
  EXPECT_EQ(run({putfh(file.handle), type, close}).status, v4::NFS4_OK);
}

TEST_F(Nfs4MachineCredential, allows_nothing_to_a_client_that_did_not_ask) {
  export_to("krb5p");
  v4::EXCHANGE_ID4res found = ask({});
  clientid_ = found.eir_resok4().eir_clientid;
  EXPECT_EQ(found.eir_resok4().eir_state_protect.spr_how, v4::SP4_NONE);
  ASSERT_EQ(create_session(clientid_, found.eir_resok4().eir_sequenceid), v4::NFS4_OK);
  ASSERT_EQ(reclaim_complete(), v4::NFS4_OK);
  as_user(KRB5P);
  const Opened file = create("file");
  as_machine(KRB5I);
  EXPECT_EQ(
      run({putfh(file.handle), op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{1, file.stateid})})
          .status,
      v4::NFS4ERR_WRONGSEC);
  connect();
  EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK) << "18.34.3: any connection will do";
  as(0, 0);
  EXPECT_EQ(destroy_session(), v4::NFS4_OK);
}

TEST_F(Nfs4MachineCredential, is_all_there_is_an_SSV_is_refused_for_its_algorithms) {
  v4::state_protect4_a asked;
  asked.spa_how = v4::SP4_SSV;
  v4::ssv_sp_parms4& ssv = asked.spa_ssv_parms();
  EXPECT_EQ(ask(asked).eir_status, v4::NFS4ERR_INVAL);
  ssv.ssp_hash_algs.push_back(Rope::copy_of(bytes_of("a hash")));
  ssv.ssp_encr_algs.push_back(Rope::copy_of(bytes_of("a cipher")));
  EXPECT_EQ(ask(asked).eir_status, v4::NFS4ERR_INVAL) << "no window";
  ssv.ssp_window = 1;
  EXPECT_EQ(ask(asked).eir_status, v4::NFS4ERR_ENCR_ALG_UNSUPP);
}

// What a caller of AUTH_SYS says of itself is not proven.
TEST_F(Nfs4MachineCredential, is_not_stood_in_for_where_an_export_refuses_who_gives_back) {
  export_to("krb5i");
  set_up();
  as_user(KRB5I);
  const Opened file = create("file");
  ASSERT_EQ(file.status, v4::NFS4_OK);
  const auto close = [&] {
    return run({putfh(file.handle),
                op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{0, file.stateid})})
        .status;
  };
  as(0, 0);
  EXPECT_EQ(close(), v4::NFS4ERR_WRONGSEC);
  as_user(KRB5I);
  EXPECT_EQ(close(), v4::NFS4_OK) << "it is still there";
}

}  // namespace
}  // namespace stag::nfs::nfs4
