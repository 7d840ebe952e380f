// Two clients of version 4.1 of the server in nfs4_fixture.h: one that is called back and gets
// delegations, and another one that is in its way.
#pragma once

#include <string>
#include <vector>

#include "testing/nfs/nfs4_callback_client.h"

namespace stag::testing {

inline constexpr std::uint32_t kForReading = nfs::v4::OPEN4_SHARE_ACCESS_READ;
inline constexpr std::uint32_t kForBoth = nfs::v4::OPEN4_SHARE_ACCESS_BOTH;

// Two clients with sessions, of which the first is called back; a file that is closed.
class Nfs4DelegationsServed : public Nfs4Served {
 protected:
  struct Party {
    nfs::v4::clientid4 clientid = 0;
    nfs::v4::sessionid4 session{};
    std::uint32_t sequenceid = 0;
    rpc::Channel* via = nullptr;
  };

  using Nfs4Served::Nfs4Served;
  void SetUp() override {
    nfs4_.start_callbacks(loop_, nullptr, sources());
    set_up_session("the other");
    const Opened made = create("file");
    close(made);
    other_ = now_acting();
    via_ = &holder_client_.channel;
    set_up_holder();
    holder_ = now_acting();
  }
  ~Nfs4DelegationsServed() override { nfs4_.stop_callbacks(); }

  Party now_acting() { return {clientid_, session_, sequenceid_, via_}; }
  void act_as(const Party& party) {
    clientid_ = party.clientid;
    session_ = party.session;
    sequenceid_ = party.sequenceid;
    via_ = party.via;
  }
  // Does something as this client.
  template <class Action>
  auto as(Party& party, Action action) {
    const Party before = now_acting();
    act_as(party);
    auto result = action();
    party = now_acting();
    act_as(before);
    return result;
  }

  nfs::v4::CREATE_SESSION4args holder_args(const nfs::v4::EXCHANGE_ID4resok& client) {
    nfs::v4::CREATE_SESSION4args args = session_args(client.eir_clientid, client.eir_sequenceid);
    args.csa_flags = nfs::v4::CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
    args.csa_cb_program = nfs::v4::NFS4_CALLBACK;
    args.csa_sec_parms.resize(1);
    args.csa_sec_parms[0].cb_secflavor = nfs::v4::AUTH_SYS;
    args.csa_sec_parms[0].cbsp_sys_cred() = {0, "the client", 17, 18, {}};
    return args;
  }
  nfs::v4::CREATE_SESSION4resok make_session(const nfs::v4::CREATE_SESSION4args& args) {
    const Res made = compound({op(nfs::v4::OP_CREATE_SESSION, &Op::opcreate_session, args)});
    EXPECT_EQ(made.status, nfs::v4::NFS4_OK);
    if (made.status != nfs::v4::NFS4_OK) return {};
    const auto& ok = made.resarray[0].opcreate_session().csr_resok4();
    clientid_ = args.csa_clientid;
    session_ = ok.csr_sessionid;
    sequenceid_ = 0;
    run({op(nfs::v4::OP_RECLAIM_COMPLETE, &Op::opreclaim_complete,
            nfs::v4::RECLAIM_COMPLETE4args{})});
    return ok;
  }
  // Servers that are copied from.
  virtual nfs::nfs4::SourceServers* sources() { return nullptr; }
  virtual void set_up_holder() { make_session(holder_args(exchange_id("the holder"))); }

  nfs::v4::open_delegation4 open_for(std::uint32_t access, std::uint32_t want = 0,
                                     const std::string& name = "file") {
    const Res results =
        run({putrootfh(), lookup("data"),
             op(nfs::v4::OP_OPEN, &Op::opopen, open_args(name, access | want, false)), getfh()});
    EXPECT_EQ(results.status, nfs::v4::NFS4_OK);
    if (results.status != nfs::v4::NFS4_OK) return {};
    handle_ = results.resarray[3].opgetfh().resok4().object;
    opened_ = results.resarray[2].opopen().resok4().stateid;
    return results.resarray[2].opopen().resok4().delegation;
  }
  nfs::v4::nfsstat4 close(const Opened& file) {
    return run({putfh(file.handle),
                op(nfs::v4::OP_CLOSE, &Op::opclose, nfs::v4::CLOSE4args{0, file.stateid})})
        .status;
  }
  std::vector<Op> return_ops(const nfs::v4::stateid4& stateid) {
    return {putfh(handle_),
            op(nfs::v4::OP_DELEGRETURN, &Op::opdelegreturn, nfs::v4::DELEGRETURN4args{stateid})};
  }
  // What the other client's OPEN comes to.
  nfs::v4::nfsstat4 other_opens(std::uint32_t access, const std::string& name = "file") {
    return as(other_, [&] { return open(open_args(name, access, false)).status; });
  }
  // The client gives back what it is asked for, at once.
  void gives_back() {
    holder_client_.on_recall = [this] {
      loop_.post([this] {
        std::vector<Op> operations =
            return_ops(holder_client_.asked.back().argarray[1].opcbrecall().stateid);
        nfs::v4::SEQUENCE4args sequence;
        sequence.sa_sessionid = holder_.session;
        sequence.sa_sequenceid = ++holder_.sequenceid;
        operations.insert(operations.begin(), op(nfs::v4::OP_SEQUENCE, &Op::opsequence, sequence));
        detach(send(nfs::v4::COMPOUND4args{"", 1, std::move(operations)}));
      });
    };
  }
  Task<void> send(nfs::v4::COMPOUND4args args) {
    rpc::Client client(holder_client_.channel, nfs::ulb::nfs4(), credentials_);
    const auto result = co_await client.call<nfs::v4::NFSPROC4_COMPOUND>(args);
    EXPECT_TRUE(result.ok() && result->status == nfs::v4::NFS4_OK);
  }
  std::uint32_t status_flags() {
    const Res results = compound({sequence(), putrootfh()});
    EXPECT_EQ(results.status, nfs::v4::NFS4_OK);
    return results.resarray[0].opsequence().sr_resok4().sr_status_flags;
  }
  nfs::v4::BIND_CONN_TO_SESSION4res bind(nfs::v4::channel_dir_from_client4 direction) {
    return compound({op(nfs::v4::OP_BIND_CONN_TO_SESSION, &Op::opbind_conn_to_session,
                        nfs::v4::BIND_CONN_TO_SESSION4args{session_, direction, true})})
        .resarray[0]
        .opbind_conn_to_session();
  }

  CallbackClient holder_client_{loop_, server_};
  Party other_, holder_;
  nfs::v4::nfs_fh4 handle_;
  nfs::v4::stateid4 opened_;
};

}  // namespace stag::testing
