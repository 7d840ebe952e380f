// The sentences of RFC 8881 18.36, 18.37, 18.34 (sessions), 2.10.6 and 18.46 (slots).
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <vector>

#include "nfs/state/session.h"
#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::StoredReply;
using testing::World;
using How = Sequenced::Kind;

int number_of(const ReplyPtr& reply) {
  return static_cast<const StoredReply&>(*reply).number;
}

TEST(Nfs4Sessions, the_first_one_confirms_the_client_id) {
  World world;
  const ExchangeIdResult id = world.exchange_id("owner");
  const CreateSessionResult session = world.create_session(id.clientid, id.sequenceid);
  EXPECT_EQ(session.status, Status::Ok);
  EXPECT_TRUE(session.confirmed);
  EXPECT_EQ(session.sequence, id.sequenceid);
  EXPECT_EQ(session.life->clientid, id.clientid);
  EXPECT_FALSE(world.create_session(id.clientid, 2).confirmed);
}

TEST(Nfs4Sessions, a_retry_of_CREATE_SESSION_yields_the_same_session) {
  World world;
  const auto client = world.client("owner");
  const CreateSessionResult retry = world.create_session(client.id, 1);
  EXPECT_EQ(retry.status, Status::Ok);
  EXPECT_TRUE(retry.replay);
  EXPECT_EQ(retry.sessionid, client.session);
  EXPECT_EQ(retry.sequence, 1u);
  EXPECT_EQ(retry.fore, world.wanted());
  EXPECT_EQ(world.clients.list(world.now)[0].sessions, 1u);
}

TEST(Nfs4Sessions, CREATE_SESSION_out_of_order_is_SEQ_MISORDERED_and_changes_nothing) {
  World world;
  const ClientId id = world.exchange_id("owner").clientid;
  for (const SequenceId wrong : {0u, 2u, 3u, ~0u})
    EXPECT_EQ(world.create_session(id, wrong).status, Status::SeqMisordered) << wrong;
  EXPECT_EQ(world.create_session(id, 1).status, Status::Ok);
  EXPECT_EQ(world.create_session(id, 3).status, Status::SeqMisordered);
  EXPECT_EQ(world.create_session(id, 0).status, Status::SeqMisordered);
  EXPECT_EQ(world.create_session(id, 2).status, Status::Ok);
}

TEST(Nfs4Sessions, another_principal_may_not_confirm) {
  World world;
  const ClientId id = world.exchange_id("owner").clientid;
  CreateSessionArgs args = World::session_args(id, 1);
  args.principal = bytes_of("other");
  EXPECT_EQ(world.clients.create_session(args, world.now).status, Status::ClidInuse);
  EXPECT_EQ(world.create_session(id, 1).status, Status::Ok);
}

TEST(Nfs4Sessions, values_are_lowered_and_never_raised) {
  World world;
  const ClientId id = world.exchange_id("owner").clientid;
  CreateSessionArgs args = World::session_args(id, 1);
  args.fore = {64, 1 << 30, 1 << 30, 1 << 30, 1000, 1000};
  args.back = {64, 1 << 30, 5000, 1 << 30, 7, 1000};
  const CreateSessionResult session = world.clients.create_session(args, world.now);
  EXPECT_EQ(session.fore, ClientLimits{}.fore);
  EXPECT_EQ(session.back.header_pad_size, 0u);
  EXPECT_EQ(session.back.max_request_size, ClientLimits{}.fore.max_request_size);
  EXPECT_EQ(session.back.max_response_size, 5000u);
  EXPECT_EQ(session.back.max_operations, 7u) << "the client's, RFC 8881 18.36.3";
  EXPECT_EQ(session.back.max_requests, 1000u) << "the client's, RFC 8881 18.36.3";
}

TEST(Nfs4Sessions, sizes_that_no_reply_fits_are_TOOSMALL_and_leave_nothing) {
  World world;
  const ClientId id = world.exchange_id("owner").clientid;
  for (SequenceId i = 1; i <= 1000; ++i) {
    CreateSessionArgs args = World::session_args(id, i);
    (i % 2 == 0 ? args.fore.max_request_size : args.fore.max_response_size) = 20;
    EXPECT_EQ(world.clients.create_session(args, world.now).status, Status::Toosmall);
  }
  CreateSessionArgs args = World::session_args(id, 1001);
  args.connection = 1;
  args.back.max_request_size = 20;
  EXPECT_EQ(world.clients.create_session(args, world.now).status, Status::Ok)
      << "a back channel that was not asked for does not matter";
}

TEST(Nfs4Sessions, a_client_has_sixteen_at_most) {
  World world;
  const auto client = world.client("owner");
  for (SequenceId i = 2; i <= 16; ++i)
    EXPECT_EQ(world.create_session(client.id, i).status, Status::Ok);
  EXPECT_EQ(world.create_session(client.id, 17).status, Status::Nospc);
  world.clients.destroy_session(client.session, kNoConnection);
  EXPECT_EQ(world.create_session(client.id, 18).status, Status::Ok);
}

// RFC 8881 18.36.4: the number is taken in phase 2, before anything is refused in the next ones.
TEST(Nfs4Sessions, a_refused_CREATE_SESSION_takes_its_number_and_is_refused_again_to_a_retry) {
  World world;
  const auto client = world.client("owner");
  CreateSessionArgs small = World::session_args(client.id, 2);
  small.fore.max_request_size = 20;
  EXPECT_EQ(world.clients.create_session(small, world.now).status, Status::Toosmall);
  const CreateSessionResult retry = world.create_session(client.id, 2);
  EXPECT_EQ(retry.status, Status::Toosmall) << "whatever it asks for";
  EXPECT_TRUE(retry.replay);
  EXPECT_EQ(world.exchange_id("owner").sequenceid, 3u);
  small.sequence = 5;
  EXPECT_EQ(world.clients.create_session(small, world.now).status, Status::SeqMisordered)
      << "which comes first";
  EXPECT_EQ(world.create_session(client.id, 3).status, Status::Ok);
  EXPECT_TRUE(world.create_session(client.id, 3).replay);
  EXPECT_EQ(world.clients.list(world.now)[0].sessions, 2u);
}

TEST(Nfs4Sessions, get_fewer_slots_as_the_caches_fill_and_all_again_when_they_are_free) {
  ClientLimits limits;
  limits.caches = 1 << 20;
  World world(1, limits);
  std::vector<testing::Client> clients;
  std::uint32_t least = 64;
  for (int i = 0; i < 150; ++i) {
    const std::string name = std::to_string(i);
    const ExchangeIdResult id = world.exchange_id(name, 1, "root", false, "192.0.2." + name);
    const CreateSessionResult session = world.create_session(id.clientid, 1);
    ASSERT_EQ(session.status, Status::Ok) << i;
    EXPECT_LE(session.fore.max_requests, least);
    least = session.fore.max_requests;
    clients.push_back({id.clientid, session.sessionid, session.life});
  }
  EXPECT_EQ(least, 1u);
  const Sequenced sequenced = world.sequence(clients.back().session, 0, 1);
  EXPECT_EQ(sequenced.max_response_size_cached, kLeastCachedReply);
  EXPECT_EQ(sequenced.highest_slotid, 0u);
  for (const auto& client : clients) world.clients.destroy_session(client.session, kNoConnection);
  // 768 KiB / 8 is room for 32 slots of 2 KiB, as at first.
  EXPECT_EQ(world.create_session(clients[0].id, 2).fore.max_requests, 32u);
}

TEST(Nfs4Sessions, one_address_leaves_most_of_the_caches_to_others) {
  ClientLimits limits;
  limits.caches = 8 << 20;
  World world(1, limits);
  for (int i = 0; i < 500; ++i) world.client(std::to_string(i), "192.0.2.1");
  const ExchangeIdResult id = world.exchange_id("other", 1, "root", false, "192.0.2.2");
  EXPECT_EQ(world.create_session(id.clientid, 1).fore.max_requests, 64u);
}

TEST(Nfs4Sessions, one_address_does_not_take_all_sessions) {
  ClientLimits limits;
  limits.caches = 1 << 20;
  World world(1, limits);
  std::vector<testing::Client> clients;
  SequenceId next = limits.sessions;
  while (next >= limits.sessions) {
    clients.push_back(world.client(std::to_string(clients.size()), "192.0.2.1"));
    for (next = 2; world.create_session(clients.back().id, next).status == Status::Ok;) ++next;
  }
  EXPECT_EQ(world.create_session(clients.back().id, next).status, Status::Delay);
  EXPECT_LE(clients[0].life->account->cache.load(), limits.caches / 4);
  for (int address = 2; address < 5; ++address)
    for (int i = 0; i < 20; ++i)
      world.client("other" + std::to_string(address * 20 + i),
                   "192.0.2." + std::to_string(address));
  for (const auto& client : clients) world.clients.end(client.id, false);
  world.client("again", "192.0.2.1");
}

TEST(Nfs4Sessions, many_addresses_do_not_take_all_sessions) {
  ClientLimits limits;
  limits.caches = 1 << 20;
  limits.sessions = 1024;
  World world(1, limits);
  for (int address = 1; address <= 8; ++address) {
    const std::string name = std::to_string(address);
    const testing::Client client = world.client(name, "192.0.2." + name);
    ASSERT_NE(client.life, nullptr) << address;
    for (SequenceId next = 2; world.create_session(client.id, next).status == Status::Ok;) ++next;
  }
}

TEST(Nfs4Sessions, a_lapsed_client_is_named_when_the_caches_are_full) {
  ClientLimits limits;
  limits.caches = 64 << 10;
  World world(1, limits);
  std::vector<testing::Client> clients;
  CreateSessionResult refused;
  for (int i = 0; refused.status == Status::Ok; ++i) {
    const std::string name = std::to_string(i);
    const std::string address = "192.0.2." + std::to_string(i % 8);
    const ExchangeIdResult id = world.exchange_id(name, 1, "root", false, address);
    refused = world.create_session(id.clientid, 1);
    if (refused.status != Status::Ok) break;
    clients.push_back({id.clientid, refused.sessionid, refused.life});
    world.clients.reclaim_complete(*refused.life);
    world.open(clients.back(), i);
  }
  EXPECT_TRUE(refused.caches_full);
  EXPECT_EQ(refused.lapsed, 0u) << "nobody has";
  world.now += world.lease + std::chrono::seconds(1);
  world.clients.expire(world.now);
  // A client that has nothing that lapsed frees no place.
  const ExchangeIdResult late = world.exchange_id("late", 1, "root", false, "198.51.100.1");
  for (std::size_t i = 0; i + 1 < clients.size(); ++i) {
    const CreateSessionResult again = world.create_session(late.clientid, 1);
    if (again.status == Status::Ok) return;
    ASSERT_EQ(again.status, Status::Delay);
    ASSERT_NE(again.lapsed, 0u) << i;
    const LifePtr ended = world.clients.end(again.lapsed, true);
    ASSERT_NE(ended, nullptr);
    world.files.release(*ended);
  }
  FAIL() << "there was room";
}

TEST(Nfs4Sessions, a_lapsed_client_is_not_named_to_make_room_for_itself) {
  ClientLimits limits;
  limits.caches = 64 << 10;
  World world(1, limits);
  const testing::Client client = world.client("only");
  world.open(client, 1);
  SequenceId next = 2;
  while (world.create_session(client.id, next).status == Status::Ok) ++next;
  world.now += world.lease + std::chrono::seconds(1);
  world.clients.expire(world.now);
  ASSERT_TRUE(client.life->lapsed());
  const CreateSessionResult refused = world.create_session(client.id, next);
  EXPECT_EQ(refused.status, Status::Delay);
  EXPECT_EQ(refused.lapsed, 0u);
}

TEST(Nfs4Sessions, the_sessions_of_a_replaced_incarnation_count_as_free) {
  ClientLimits limits;
  limits.caches = 64 << 10;
  World world(1, limits);
  for (int i = 0; i < 1000; ++i) {
    const ExchangeIdResult id = world.exchange_id(std::to_string(i));
    if (world.create_session(id.clientid, 1).status != Status::Ok) break;
    ASSERT_LT(i, 999);
  }
  const ExchangeIdResult again = world.exchange_id("0", 2);
  const CreateSessionResult session = world.create_session(again.clientid, again.sequenceid);
  EXPECT_EQ(session.status, Status::Ok);
  EXPECT_NE(session.ended, nullptr);
  EXPECT_LE(session.life->account->cache.load(), limits.caches / 4);
}

TEST(Nfs4Sessions, a_destroyed_one_is_BADSESSION) {
  World world;
  const auto client = world.client("owner");
  EXPECT_EQ(world.clients.destroy_session(client.session, kNoConnection), Status::Ok);
  EXPECT_EQ(world.clients.destroy_session(client.session, kNoConnection), Status::BadSession);
  EXPECT_EQ(world.sequence(client.session, 0, 1).status, Status::BadSession);
  // Its place is another one's now.
  const CreateSessionResult next = world.create_session(client.id, 2);
  EXPECT_NE(next.sessionid, client.session);
  EXPECT_EQ(world.sequence(client.session, 0, 1).status, Status::BadSession);
}

// RFC 8881 18.37.3, 2.10.3.1
TEST(Nfs4Sessions, a_session_is_destroyed_by_connections_that_are_associated_with_it) {
  World world;
  const auto carrier = std::make_shared<int>();
  std::uint32_t made = 0;
  const ClientId id = world.exchange_id("owner").clientid;
  const auto session_on = [&](ConnectionId connection) {
    CreateSessionArgs args = World::session_args(id, ++made);
    args.connection = connection;
    return world.clients.create_session(args, world.now).sessionid;
  };
  const SessionId one = session_on(1);
  const SessionId another = session_on(2);
  EXPECT_EQ(world.clients.destroy_session(one, 2), Status::ConnNotBoundToSession);
  EXPECT_EQ(world.clients.destroy_session(one, 1), Status::Ok);
  EXPECT_EQ(world.clients.destroy_session(one, 1), Status::BadSession) << "whoever asks";
  world.clients.bind_connection(another, 3, channel::kBack, channel::kBack, carrier);
  EXPECT_EQ(world.clients.destroy_session(another, 3), Status::Ok) << "of either channel";
}

TEST(Nfs4Sessions, a_connection_is_associated_by_SEQUENCE_if_it_runs) {
  World world;
  const auto client = world.client("owner");
  SequenceArgs args = World::sequence_args(client.session, 0, 1);
  args.connection = 7;
  args.sequenceid = 5;
  EXPECT_EQ(world.clients.sequence(args, world.now).status, Status::SeqMisordered);
  EXPECT_EQ(world.clients.destroy_session(client.session, 7), Status::ConnNotBoundToSession);
  // As many as a client may have at a time, in turns.
  args.sequenceid = 0;
  for (int turn = 0; turn < 2; ++turn)
    for (args.connection = 100; args.connection < 116; ++args.connection) {
      ++args.sequenceid;
      world.finish(world.clients.sequence(args, world.now), std::make_shared<StoredReply>(1));
    }
  EXPECT_EQ(world.clients.destroy_session(client.session, 7), Status::ConnNotBoundToSession);
  EXPECT_EQ(world.clients.destroy_session(client.session, 100), Status::Ok);
}

TEST(Nfs4Sessions, a_session_id_is_not_to_be_guessed) {
  World world;
  const auto client = world.client("owner");
  for (std::size_t i = 0; i < client.session.size(); ++i) {
    SessionId guess = client.session;
    guess[i] ^= std::byte{1};
    EXPECT_EQ(world.sequence(guess, 0, 1).status, Status::BadSession) << i;
  }
}

TEST(Nfs4Sessions, a_session_destroyed_by_its_own_COMPOUND_lets_the_request_end) {
  World world;
  const auto client = world.client("owner");
  const Sequenced running = world.sequence(client.session, 0, 1);
  EXPECT_EQ(world.clients.destroy_session(client.session, kNoConnection), Status::Ok);
  world.finish(running, std::make_shared<StoredReply>(1));
  EXPECT_EQ(client.life->running.load(), 0u);
}

TEST(Nfs4Sessions, a_connection_gets_what_it_asks_or_the_part_it_can) {
  World world;
  const SessionId session = world.client("owner").session;
  auto carrier = std::make_shared<int>();
  const auto bind = [&](ConnectionId connection, std::uint32_t asked, std::uint32_t required,
                        bool able) {
    return world.clients.bind_connection(session, connection, asked, required,
                                         able ? carrier : CallbackConnection());
  };
  EXPECT_EQ(bind(1, channel::kFore, channel::kFore, true).directions, channel::kFore);
  EXPECT_EQ(bind(2, channel::kBoth, channel::kFore, true).directions, channel::kBoth);
  EXPECT_EQ(bind(3, channel::kBoth, channel::kFore, false).directions, channel::kFore);
  EXPECT_EQ(bind(4, channel::kBack, channel::kBack, false).status, Status::Inval);
  EXPECT_EQ(bind(5, channel::kBack, channel::kBack, true).directions, channel::kBack);
  const auto back = world.clients.back_channels(session);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].connection, 5u) << "the newest first";
  EXPECT_EQ(back[1].connection, 2u);
  carrier.reset();
  EXPECT_TRUE(world.clients.back_channels(session).empty()) << "they went with the connections";
}

TEST(Nfs4Sessions, binding_again_has_no_effect_and_demanding_a_change_is_INVAL) {
  World world;
  const SessionId session = world.client("owner").session;
  const auto carrier = std::make_shared<int>();
  const auto bind = [&](std::uint32_t asked, std::uint32_t required) {
    return world.clients.bind_connection(session, 1, asked, required, carrier);
  };
  EXPECT_EQ(bind(channel::kFore, channel::kFore).status, Status::Ok);
  EXPECT_EQ(bind(channel::kBoth, channel::kFore).directions, channel::kFore);
  EXPECT_EQ(bind(channel::kBack, channel::kBack).status, Status::Inval);
  EXPECT_EQ(bind(channel::kBoth, channel::kBack).status, Status::Inval);
}

TEST(Nfs4Sessions, a_protected_session_is_still_served_by_a_connection_whose_callbacks_fail) {
  World world;
  ExchangeIdArgs owner;
  owner.co_ownerid = bytes_of("owner");
  owner.principal = bytes_of("root");
  owner.address = "192.0.2.1";
  owner.integrity = true;
  owner.protection.machine_credential = true;
  const ClientId id = world.clients.exchange_id(owner, world.now).clientid;
  CreateSessionArgs args = World::session_args(id, 1);
  args.integrity = true;
  args.connection = 1;
  args.connection_back_channel = true;
  const auto carrier = std::make_shared<int>();
  args.callbacks = carrier;
  const SessionId session = world.clients.create_session(args, world.now).sessionid;
  world.clients.unbind_back_channel(session, 1);
  EXPECT_TRUE(world.clients.back_channels(session).empty());
  SequenceArgs call = World::sequence_args(session, 0, 1);
  call.connection = 1;
  const Sequenced running = world.clients.sequence(call, world.now);
  EXPECT_EQ(running.status, Status::Ok);
  EXPECT_EQ(running.kind, How::Run);
  world.finish(running);
  EXPECT_EQ(
      world.clients.bind_connection(session, 1, channel::kBoth, channel::kFore, carrier).directions,
      channel::kBoth);
  EXPECT_EQ(world.clients.back_channels(session).size(), 1u);
}

TEST(Nfs4Sessions,
     a_connection_whose_callbacks_failed_before_it_went_makes_room_for_another_first) {
  World world;
  const SessionId session = world.client("owner").session;
  const auto carrier = std::make_shared<int>();
  const auto bind = [&](ConnectionId connection, const CallbackConnection& callbacks) {
    return world.clients.bind_connection(session, connection, channel::kBoth, channel::kFore,
                                         callbacks);
  };
  ConnectionId next = 100;
  EXPECT_EQ(bind(next, carrier).directions, channel::kBoth);
  for (int i = 0; i < 100; ++i) {
    const auto gone = std::make_shared<int>();
    EXPECT_EQ(bind(++next, gone).directions, channel::kBoth);
    world.clients.unbind_back_channel(session, next);
  }
  const auto back = world.clients.back_channels(session);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].connection, 100u);
}

TEST(Nfs4Sessions, a_lost_back_channel_is_told_until_there_is_one) {
  constexpr std::uint32_t kDown = 0x1, kDownSession = 0x200;
  World world;
  const ClientId id = world.exchange_id("owner").clientid;
  CreateSessionArgs args = World::session_args(id, 1);
  args.connection = 1;
  args.connection_back_channel = true;
  auto carrier = std::make_shared<int>();
  args.callbacks = carrier;
  const SessionId first = world.clients.create_session(args, world.now).sessionid;
  args.sequence = 2;
  const SessionId second = world.clients.create_session(args, world.now).sessionid;
  SequenceId number = 0;
  const auto flags = [&](const SessionId& session, std::uint32_t slot) {
    const Sequenced running = world.sequence(session, slot, number);
    EXPECT_EQ(running.kind, How::Run);
    world.finish(running);
    return running.status_flags;
  };
  number = 1;
  EXPECT_EQ(flags(first, 0), 0u);
  world.clients.unbind_back_channel(first, 1);
  EXPECT_EQ(flags(first, 1), kDownSession);
  EXPECT_EQ(flags(second, 1), 0u);
  world.clients.unbind_back_channel(second, 1);
  EXPECT_EQ(flags(first, 2), kDownSession | kDown);
  world.clients.bind_connection(second, 2, channel::kBoth, channel::kFore, carrier);
  EXPECT_EQ(flags(first, 3), kDownSession);
  EXPECT_EQ(flags(second, 3), 0u);
  carrier.reset();
  EXPECT_EQ(flags(second, 4), kDownSession | kDown) << "the connection is gone";
}

// RFC 8881 18.46.3: it is subject to having them revoked.
TEST(Nfs4Sessions, a_back_channel_that_never_was_is_missed_by_who_holds_a_delegation) {
  constexpr std::uint32_t kDown = 0x1;
  World world;
  const auto client = world.client("owner");
  SequenceId number = 0;
  const auto flags = [&] {
    const Sequenced running = world.sequence(client.session, 0, ++number);
    EXPECT_EQ(running.kind, How::Run);
    world.finish(running);
    return running.status_flags;
  };
  EXPECT_EQ(flags(), 0u);
  const FileKey file = World::file(1);
  const Stateid stateid =
      world.files.delegate({file, DelegationType::Read, {}}, client.life).stateid;
  EXPECT_EQ(flags(), kDown);
  const auto carrier = std::make_shared<int>();
  world.clients.bind_connection(client.session, 1, channel::kBoth, channel::kFore, carrier);
  EXPECT_EQ(flags(), 0u);
  world.files.return_delegation(file, stateid, *client.life);
  EXPECT_EQ(flags(), 0u);
}

TEST(Nfs4Slots, the_first_request_has_sequence_id_1) {
  World world;
  const auto client = world.client("owner");
  for (const SequenceId wrong : {0u, 2u, ~0u})
    EXPECT_EQ(world.sequence(client.session, 0, wrong).status, Status::SeqMisordered) << wrong;
  EXPECT_EQ(world.sequence(client.session, 0, 1).kind, How::Run);
}

TEST(Nfs4Slots, run_each_request_once_and_replay_it_as_often_as_asked) {
  World world;
  const auto client = world.client("owner");
  for (SequenceId i = 1; i < 5; ++i) {
    EXPECT_TRUE(world.run(client, 3, i));
    for (int again = 0; again < 3; ++again) {
      const Sequenced replay = world.sequence(client.session, 3, i);
      ASSERT_EQ(replay.kind, How::Replay);
      EXPECT_EQ(number_of(replay.reply), static_cast<int>(i));
    }
    EXPECT_EQ(world.sequence(client.session, 3, i + 2).status, Status::SeqMisordered);
    EXPECT_EQ(world.sequence(client.session, 3, i - 1).status, Status::SeqMisordered);
  }
  EXPECT_EQ(client.life->running.load(), 0u) << "a replay is no request that runs";
}

TEST(Nfs4Slots, a_request_that_was_not_cached_is_replayed_without_reply) {
  World world;
  const auto client = world.client("owner");
  world.finish(world.sequence(client.session, 0, 1), nullptr);
  const Sequenced replay = world.sequence(client.session, 0, 1);
  EXPECT_EQ(replay.kind, How::Replay);
  EXPECT_EQ(replay.reply, nullptr);
}

TEST(Nfs4Slots, are_independent) {
  World world;
  const auto client = world.client("owner");
  EXPECT_TRUE(world.run(client, 0, 1));
  EXPECT_EQ(world.sequence(client.session, 63, 2).status, Status::SeqMisordered);
  EXPECT_TRUE(world.run(client, 63, 1));
  EXPECT_EQ(world.sequence(client.session, 64, 1).status, Status::BadSlot);
  EXPECT_EQ(world.sequence(client.session, ~0u, 1).status, Status::BadSlot);
}

TEST(Nfs4Slots, sequence_ids_wrap_around_through_zero) {
  const Fingerprint none, other{0, 7};
  Slot slot(~0u);
  EXPECT_EQ(slot.judge(~0u, none), Slot::Judgement::Done);
  EXPECT_EQ(slot.judge(1, none), Slot::Judgement::Misordered);
  ASSERT_EQ(slot.judge(0, other), Slot::Judgement::New);
  static_cast<void>(slot.start(other));
  static_cast<void>(slot.finish(nullptr));
  EXPECT_EQ(slot.judge(0, other), Slot::Judgement::Done);
  EXPECT_EQ(slot.judge(~0u, none), Slot::Judgement::Misordered);
  EXPECT_EQ(slot.judge(1, none), Slot::Judgement::New);
}

TEST(Nfs4Slots, another_request_with_the_same_number_is_SEQ_FALSE_RETRY) {
  World world;
  const auto client = world.client("owner");
  const Sequenced running = world.sequence(client.session, 0, 1, 11);
  EXPECT_EQ(world.sequence(client.session, 0, 1, 12).kind, How::Wait) << "it takes no number yet";
  world.finish(running);
  EXPECT_EQ(world.sequence(client.session, 0, 1, 12).status, Status::SeqFalseRetry);
  EXPECT_EQ(world.sequence(client.session, 0, 1, 11).kind, How::Replay);
}

TEST(Nfs4Slots, a_new_request_before_the_reply_is_SEQ_MISORDERED) {
  World world;
  const auto client = world.client("owner");
  const Sequenced running = world.sequence(client.session, 0, 1);
  EXPECT_EQ(world.sequence(client.session, 0, 2).status, Status::SeqMisordered);
  world.finish(running);
  EXPECT_EQ(world.sequence(client.session, 0, 2).kind, How::Run);
}

TEST(Nfs4Slots, a_retry_waits_for_the_first_and_gets_its_reply) {
  World world;
  const auto client = world.client("owner");
  const Sequenced running = world.sequence(client.session, 0, 1);
  const Sequenced retry = world.sequence(client.session, 0, 1);
  ASSERT_EQ(retry.kind, How::Wait);
  int told = 0;
  EXPECT_TRUE(world.clients.wait(retry.slot, [&] { ++told; }));
  world.finish(running, std::make_shared<StoredReply>(5));
  EXPECT_EQ(told, 1);
  const Sequenced replay = world.sequence(client.session, 0, 1);
  ASSERT_EQ(replay.kind, How::Replay);
  EXPECT_EQ(number_of(replay.reply), 5);
}

TEST(Nfs4Slots, a_retry_does_not_wait_for_what_is_done_already) {
  World world;
  const auto client = world.client("owner");
  const Sequenced running = world.sequence(client.session, 0, 1);
  const Sequenced retry = world.sequence(client.session, 0, 1);
  world.finish(running);
  EXPECT_FALSE(world.clients.wait(retry.slot, [] { FAIL(); }));
}

TEST(Nfs4Slots, only_a_few_retries_wait) {
  World world;
  const auto client = world.client("owner");
  const Sequenced running = world.sequence(client.session, 0, 1);
  int told = 0;
  for (int i = 0; i < 8; ++i) {
    const Sequenced retry = world.sequence(client.session, 0, 1);
    ASSERT_EQ(retry.kind, How::Wait);
    EXPECT_TRUE(world.clients.wait(retry.slot, [&] { ++told; }));
  }
  EXPECT_EQ(world.sequence(client.session, 0, 1).status, Status::Delay);
  EXPECT_FALSE(world.clients.wait(running.slot, [&] { ++told; }));
  world.finish(running);
  EXPECT_EQ(told, 8);
}

TEST(Nfs4Slots, a_waiting_retry_is_told_when_the_session_goes) {
  World world;
  const auto client = world.client("owner");
  const Sequenced running = world.sequence(client.session, 0, 1);
  int told = 0;
  ASSERT_TRUE(world.clients.wait(running.slot, [&] { ++told; }));
  world.clients.destroy_session(client.session, kNoConnection);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(world.sequence(client.session, 0, 1).status, Status::BadSession);
  world.finish(running);
  EXPECT_EQ(told, 1);
}

TEST(Nfs4Slots, a_waiting_retry_is_told_when_the_client_goes) {
  World world;
  const auto client = world.client("owner");
  const Sequenced running = world.sequence(client.session, 0, 1);
  int told = 0;
  ASSERT_TRUE(world.clients.wait(running.slot, [&] { ++told; }));
  world.clients.end(client.id, false);
  EXPECT_EQ(told, 1);
  world.finish(running);
  EXPECT_EQ(client.life->running.load(), 0u);
}

// Those who wait post to their loops, which may find no memory for that.
TEST(Nfs4Slots, a_waiting_retry_that_cannot_be_told_keeps_no_other_from_being_told) {
  for (const bool session_goes : {false, true}) {
    World world;
    const auto client = world.client("owner");
    const Sequenced running = world.sequence(client.session, 0, 1);
    int told = 0;
    ASSERT_TRUE(world.clients.wait(running.slot, [] { throw std::bad_alloc(); }));
    ASSERT_TRUE(world.clients.wait(running.slot, [&] { ++told; }));
    if (session_goes) world.clients.destroy_session(client.session, kNoConnection);
    EXPECT_NO_THROW(world.finish(running));
    EXPECT_EQ(told, 1) << session_goes;
  }
}

TEST(Nfs4Slots, a_reply_lives_as_long_as_it_is_replayed) {
  World world;
  const auto client = world.client("owner");
  EXPECT_TRUE(world.run(client, 0, 1));
  const Sequenced replay = world.sequence(client.session, 0, 1);
  const std::weak_ptr<const Reply> reply = replay.reply;
  EXPECT_TRUE(world.run(client, 0, 2));
  world.clients.destroy_session(client.session, kNoConnection);
  EXPECT_EQ(number_of(replay.reply), 1);
}

TEST(Nfs4Slots, the_next_request_frees_the_reply) {
  World world;
  const auto client = world.client("owner");
  EXPECT_TRUE(world.run(client, 0, 1));
  const std::weak_ptr<const Reply> reply = world.sequence(client.session, 0, 1).reply;
  EXPECT_FALSE(reply.expired());
  const Sequenced running = world.sequence(client.session, 0, 2);
  EXPECT_TRUE(reply.expired());
  world.finish(running);
}

TEST(Nfs4Slots, a_refused_SEQUENCE_leaves_the_slot_as_it_was) {
  World world;
  const auto client = world.client("owner");
  SequenceArgs args;
  args.sessionid = client.session;
  args.sequenceid = 1;
  args.operations = 17;
  EXPECT_EQ(world.clients.sequence(args, world.now).status, Status::TooManyOps);
  args.operations = 16;
  args.request_size = (1 << 20) + 1;
  EXPECT_EQ(world.clients.sequence(args, world.now).status, Status::ReqTooBig);
  args.request_size = 1 << 20;
  EXPECT_EQ(world.clients.sequence(args, world.now).kind, How::Run);
}

}  // namespace
}  // namespace stag::nfs::state
