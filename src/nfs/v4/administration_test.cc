// What an administrator sees and takes away, and what its client then hears.
#include "nfs/v4/administration.h"

#include "nfs/recovery/recovery.h"
#include "testing/held_executor.h"
#include "testing/nfs/nfs40_fixture.h"
#include "testing/nfs/nfs4_delegations_fixture.h"
#include "testing/vfs/posix_backend.h"

namespace stag::nfs::nfs4 {
namespace {

using stag::testing::HeldExecutor;
using stag::testing::Op;
using stag::testing::op;

class Nfs4Administration : public stag::testing::Nfs4Served {
 protected:
  explicit Nfs4Administration(Nfs4Options options = {}) : Nfs4Served(std::move(options)) {}

  Administration admin() { return nfs4_.administration(); }
  EndedByAdmin expire(state::ClientId client) {
    std::optional<EndedByAdmin> result;
    admin().expire(client, loop_.now(), [&](EndedByAdmin outcome) { result = outcome; });
    EXPECT_TRUE(result);
    return result.value_or(EndedByAdmin::Busy);
  }
  std::vector<ListedClient> clients() {
    std::vector<ListedClient> all;
    for (std::uint32_t shard = 0; shard < state::Clients::kShards; ++shard)
      for (ListedClient& client : admin().clients(shard, loop_.now()))
        all.push_back(std::move(client));
    return all;
  }
  std::vector<state::StateInfo> states() {
    state::StateCursor at;
    state::StatePage page;
    std::vector<state::StateInfo> all;
    for (bool more = true; more;) {
      more = admin().states(at, {}, page);
      all.insert(all.end(), page.rows().begin(), page.rows().end());
    }
    return all;
  }
  v4::nfsstat4 write(const Opened& file) {
    return run({stag::testing::putfh(file.handle), write_op(file.stateid, 0, "x")}).status;
  }
};

TEST_F(Nfs4Administration, shows_a_client_with_what_it_holds) {
  create("file");
  const auto all = clients();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].info.clientid, clientid_);
  EXPECT_EQ(all[0].info.co_ownerid, "a client");
  EXPECT_EQ(all[0].info.minor, minor_);
  EXPECT_EQ(all[0].held.opens, 1u);
  EXPECT_EQ(all[0].callbacks, "none");
  const auto held = states();
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].clientid, clientid_);
  EXPECT_EQ(admin().export_of(held[0].file), "/data");
}

TEST_F(Nfs4Administration, shows_who_has_lapsed_before_anybody_else_noticed) {
  create("file");
  loop_.pass(admin().lease() + std::chrono::seconds(1));
  EXPECT_EQ(clients()[0].info.phase, state::Life::Phase::Lapsed);
}

TEST_F(Nfs4Administration, ends_a_client_whose_sessions_are_bad_from_then_on) {
  const Opened file = create("file");
  EXPECT_EQ(expire(clientid_), EndedByAdmin::Yes);
  EXPECT_EQ(write(file), v4::NFS4ERR_BADSESSION);
  const Res made =
      compound({op(v4::OP_CREATE_SESSION, &Op::opcreate_session, session_args(clientid_, 2))});
  EXPECT_EQ(made.status, v4::NFS4ERR_STALE_CLIENTID);
  EXPECT_TRUE(clients().empty());
  EXPECT_TRUE(states().empty());
  EXPECT_EQ(expire(clientid_), EndedByAdmin::Unknown);
}

TEST_F(Nfs4Administration, frees_at_once_what_the_client_held) {
  v4::OPEN4args args = open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, true);
  args.share_deny = v4::OPEN4_SHARE_DENY_BOTH;
  ASSERT_EQ(open(args).status, v4::NFS4_OK);
  const state::ClientId holder = clientid_;
  set_up_session("another");
  EXPECT_EQ(create("file").status, v4::NFS4ERR_SHARE_DENIED);
  EXPECT_EQ(expire(holder), EndedByAdmin::Yes);
  EXPECT_EQ(create("file").status, v4::NFS4_OK);
}

TEST_F(Nfs4Administration, takes_away_one_open_and_its_client_is_told) {
  const Opened file = create("file"), other = create("other");
  const auto held = states();
  ASSERT_EQ(held.size(), 2u);
  for (const state::StateInfo& info : held) {
    if (!std::ranges::equal(info.stateid.other, file.stateid.other)) continue;
    EXPECT_TRUE(admin().revoke(info.stateid));
  }
  EXPECT_EQ(write(file), v4::NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(write(other), v4::NFS4_OK);
  const Res results = compound({sequence()});
  EXPECT_NE(results.resarray[0].opsequence().sr_resok4().sr_status_flags &
                v4::SEQ4_STATUS_ADMIN_STATE_REVOKED,
            0u);
  EXPECT_EQ(clients()[0].info.revoked, 1u);
  EXPECT_FALSE(admin().revoke({.seqid = 1, .other = {}}));
}

class Nfs4DelegationAdministration : public stag::testing::Nfs4DelegationsServed {};

TEST_F(Nfs4DelegationAdministration,
       takes_away_a_delegation_and_its_client_is_told_until_it_frees_it) {
  using stag::testing::kForBoth;
  const v4::open_delegation4 given = open_for(kForBoth);
  ASSERT_EQ(given.delegation_type, v4::OPEN_DELEGATE_WRITE);
  const v4::stateid4 stateid = given.write().stateid;
  const auto reads = [&] {
    return run({stag::testing::putfh(handle_), read_op(stateid, 0, 1)}).status;
  };
  ASSERT_EQ(run({stag::testing::putfh(handle_),
                 op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{0, opened_})})
                .status,
            v4::NFS4_OK);
  EXPECT_EQ(reads(), v4::NFS4_OK);
  EXPECT_TRUE(nfs4_.administration().revoke({1, stateid.other}));
  EXPECT_EQ(reads(), v4::NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(run(return_ops(stateid)).status, v4::NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(status_flags(), v4::SEQ4_STATUS_ADMIN_STATE_REVOKED);
  EXPECT_EQ(other_opens(kForBoth), v4::NFS4_OK);
  EXPECT_TRUE(holder_client_.asked.empty()) << "there is nothing to recall";
  const Op free = op(v4::OP_FREE_STATEID, &Op::opfree_stateid, v4::FREE_STATEID4args{stateid});
  EXPECT_EQ(run({free}).status, v4::NFS4_OK);
  EXPECT_EQ(status_flags(), 0u);
  EXPECT_EQ(reads(), v4::NFS4ERR_BAD_STATEID);
}

class Nfs40Administration : public stag::testing::Nfs40Served {};

TEST_F(Nfs40Administration, ends_a_client_without_sessions) {
  const v4::clientid4 clientid = set_up_client("old");
  ASSERT_EQ(renew(clientid), v4::NFS4_OK);
  std::optional<EndedByAdmin> result;
  Administration admin = nfs4_.administration();
  EXPECT_EQ(admin.client(clientid, loop_.now())->info.minor, 0u);
  admin.expire(clientid, loop_.now(), [&](EndedByAdmin outcome) { result = outcome; });
  EXPECT_EQ(result, EndedByAdmin::Yes);
  EXPECT_EQ(renew(clientid), v4::NFS4ERR_EXPIRED);
}

TEST_F(Nfs40Administration, takes_away_an_open_that_goes_when_CLOSE_was_told) {
  const Opened file = open_file(1, "file", "owner");
  Administration admin = nfs4_.administration();
  EXPECT_TRUE(admin.revoke({1, file.stateid.other}));
  const auto write = [&] {
    return run({stag::testing::putfh(file.handle), write_op(file.stateid, 0, "x")}).status;
  };
  EXPECT_EQ(write(), v4::NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(close(file, 3).status, v4::NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(close(file, 3).status, v4::NFS4ERR_ADMIN_REVOKED) << "the retransmission";
  EXPECT_EQ(write(), v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(admin.client(client_, loop_.now())->info.revoked, 0u);
  EXPECT_FALSE(admin.revoke({1, file.stateid.other}));
}

// RFC 7530 9.1.7: the client counts on after NFS4ERR_ADMIN_REVOKED.
TEST_F(Nfs40Administration, takes_away_a_lock_and_leaves_its_owner_in_step) {
  const Opened one = open_file(1, "one", "owner"), two = open_file(1, "two", "another owner");
  const v4::stateid4 first = lock_stateid(lock(one, 3, 0, "locker"));
  const v4::stateid4 second = lock_stateid(lock(two, 3, 1, "locker"));
  EXPECT_TRUE(nfs4_.administration().revoke({1, first.other}));
  EXPECT_EQ(unlock(one, first, 2).status, v4::NFS4ERR_ADMIN_REVOKED);
  EXPECT_EQ(unlock(two, second, 3).status, v4::NFS4_OK);
}

// With records of clients, on a worker that the test runs.
struct Records {
  vfs::testing::Folder folder{"/tmp"};
  std::shared_ptr<HeldExecutor> worker = std::make_shared<HeldExecutor>(true);
  std::unique_ptr<recovery::Recovery> recovery =
      *recovery::Recovery::open(folder.path() / "db", 90, worker);

  Nfs4Options options() const {
    Nfs4Options made;
    made.recovery = recovery.get();
    return made;
  }
};

class Nfs4RecordedAdministration : public Records, public Nfs4Administration {
 protected:
  Nfs4RecordedAdministration() : Nfs4Administration(Records::options()) {}
  void SetUp() override {
    Nfs4Administration::SetUp();
    worker->at_once = false;
  }
  void begin_to_expire() {
    admin().expire(clientid_, loop_.now(),
                   [this](EndedByAdmin outcome) { told.push_back(outcome); });
  }
  std::vector<EndedByAdmin> told;
};

TEST_F(Nfs4RecordedAdministration, ends_a_client_when_its_record_is_gone_and_not_before) {
  begin_to_expire();
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(clients().size(), 1u);
  begin_to_expire();
  EXPECT_EQ(told, std::vector{EndedByAdmin::Busy});
  worker->run_all();
  EXPECT_EQ(told, (std::vector{EndedByAdmin::Busy, EndedByAdmin::Yes}));
  EXPECT_TRUE(clients().empty());
}

TEST_F(Nfs4RecordedAdministration, may_ask_again_when_the_worker_has_too_much_to_do) {
  worker->full = true;
  begin_to_expire();
  EXPECT_EQ(told, std::vector{EndedByAdmin::Busy});
  EXPECT_EQ(clients().size(), 1u);
  worker->full = false;
  begin_to_expire();
  worker->run_all();
  EXPECT_EQ(told.back(), EndedByAdmin::Yes);
}

TEST_F(Nfs4RecordedAdministration, is_told_when_the_worker_gives_the_job_up) {
  begin_to_expire();
  worker->give_all_back();
  EXPECT_EQ(told, std::vector{EndedByAdmin::Busy});
  EXPECT_EQ(clients().size(), 1u);
}

}  // namespace
}  // namespace stag::nfs::nfs4
