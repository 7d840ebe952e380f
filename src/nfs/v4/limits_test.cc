// What a COMPOUND and its results may be at most: operations and bytes (RFC 8881 2.10.6.4, 18.36.3;
// RFC 7530 13.1.1.10).
#include "testing/nfs/nfs4_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

constexpr std::uint32_t kOperations = 100;

class Nfs4Limits : public Nfs4Served {
 protected:
  explicit Nfs4Limits(std::uint32_t operations = kOperations)
      : Nfs4Served(with_operations(operations)) {}
  static Nfs4Options with_operations(std::uint32_t operations) {
    Nfs4Options options;
    options.clients.fore.max_operations = operations;
    return options;
  }

  // What the server grants of these.
  v4::channel_attrs4 make_session(const v4::channel_attrs4& fore) {
    const auto client = exchange_id("client " + std::to_string(++clients_));
    clientid_ = client.eir_clientid;
    v4::CREATE_SESSION4args args = session_args(clientid_, client.eir_sequenceid);
    args.csa_fore_chan_attrs = fore;
    const Res made = compound({op(v4::OP_CREATE_SESSION, &Op::opcreate_session, args)});
    EXPECT_EQ(made.status, v4::NFS4_OK);
    const auto& session = made.resarray.at(0).opcreate_session().csr_resok4();
    session_ = session.csr_sessionid;
    sequenceid_ = 0;
    EXPECT_EQ(reclaim_complete(), v4::NFS4_OK);
    return session.csr_fore_chan_attrs;
  }

 private:
  int clients_ = 0;
};

TEST_F(Nfs4Limits, let_every_operation_run_that_the_session_grants) {
  const auto granted = make_session({0, 1 << 20, 1 << 20, 4096, 2 * kOperations, 16, {}});
  ASSERT_EQ(granted.ca_maxoperations, kOperations);
  std::vector<Op> operations(kOperations - 2, putrootfh());
  operations.push_back(lookup("nothing"));
  const Res results = run(operations);
  EXPECT_EQ(results.status, v4::NFS4ERR_NOENT);
  EXPECT_EQ(results.resarray.size(), kOperations - 1);
  operations.push_back(putrootfh());
  EXPECT_EQ(run(operations).status, v4::NFS4ERR_TOO_MANY_OPS);
}

TEST_F(Nfs4Limits, are_the_servers_where_version_4_0_has_none_to_negotiate) {
  std::vector<Op> operations(kOperations - 1, putrootfh());
  operations.push_back(lookup("nothing"));
  const Res results = compound(operations, 0);
  EXPECT_EQ(results.status, v4::NFS4ERR_NOENT);
  EXPECT_EQ(results.resarray.size(), kOperations);
  operations.push_back(putrootfh());
  const Res refused = compound(operations, 0);
  EXPECT_EQ(refused.status, v4::NFS4ERR_RESOURCE);
  EXPECT_TRUE(refused.resarray.empty());
}

class Nfs4FewOperations : public Nfs4Limits {
 protected:
  Nfs4FewOperations() : Nfs4Limits(8) {}
};

TEST_F(Nfs4FewOperations, are_the_limit_of_version_4_0_too) {
  EXPECT_EQ(compound(std::vector<Op>(8, putrootfh()), 0).status, v4::NFS4_OK);
  EXPECT_EQ(compound(std::vector<Op>(9, putrootfh()), 0).status, v4::NFS4ERR_RESOURCE);
}

}  // namespace
}  // namespace stag::nfs::nfs4
