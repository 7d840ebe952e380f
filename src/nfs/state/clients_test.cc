// The sentences of RFC 8881 18.35 and 18.50 and 8.3: client IDs and their leases.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::World;

TEST(Nfs4Clients, case_1_a_new_owner_gets_an_unconfirmed_client_id) {
  World world;
  const ExchangeIdResult result = world.exchange_id("owner");
  EXPECT_EQ(result.status, Status::Ok);
  EXPECT_NE(result.clientid, 0u);
  EXPECT_EQ(result.sequenceid, 1u);
  EXPECT_FALSE(result.confirmed);
}

TEST(Nfs4Clients, case_2_asking_again_with_the_same_verifier_yields_the_confirmed_record) {
  World world;
  const auto client = world.client("owner");
  const ExchangeIdResult again = world.exchange_id("owner");
  EXPECT_EQ(again.status, Status::Ok);
  EXPECT_EQ(again.clientid, client.id);
  EXPECT_TRUE(again.confirmed);
  EXPECT_EQ(again.sequenceid, 2u) << "what the next CREATE_SESSION has to be";
  EXPECT_EQ(world.sequence(client.session, 0, 1).kind, Sequenced::Kind::Run);
}

TEST(Nfs4Clients, case_2_deletes_the_unconfirmed_record_of_another_incarnation) {
  World world;
  const auto client = world.client("owner");
  const ExchangeIdResult newer = world.exchange_id("owner", 2);
  EXPECT_EQ(world.exchange_id("owner", 1).clientid, client.id);
  EXPECT_EQ(world.create_session(newer.clientid, 1).status, Status::StaleClientid);
}

TEST(Nfs4Clients, case_3_another_principal_gets_CLID_INUSE_while_there_is_state) {
  World world;
  const auto client = world.client("owner");
  EXPECT_EQ(world.exchange_id("owner", 1, "other").status, Status::ClidInuse);
  EXPECT_EQ(world.exchange_id("owner", 2, "other").status, Status::ClidInuse);
  EXPECT_EQ(world.sequence(client.session, 0, 1).kind, Sequenced::Kind::Run);
}

TEST(Nfs4Clients, case_3_another_principal_replaces_a_record_without_state) {
  World world;
  const auto client = world.client("owner");
  ASSERT_EQ(world.clients.destroy_session(client.session, kNoConnection), Status::Ok);
  const ExchangeIdResult other = world.exchange_id("owner", 1, "other");
  EXPECT_EQ(other.status, Status::Ok);
  EXPECT_NE(other.clientid, client.id);
  EXPECT_FALSE(other.confirmed);
  ASSERT_NE(other.ended, nullptr);
  EXPECT_EQ(other.ended->clientid, client.id);
  EXPECT_TRUE(client.life->ended());
}

TEST(Nfs4Clients, case_3_another_principal_replaces_a_record_whose_lease_ran_out) {
  World world;
  const auto client = world.client("owner");
  world.now += world.lease + std::chrono::seconds(1);
  EXPECT_EQ(world.exchange_id("owner", 1, "other").status, Status::Ok);
  EXPECT_EQ(world.sequence(client.session, 0, 1).status, Status::BadSession);
}

TEST(Nfs4Clients, case_4_an_unconfirmed_record_is_replaced_and_its_id_never_given_again) {
  World world;
  std::set<ClientId> ids;
  for (int i = 0; i < 10; ++i) {
    const ExchangeIdResult result = world.exchange_id("owner", i, i % 2 == 0 ? "a" : "b");
    EXPECT_EQ(result.status, Status::Ok);
    EXPECT_TRUE(ids.insert(result.clientid).second);
  }
  EXPECT_EQ(world.clients.list(world.now).size(), 1u);
}

TEST(Nfs4Clients, case_5_a_restarted_client_keeps_its_state_until_it_confirms) {
  World world;
  const auto client = world.client("owner");
  const ExchangeIdResult restarted = world.exchange_id("owner", 2);
  EXPECT_EQ(restarted.status, Status::Ok);
  EXPECT_FALSE(restarted.confirmed);
  EXPECT_EQ(world.sequence(client.session, 0, 1).kind, Sequenced::Kind::Run);
  EXPECT_FALSE(client.life->ended());

  const CreateSessionResult session = world.create_session(restarted.clientid, 1);
  EXPECT_EQ(session.status, Status::Ok);
  ASSERT_NE(session.ended, nullptr);
  EXPECT_EQ(session.ended->clientid, client.id);
  EXPECT_TRUE(client.life->ended());
  EXPECT_EQ(world.sequence(client.session, 0, 2).status, Status::BadSession);
  EXPECT_EQ(world.create_session(client.id, 2).status, Status::StaleClientid);
}

TEST(Nfs4Clients, case_6_an_update_leaves_the_record_as_it_is) {
  World world;
  const auto client = world.client("owner");
  const ExchangeIdResult update = world.exchange_id("owner", 1, "root", true);
  EXPECT_EQ(update.status, Status::Ok);
  EXPECT_EQ(update.clientid, client.id);
  EXPECT_TRUE(update.confirmed);
}

TEST(Nfs4Clients, case_7_an_update_without_confirmed_record_is_NOENT) {
  World world;
  EXPECT_EQ(world.exchange_id("owner", 1, "root", true).status, Status::Noent);
  const ExchangeIdResult unconfirmed = world.exchange_id("owner");
  EXPECT_EQ(world.exchange_id("owner", 1, "root", true).status, Status::Noent);
  EXPECT_EQ(world.create_session(unconfirmed.clientid, 1).status, Status::Ok)
      << "the unconfirmed record is intact";
}

TEST(Nfs4Clients, case_8_an_update_with_another_verifier_is_NOT_SAME) {
  World world;
  world.client("owner");
  EXPECT_EQ(world.exchange_id("owner", 2, "root", true).status, Status::NotSame);
  EXPECT_EQ(world.exchange_id("owner", 2, "other", true).status, Status::NotSame);
}

TEST(Nfs4Clients, case_9_an_update_by_another_principal_is_PERM) {
  World world;
  world.client("owner");
  EXPECT_EQ(world.exchange_id("owner", 1, "other", true).status, Status::Perm);
}

TEST(Nfs4Clients, ids_of_another_epoch_are_unknown) {
  World before(1), after(2);
  const auto client = before.client("owner");
  after.client("owner");
  EXPECT_EQ(after.create_session(client.id, 1).status, Status::StaleClientid);
  EXPECT_EQ(after.sequence(client.session, 0, 1).status, Status::BadSession);
}

TEST(Nfs4Clients, DESTROY_CLIENTID_of_one_with_sessions_is_CLIENTID_BUSY) {
  World world;
  const auto client = world.client("owner");
  LifePtr ended;
  EXPECT_EQ(world.clients.destroy_clientid(client.id, ended), Status::ClientidBusy);
  world.clients.destroy_session(client.session, kNoConnection);
  EXPECT_EQ(world.clients.destroy_clientid(client.id, ended), Status::Ok);
  EXPECT_EQ(ended, client.life);
  EXPECT_EQ(world.clients.destroy_clientid(client.id, ended), Status::StaleClientid);
}

TEST(Nfs4Clients, DESTROY_CLIENTID_of_one_with_opens_is_CLIENTID_BUSY) {
  World world;
  const auto client = world.client("owner");
  const OpenResult open = world.open(client, 1);
  world.clients.destroy_session(client.session, kNoConnection);
  LifePtr ended;
  EXPECT_EQ(world.clients.destroy_clientid(client.id, ended), Status::ClientidBusy);
  world.files.close(World::file(1), open.stateid, *client.life);
  EXPECT_EQ(world.clients.destroy_clientid(client.id, ended), Status::Ok);
}

TEST(Nfs4Clients, DESTROY_CLIENTID_takes_unconfirmed_ones_too) {
  World world;
  LifePtr ended;
  const ClientId id = world.exchange_id("owner").clientid;
  EXPECT_EQ(world.clients.destroy_clientid(id, ended), Status::Ok);
  EXPECT_TRUE(world.clients.list(world.now).empty());
}

TEST(Nfs4Clients, unconfirmed_records_go_after_a_lease) {
  World world;
  const ClientId id = world.exchange_id("owner").clientid;
  world.now += world.lease;
  EXPECT_TRUE(world.clients.expire(world.now).empty());
  EXPECT_NE(world.clients.life(id), nullptr);
  world.now += std::chrono::seconds(1);
  EXPECT_TRUE(world.clients.expire(world.now).empty());
  EXPECT_EQ(world.clients.life(id), nullptr);
}

TEST(Nfs4Clients, a_client_without_state_ends_with_its_lease) {
  World world;
  const auto client = world.client("owner");
  world.now += world.lease + std::chrono::seconds(1);
  const auto ended = world.clients.expire(world.now);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0], client.life);
  EXPECT_TRUE(client.life->ended());
  EXPECT_EQ(world.sequence(client.session, 0, 1).status, Status::BadSession);
}

TEST(Nfs4Clients, SEQUENCE_renews_the_lease) {
  World world;
  const auto client = world.client("owner");
  for (SequenceId i = 1; i < 10; ++i) {
    world.now += world.lease;
    EXPECT_TRUE(world.run(client, 0, i));
    EXPECT_TRUE(world.clients.expire(world.now).empty());
  }
}

TEST(Nfs4Clients, a_replay_renews_the_lease_and_a_refused_SEQUENCE_does_not) {
  World world;
  const auto client = world.client("owner");
  EXPECT_TRUE(world.run(client, 0, 1));
  world.now += world.lease;
  EXPECT_EQ(world.sequence(client.session, 0, 1).kind, Sequenced::Kind::Replay);
  world.now += world.lease;
  EXPECT_TRUE(world.clients.expire(world.now).empty());
  EXPECT_EQ(world.sequence(client.session, 0, 7).status, Status::SeqMisordered);
  world.now += std::chrono::seconds(1);
  EXPECT_EQ(world.clients.expire(world.now).size(), 1u);
}

TEST(Nfs4Clients, the_lease_does_not_run_out_while_a_request_runs_and_counts_from_its_end) {
  World world;
  const auto client = world.client("owner");
  const Sequenced running = world.sequence(client.session, 0, 1);
  world.now += 10 * world.lease;
  EXPECT_TRUE(world.clients.expire(world.now).empty());
  world.finish(running);
  world.now += world.lease;
  EXPECT_TRUE(world.clients.expire(world.now).empty());
  world.now += std::chrono::seconds(1);
  EXPECT_EQ(world.clients.expire(world.now).size(), 1u);
}

TEST(Nfs4Clients, a_request_that_keeps_no_lease_lets_it_run_out_and_renews_nothing_at_its_end) {
  World world;
  const auto client = world.client("owner");
  ASSERT_EQ(world.open(client, 1).verdict.status, Status::Ok);
  const Sequenced running = world.sequence(client.session, 0, 1);
  world.now += 10 * world.lease;
  world.clients.keeps_no_lease(running.slot, running.life, world.now);
  world.now += world.lease;
  EXPECT_TRUE(world.clients.expire(world.now).empty());
  EXPECT_FALSE(client.life->lapsed()) << "it counts from when that was known";
  world.now += std::chrono::seconds(1);
  EXPECT_TRUE(world.clients.expire(world.now).empty());
  EXPECT_TRUE(client.life->lapsed());
  world.clients.finished(running.slot, running.life, nullptr, world.now, false);
  EXPECT_TRUE(client.life->lapsed());
  EXPECT_EQ(client.life->running.load(), 0u);
  EXPECT_EQ(world.sequence(client.session, 0, 2).kind, Sequenced::Kind::Run);
  EXPECT_FALSE(client.life->lapsed());
}

TEST(Nfs4Clients, a_request_that_keeps_no_lease_may_outlive_its_client) {
  World world;
  const auto client = world.client("owner");
  const Sequenced running = world.sequence(client.session, 0, 1);
  world.clients.keeps_no_lease(running.slot, running.life, world.now);
  world.now += world.lease + std::chrono::seconds(1);
  EXPECT_EQ(world.clients.expire(world.now).size(), 1u);
  world.clients.finished(running.slot, running.life, nullptr, world.now, false);
  EXPECT_EQ(client.life->running.load(), 0u);
}

TEST(Nfs4Clients, a_retry_of_a_request_that_runs_renews_the_lease) {
  World world;
  const auto client = world.client("owner");
  const Sequenced running = world.sequence(client.session, 0, 1);
  world.clients.keeps_no_lease(running.slot, running.life, world.now);
  for (int i = 0; i < 3; ++i) {
    world.now += world.lease;
    EXPECT_EQ(world.sequence(client.session, 0, 1).kind, Sequenced::Kind::Wait);
    EXPECT_TRUE(world.clients.expire(world.now).empty());
  }
  world.now += world.lease + std::chrono::seconds(1);
  EXPECT_EQ(world.clients.expire(world.now).size(), 1u);
}

TEST(Nfs4Clients, a_client_is_listed_as_idle_since_it_was_heard_though_a_request_runs) {
  World world;
  const auto client = world.client("owner");
  EXPECT_EQ(world.sequence(client.session, 0, 1).kind, Sequenced::Kind::Run);
  world.now += 10 * world.lease;
  EXPECT_EQ(world.clients.info(client.life->clientid, world.now)->idle, 10 * world.lease);
}

TEST(Nfs4Clients, the_lease_counts_from_the_end_even_if_the_session_is_gone) {
  World world;
  const auto client = world.client("owner");
  const Sequenced running = world.sequence(client.session, 0, 1);
  world.clients.destroy_session(client.session, kNoConnection);
  world.now += 10 * world.lease;
  world.finish(running);
  world.now += world.lease;
  EXPECT_TRUE(world.clients.expire(world.now).empty());
}

TEST(Nfs4Clients, a_lapsed_client_keeps_its_opens_and_may_come_back) {
  World world;
  const auto client = world.client("owner");
  const OpenResult open = world.open(client, 1);
  world.now += world.lease + std::chrono::hours(23);
  EXPECT_TRUE(world.clients.expire(world.now).empty());
  EXPECT_TRUE(client.life->lapsed());
  EXPECT_TRUE(world.run(client, 0, 1));
  EXPECT_FALSE(client.life->lapsed());
  EXPECT_EQ(world.files.test_stateid(open.stateid, *client.life), Status::Ok);
}

TEST(Nfs4Clients, courtesy_ends_after_a_day) {
  World world;
  const auto client = world.client("owner");
  world.open(client, 1);
  world.now += world.lease + std::chrono::hours(24);
  EXPECT_TRUE(world.clients.expire(world.now).empty());
  world.now += std::chrono::seconds(1);
  const auto ended = world.clients.expire(world.now);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_FALSE(ended[0]->ended()) << "its record must go first";
  EXPECT_EQ(world.clients.end(ended[0]->clientid, true), ended[0]);
  world.files.release(*ended[0]);
  EXPECT_EQ(world.files.states(), 0u);
}

TEST(Nfs4Clients, courtesy_that_is_changed_counts_for_clients_that_have_lapsed) {
  World world;
  const auto client = world.client("owner");
  world.open(client, 1);
  world.now += world.lease + std::chrono::hours(1);
  EXPECT_TRUE(world.clients.expire(world.now).empty());
  world.clients.change_courtesy(std::chrono::minutes(59));
  EXPECT_EQ(world.clients.expire(world.now).size(), 1u);
}

TEST(Nfs4Clients, only_a_lapsed_client_ends_for_somebody_else) {
  World world;
  const auto client = world.client("owner");
  world.open(client, 1);
  EXPECT_EQ(world.clients.end(client.id, true), nullptr);
  world.now += world.lease + std::chrono::seconds(1);
  world.clients.expire(world.now);
  EXPECT_EQ(world.clients.end(client.id, true), client.life);
  EXPECT_EQ(world.clients.end(client.id, true), nullptr);
}

TEST(Nfs4Clients, an_administrator_ends_any) {
  World world;
  const auto client = world.client("owner");
  EXPECT_EQ(world.clients.end(client.id, false), client.life);
  EXPECT_EQ(world.sequence(client.session, 0, 1).status, Status::BadSession);
}

TEST(Nfs4Clients, RECLAIM_COMPLETE_succeeds_once) {
  World world;
  const auto client = world.fresh_client("owner");
  EXPECT_EQ(world.clients.reclaim_complete(*client.life), Status::Ok);
  EXPECT_EQ(world.clients.reclaim_complete(*client.life), Status::CompleteAlready);
}

TEST(Nfs4Clients, the_oldest_unconfirmed_one_of_the_address_that_has_most_goes) {
  ClientLimits limits;
  limits.unconfirmed = 8;
  World world(1, limits);
  const ClientId mine = world.exchange_id("mine", 1, "root", false, "192.0.2.1").clientid;
  std::vector<ClientId> flood;
  for (int i = 0; i < 100; ++i)
    flood.push_back(
        world.exchange_id("f" + std::to_string(i), 1, "root", false, "192.0.2.2").clientid);
  EXPECT_EQ(world.clients.list(world.now).size(), 8u);
  EXPECT_EQ(world.create_session(mine, 1).status, Status::Ok);
  EXPECT_EQ(world.create_session(flood.front(), 1).status, Status::StaleClientid);
  EXPECT_EQ(world.create_session(flood.back(), 1).status, Status::Ok);
}

TEST(Nfs4Clients, one_address_does_not_take_all_clients) {
  ClientLimits limits;
  limits.clients_of_address = 3;
  World world(1, limits);
  for (int i = 0; i < 3; ++i) world.client("a" + std::to_string(i), "192.0.2.1");
  const ClientId fourth = world.exchange_id("a3", 1, "root", false, "192.0.2.1").clientid;
  EXPECT_EQ(world.create_session(fourth, 1).status, Status::Delay);
  world.client("b", "192.0.2.2");
  // A new incarnation takes the place of the old one.
  const ClientId again = world.exchange_id("a0", 2, "root", false, "192.0.2.1").clientid;
  EXPECT_EQ(world.create_session(again, 1).status, Status::Ok);
}

TEST(Nfs4Clients, an_address_has_no_more_of_them_than_it_leaves_free) {
  ClientLimits limits;
  limits.clients = 16;
  World world(1, limits);
  const auto fill = [&](const std::string& address) {
    for (int count = 0;; ++count) {
      const std::string name = address + " " + std::to_string(count);
      const ClientId id = world.exchange_id(name, 1, "root", false, address).clientid;
      const CreateSessionResult made = world.create_session(id, 1);
      if (made.status != Status::Ok) return std::pair(count, made.limit);
    }
  };
  EXPECT_EQ(fill("192.0.2.1"), std::pair(8, Limit::All));
  EXPECT_EQ(fill("2001:db8::1"), std::pair(4, Limit::All)) << "of the same host, perhaps";
  EXPECT_EQ(fill("192.0.2.3"), std::pair(2, Limit::All));
  EXPECT_EQ(fill("192.0.2.4"), std::pair(1, Limit::All));
}

TEST(Nfs4Clients, name_a_lapsed_one_that_can_go_beyond_the_limit) {
  ClientLimits limits;
  limits.clients = 2;
  limits.shared_out = false;
  World world(1, limits);
  const auto lapsing = world.client("lapsing");
  world.open(lapsing, 1);
  world.now += world.lease;
  world.client("alive");
  const ClientId third = world.exchange_id("third").clientid;
  EXPECT_EQ(world.create_session(third, 1).lapsed, 0u);
  world.now += std::chrono::seconds(1);
  world.clients.expire(world.now);
  const CreateSessionResult refused = world.create_session(third, 1);
  EXPECT_EQ(refused.status, Status::Delay);
  EXPECT_EQ(refused.lapsed, lapsing.id);
  world.files.release(*world.clients.end(refused.lapsed, true));
  EXPECT_EQ(world.create_session(third, 1).status, Status::Ok) << "the sequence did not move on";
}

TEST(Nfs4Clients, name_only_one_of_the_same_address_beyond_the_limit_of_that) {
  ClientLimits limits;
  limits.clients_of_address = 2;
  World world(1, limits);
  const auto here = world.client("here", "192.0.2.1"), there = world.client("there", "192.0.2.2");
  world.open(here, 1);
  world.open(there, 2);
  world.client("alive", "192.0.2.1");
  world.now += world.lease + std::chrono::seconds(1);
  world.clients.expire(world.now);
  EXPECT_EQ(world.clients.list(world.now).size(), 2u) << "who has nothing is gone";
  world.client("second", "192.0.2.1");
  const ClientId third = world.exchange_id("third", 1, "root", false, "192.0.2.1").clientid;
  const CreateSessionResult refused = world.create_session(third, 1);
  EXPECT_EQ(refused.status, Status::Delay);
  EXPECT_EQ(refused.lapsed, here.id);
  world.files.release(*world.clients.end(here.id, true));
  world.client("fourth", "192.0.2.1");
  EXPECT_EQ(world.create_session(third, 1).lapsed, 0u);
  EXPECT_TRUE(there.life->lapsed()) << "its end makes no room at another address";
}

TEST(Nfs4Clients, make_room_when_they_lapsed_only_for_the_kind_of_state_they_have) {
  World world;
  const auto plain = world.client("plain"), delegated = world.client("delegated");
  const auto asks = world.client("asks", "192.0.2.2");
  world.open(plain, 1);
  ASSERT_EQ(world.files.delegate({World::file(2), DelegationType::Read, {}}, delegated.life).status,
            Status::Ok);
  world.clients.destroy_session(delegated.session, kNoConnection);
  const auto found = [&](Shortage of) {
    return world.clients.find_lapsed(Limit::All, of, *asks.life);
  };
  EXPECT_EQ(found(Shortage::States), 0u) << "their leases go on";
  world.now += world.lease + std::chrono::seconds(1);
  world.clients.expire(world.now);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(found(Shortage::Delegations), delegated.id);
    EXPECT_EQ(found(Shortage::Caches), plain.id);
    EXPECT_NE(found(Shortage::States), 0u);
  }
  EXPECT_EQ(world.clients.find_lapsed(Limit::Address, Shortage::States, *asks.life), 0u);
  EXPECT_EQ(world.clients.find_lapsed(Limit::Client, Shortage::States, *asks.life), 0u);
  EXPECT_EQ(world.clients.find_lapsed(Limit::None, Shortage::States, *asks.life), 0u);
  world.clients.end(delegated.id, true);
  EXPECT_EQ(found(Shortage::Delegations), 0u);
  EXPECT_EQ(found(Shortage::States), plain.id);
}

TEST(Nfs4Clients, lapse_once_and_end_soon_when_another_wants_what_they_hold) {
  World world;
  const auto client = world.client("owner");
  world.open(client, 1);
  std::vector<LifePtr> lapsed;
  const auto expire = [&] {
    world.now += world.lease + std::chrono::seconds(1);
    return world.clients.expire(world.now, &lapsed);
  };
  EXPECT_TRUE(expire().empty());
  EXPECT_EQ(lapsed, std::vector{client.life});
  EXPECT_TRUE(expire().empty());
  EXPECT_TRUE(lapsed.empty());
  client.life->wanted = EndedFor::Conflict;
  EXPECT_EQ(expire(), std::vector{client.life});
  EXPECT_TRUE(world.run(client, 0, 1)) << "it came back just before";
  EXPECT_TRUE(expire().empty());
  EXPECT_EQ(lapsed, std::vector{client.life}) << "and has its courtesy again";
}

TEST(Nfs4Clients, twenty_thousand_that_vanish_take_what_there_is_for_a_lease_and_no_more) {
  World world;
  const std::uint32_t limit = ClientLimits{}.clients;
  std::uint32_t made = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string address = "192.0.2." + std::to_string(i % 8);
    const ExchangeIdResult known =
        world.exchange_id("gone" + std::to_string(i), 1, "root", false, address);
    CreateSessionArgs session = World::session_args(known.clientid, known.sequenceid);
    session.fore = World::wanted(1);
    const Status status = world.clients.create_session(session, world.now).status;
    ++(status == Status::Ok ? made : refused);
  }
  EXPECT_EQ(made + refused, 20'000u);
  EXPECT_LE(made, limit - limit / 9 + 9) << "as much as each address has is left";
  EXPECT_GE(made, limit - limit / 9);
  world.client("alive", "192.0.2.9");
  world.now += world.lease + std::chrono::seconds(1);
  EXPECT_EQ(world.clients.expire(world.now).size(), made + 1) << "they hold nothing";
  for (int i = 0; i < 100; ++i) world.client("late" + std::to_string(i), "192.0.2.1");
}

TEST(Nfs4Clients, leave_nothing_behind) {
  World world;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) {
      const std::string name = std::to_string(i);
      world.open(world.client(name, "192.0.2." + name), i);
      world.exchange_id("u" + name, 1, "root", false, "198.51.100." + name);
    }
    world.now += world.lease + std::chrono::hours(25);
    for (const LifePtr& life : world.clients.expire(world.now)) {
      EXPECT_EQ(world.clients.end(life->clientid, true), life);
      world.files.release(*life);
    }
    EXPECT_EQ(world.files.states(), 0u);
    EXPECT_TRUE(world.clients.list(world.now).empty());
  }
}

}  // namespace
}  // namespace stag::nfs::state
