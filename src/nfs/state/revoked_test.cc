// What an administrator took away from a client: until when its stateid is remembered.
#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::World;

class Nfs4StateRevoked : public ::testing::Test {
 protected:
  Stateid revoked_open(std::string_view owner = "owner") {
    const Stateid stateid = world.open(client, 1, kShareBoth, 0, owner).stateid;
    EXPECT_EQ(world.files.revoke(stateid), Status::Ok);
    return stateid;
  }
  Status test(const Stateid& stateid) { return world.files.test_stateid(stateid, *client.life); }
  Status close(const Stateid& stateid) {
    return world.files.close(World::file(1), stateid, *client.life).status;
  }
  Status unlock(const Stateid& stateid) {
    return world.files.unlock(World::file(1), stateid, {0, 9}, *client.life).status;
  }

  World world;
  const testing::Client client = world.client("client");
};

TEST_F(Nfs4StateRevoked, stays_with_a_client_that_has_sessions_until_it_is_freed) {
  const Stateid stateid = revoked_open();
  EXPECT_EQ(close(stateid), Status::AdminRevoked);
  EXPECT_EQ(close(stateid), Status::AdminRevoked);
  for (int i = 0; i < 40; ++i) revoked_open(std::to_string(i));
  EXPECT_EQ(test(stateid), Status::AdminRevoked);
  EXPECT_EQ(client.life->admin_revoked.load(), 41u);
  EXPECT_EQ(world.files.free_stateid(stateid, *client.life), Status::Ok);
  EXPECT_EQ(client.life->admin_revoked.load(), 40u);
}

// RFC 8881 8.4.2: of a client that lapsed, what a holder wants that cannot ask for its end.
TEST_F(Nfs4StateRevoked, locks_of_a_lapsed_client_leave_it_everything_else) {
  const Stateid open = world.open(client, 1).stateid;
  const Stateid lock = world.lock(client, 1, open, {0, 9}, true).stateid;
  const Stateid by_another = world.lock(client, 1, open, {20, 29}, true, "another").stateid;
  const Stateid open_too = world.open(client, 2).stateid;
  const Stateid second = world.lock(client, 2, open_too, {0, 9}, true).stateid;
  world.open(client, 3);
  ASSERT_EQ(world.files.locked_by(*client.life).size(), 3u);
  const auto expire = [&](const FileKey& file, const Life& of) {
    return world.files.expire_locks(file, of);
  };
  EXPECT_EQ(expire(World::file(1), *client.life), 0u) << "it has not lapsed";
  client.life->phase = Life::Phase::Lapsed;
  EXPECT_EQ(expire(World::file(1), *world.client("another").life), 0u) << "not his";
  EXPECT_EQ(expire(World::file(3), *client.life), 0u) << "no lock";
  EXPECT_FALSE(world.files.holds_ranges(World::file(3), *client.life));
  EXPECT_TRUE(world.files.holds_ranges(World::file(1), *client.life));
  EXPECT_EQ(expire(World::file(1), *client.life), 2u);
  EXPECT_FALSE(world.files.holds_ranges(World::file(1), *client.life));
  EXPECT_EQ(expire(World::file(1), *client.life), 0u);
  client.life->phase = Life::Phase::Active;
  EXPECT_EQ(unlock(lock), Status::Expired);
  EXPECT_EQ(test(lock), Status::Expired);
  EXPECT_EQ(test(by_another), Status::Expired);
  EXPECT_EQ(test(second), Status::Ok);
  EXPECT_EQ(test(open), Status::Ok);
  ASSERT_EQ(world.files.locked_by(*client.life).size(), 1u);
  EXPECT_EQ(world.files.locked_by(*client.life)[0], World::file(2));
  EXPECT_EQ(world.sequence(client.session, 0, 1).status_flags, 0x10u)
      << "SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED";
  EXPECT_EQ(world.files.free_stateid(lock, *client.life), Status::Ok);
  EXPECT_EQ(world.files.free_stateid(by_another, *client.life), Status::Ok);
  EXPECT_EQ(client.life->expired_revoked.load(), 0u);
  EXPECT_TRUE(world.lock(client, 1, open, {0, 9}, true).verdict.granted());
}

TEST_F(Nfs4StateRevoked, locks_are_those_of_all_owners_of_the_file) {
  const Stateid open = world.open(client, 1).stateid;
  for (std::uint64_t i = 0; i < 600; ++i)
    ASSERT_TRUE(world.lock(client, 1, open, {i, i}, true, std::to_string(i)).verdict.granted());
  client.life->phase = Life::Phase::Lapsed;
  EXPECT_EQ(world.files.expire_locks(World::file(1), *client.life), 600u);
  EXPECT_TRUE(world.files.locked_by(*client.life).empty());
}

// RFC 7530 has no FREE_STATEID.
class Nfs40StateRevoked : public Nfs4StateRevoked {
 protected:
  Nfs40StateRevoked() { client.life->without_sessions = true; }
};

TEST_F(Nfs40StateRevoked, goes_when_CLOSE_was_told) {
  const Stateid stateid = revoked_open();
  EXPECT_EQ(world.files.check(World::file(1), stateid, *client.life, Touch::Read).status,
            Status::AdminRevoked);
  EXPECT_EQ(close(stateid), Status::AdminRevoked);
  EXPECT_EQ(close(stateid), Status::BadStateid);
  EXPECT_EQ(world.files.states(), 0u);
  EXPECT_EQ(client.life->admin_revoked.load(), 0u);
}

TEST_F(Nfs40StateRevoked, goes_when_LOCKU_was_told) {
  const Stateid open = world.open(client, 1).stateid;
  const Stateid lock = world.lock(client, 1, open, {0, 9}, true).stateid;
  ASSERT_EQ(world.files.revoke(lock), Status::Ok);
  EXPECT_EQ(unlock(lock), Status::AdminRevoked);
  EXPECT_EQ(unlock(lock), Status::BadStateid);
  EXPECT_EQ(test(open), Status::Ok);
}

// The owner's seqid also counts operations that name the revoked stateid.
TEST_F(Nfs40StateRevoked, has_its_lock_owner_until_it_goes) {
  const Stateid open = world.open(client, 1).stateid;
  const Stateid lock = world.lock(client, 1, open, {0, 9}, true, "locker").stateid;
  const auto owner = [&] { return world.files.owner_of(lock); };
  ASSERT_EQ(owner(), "locker");
  ASSERT_EQ(world.files.revoke(lock), Status::Ok);
  EXPECT_EQ(owner(), "locker");
  const Stateid again = world.lock(client, 1, open, {0, 9}, true, "locker").stateid;
  EXPECT_EQ(owner(), "locker") << "though it has another stateid";
  EXPECT_EQ(unlock(lock), Status::AdminRevoked);
  EXPECT_EQ(owner(), "");
  EXPECT_EQ(world.files.owner_of(again), "locker");
  EXPECT_EQ(unlock(again), Status::Ok) << "it holds what it locked itself";
}

TEST_F(Nfs40StateRevoked, goes_when_DELEGRETURN_was_told) {
  const DelegateArgs args{World::file(1), DelegationType::Read, {}, 0, false};
  const Stateid stateid = world.files.delegate(args, client.life).stateid;
  ASSERT_EQ(world.files.revoke(stateid), Status::Ok);
  const auto give_back = [&] {
    return world.files.return_delegation(World::file(1), stateid, *client.life);
  };
  EXPECT_EQ(give_back(), Status::AdminRevoked);
  EXPECT_EQ(give_back(), Status::BadStateid);
}

TEST_F(Nfs40StateRevoked, goes_when_its_owner_opens_the_file_again) {
  const Stateid stateid = revoked_open(), of_another = revoked_open("another");
  const Stateid again = world.open(client, 1).stateid;
  EXPECT_EQ(test(stateid), Status::BadStateid);
  EXPECT_EQ(test(of_another), Status::AdminRevoked);
  EXPECT_EQ(test(again), Status::Ok);
}

TEST_F(Nfs40StateRevoked, is_forgotten_where_many_more_were_revoked_since) {
  const Stateid first = revoked_open();
  Stateid last;
  for (int i = 0; i < 1000; ++i) last = revoked_open(std::to_string(i));
  EXPECT_EQ(test(first), Status::BadStateid);
  EXPECT_EQ(test(last), Status::AdminRevoked);
  EXPECT_LT(world.files.states(), 100u);
  EXPECT_EQ(client.life->admin_revoked.load(), world.files.states());
}

TEST_F(Nfs40StateRevoked, goes_with_its_client) {
  revoked_open();
  world.files.release(*world.clients.end(client.id, false));
  EXPECT_EQ(world.files.states(), 0u);
}

}  // namespace
}  // namespace stag::nfs::state
