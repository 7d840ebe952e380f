// Limits that change while clients hold something: a raised one counts at once, and who holds more
// than a lowered one keeps it and gets nothing more.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/nfs/state_threads.h"
#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::World;

class Nfs4ChangedClientLimits : public ::testing::Test {
 protected:
  static ClientLimits few() {
    ClientLimits limits;
    limits.clients = 4;
    limits.clients_of_address = 16;
    limits.shared_out = false;
    limits.sessions = 2;
    limits.unconfirmed = 2;
    return limits;
  }
  void change() { world.clients.change_limits(limits); }
  // Of a new client there.
  CreateSessionResult another(const std::string& address = "192.0.2.1") {
    const std::string name = "client " + std::to_string(++made_);
    const ClientId id = world.exchange_id(name, 1, "root", false, address).clientid;
    const CreateSessionResult made = world.create_session(id, 1);
    if (made.status == Status::Ok) clients.push_back({id, made.sessionid, made.life});
    return made;
  }
  // How many more there can be, and which limit comes then.
  std::pair<std::size_t, Limit> fill(const std::string& address = "192.0.2.1") {
    const std::size_t before = clients.size();
    CreateSessionResult last;
    while ((last = another(address)).status == Status::Ok) continue;
    EXPECT_EQ(last.status, Status::Delay);
    return {clients.size() - before, last.limit};
  }
  void end_last() {
    world.clients.end(clients.back().id, false);
    clients.pop_back();
  }

  ClientLimits limits = few();
  World world{1, limits};
  std::vector<testing::Client> clients;

 private:
  int made_ = 0;
};

TEST_F(Nfs4ChangedClientLimits, let_more_clients_in_once_they_are_raised) {
  EXPECT_EQ(fill("192.0.2.1"), std::pair(std::size_t{4}, Limit::All));
  limits.clients = 6;
  change();
  EXPECT_EQ(fill("192.0.2.2"), std::pair(std::size_t{2}, Limit::All));
}

TEST_F(Nfs4ChangedClientLimits, leave_those_who_are_there_when_they_are_lowered) {
  fill();
  limits.clients = 2;
  change();
  for (const testing::Client& each : clients) EXPECT_TRUE(world.run(each, 0, 1));
  EXPECT_EQ(another().limit, Limit::All);
  const ClientId again = world.exchange_id("client 1", 2).clientid;
  EXPECT_EQ(world.create_session(again, 1).status, Status::Ok) << "it has its place";
  for (int i = 0; i < 2; ++i) end_last();
  EXPECT_EQ(another().status, Status::Delay) << "two are left";
  end_last();
  EXPECT_EQ(fill().first, 1u);
}

TEST_F(Nfs4ChangedClientLimits, count_at_each_address_from_then_on) {
  limits.clients = 16;
  limits.clients_of_address = 4;
  change();
  EXPECT_EQ(fill(), std::pair(std::size_t{4}, Limit::Address));
  limits.clients_of_address = 6;
  change();
  EXPECT_EQ(fill(), std::pair(std::size_t{2}, Limit::Address));
  limits.clients_of_address = 5;
  change();
  end_last();
  EXPECT_EQ(fill(), std::pair(std::size_t{0}, Limit::Address));
  end_last();
  EXPECT_EQ(fill(), std::pair(std::size_t{1}, Limit::Address));
}

TEST_F(Nfs4ChangedClientLimits, share_out_by_address_as_they_say) {
  limits.clients = limits.clients_of_address = 16;
  limits.shared_out = true;
  change();
  EXPECT_EQ(fill(), std::pair(std::size_t{8}, Limit::All));
  limits.shared_out = false;
  change();
  EXPECT_EQ(fill().first, 8u);
}

TEST_F(Nfs4ChangedClientLimits, have_the_oldest_unconfirmed_client_go) {
  auto name_one = [&, made = 0]() mutable {
    return world.exchange_id("unconfirmed " + std::to_string(++made));
  };
  const auto there = [&] { return world.clients.list(world.now).size(); };
  for (int i = 0; i < 3; ++i) name_one();
  EXPECT_EQ(there(), 2u);
  limits.unconfirmed = 4;
  change();
  for (int i = 0; i < 3; ++i) name_one();
  EXPECT_EQ(there(), 4u);
  limits.unconfirmed = 1;
  change();
  EXPECT_EQ(there(), 4u) << "they stay for a lease";
  const ExchangeIdResult last = name_one();
  EXPECT_EQ(last.evicted, "192.0.2.1");
  EXPECT_EQ(there(), 4u) << "it has the place of another";
  EXPECT_EQ(world.create_session(last.clientid, 1).status, Status::Ok);
  world.now += world.lease + std::chrono::seconds(1);
  world.clients.expire(world.now);
  for (int i = 0; i < 3; ++i) name_one();
  EXPECT_EQ(there(), 1u);
}

TEST_F(Nfs4ChangedClientLimits, grant_more_sessions_and_take_none) {
  const testing::Client client = world.client("owner");
  const auto path = std::make_shared<CallbackPath>();
  std::vector<SessionId> sessions{client.session};
  const auto add = [&](SequenceId sequence) {
    CreateSessionArgs args = World::session_args(client.id, sequence);
    args.callback_path = path;
    const CreateSessionResult made = world.clients.create_session(args, world.now);
    if (made.status == Status::Ok && !made.replay) sessions.push_back(made.sessionid);
    return made.status;
  };
  EXPECT_EQ(add(2), Status::Ok);
  EXPECT_EQ(add(3), Status::Nospc);
  limits.sessions = 4;
  change();
  EXPECT_EQ(add(3), Status::Nospc) << "a retry gets what was answered";
  EXPECT_EQ(add(4), Status::Ok);
  EXPECT_EQ(add(5), Status::Ok);
  limits.sessions = 1;
  change();
  for (const SessionId& each : sessions)
    EXPECT_EQ(world.sequence(each, 0, 1).kind, Sequenced::Kind::Run);
  EXPECT_EQ(world.clients.callback_paths(client.id).size(), 3u);
  EXPECT_EQ(add(6), Status::Nospc);
  for (const SessionId& each : sessions) world.clients.destroy_session(each, kNoConnection);
  EXPECT_EQ(add(7), Status::Ok);
  EXPECT_EQ(add(8), Status::Nospc);
}

TEST_F(Nfs4ChangedClientLimits, leave_what_sessions_are_granted_by) {
  limits.caches = 0;
  limits.fore = {0, 1, 1, 1, 1, 1};
  limits.connections = limits.retries_waiting = 0;
  limits.min_request_size = limits.min_response_size = limits.min_callback_size = 1 << 30;
  change();
  const CreateSessionResult made = another();
  ASSERT_EQ(made.status, Status::Ok);
  EXPECT_EQ(made.fore, World::wanted());
  const SessionId& session = made.sessionid;
  EXPECT_EQ(world.clients.bind_connection(session, 7, channel::kFore, channel::kFore, {}).status,
            Status::Ok);
  const Sequenced running = world.sequence(session, 0, 1);
  ASSERT_EQ(running.kind, Sequenced::Kind::Run);
  EXPECT_EQ(world.sequence(session, 0, 1).kind, Sequenced::Kind::Wait);
  EXPECT_TRUE(world.clients.wait(running.slot, [] {}));
  world.finish(running);
}

class Nfs4ChangedStateLimits : public ::testing::Test {
 protected:
  static StateLimits few() {
    StateLimits limits;
    limits.states_of_client = 4;
    limits.states_of_address = 6;
    limits.states = 8;
    limits.shared_out = false;
    limits.delegations = 8;
    return limits;
  }
  void change() { world.files.change_limits(limits); }
  // How many more files the client can open, and which limit comes then.
  std::pair<int, Limit> fill(const testing::Client& client) {
    for (int count = 0;; ++count) {
      const OpenResult opened = world.open(client, ++file_);
      if (!opened.verdict.granted()) return {count, opened.limit};
      opened_.push_back({file_, opened.stateid, client.life});
    }
  }
  std::pair<int, Limit> fill_delegations(const testing::Client& client) {
    for (int count = 0;; ++count) {
      const StateidResult made =
          world.files.delegate({World::file(++file_), DelegationType::Read, {}}, client.life);
      if (made.status != Status::Ok) return {count, made.limit};
      delegated_.push_back({file_, made.stateid, client.life});
    }
  }
  struct Held {
    std::uint64_t file;
    Stateid stateid;
    LifePtr life;
  };
  void close_last() {
    const Held& last = opened_.back();
    EXPECT_EQ(world.files.close(World::file(last.file), last.stateid, *last.life).status,
              Status::Ok);
    opened_.pop_back();
  }
  void return_last() {
    const Held& last = delegated_.back();
    EXPECT_EQ(world.files.return_delegation(World::file(last.file), last.stateid, *last.life),
              Status::Ok);
    delegated_.pop_back();
  }

  StateLimits limits = few();
  World world{1, {}, limits};
  testing::Client a = world.client("a", "192.0.2.1"), b = world.client("b", "192.0.2.1"),
                  c = world.client("c", "192.0.2.2");
  std::vector<Held> opened_, delegated_;

 private:
  std::uint64_t file_ = 0;
};

TEST_F(Nfs4ChangedStateLimits, count_for_each_client_from_then_on) {
  EXPECT_EQ(fill(a), std::pair(4, Limit::Client));
  limits.states_of_client = 5;
  change();
  EXPECT_EQ(fill(a), std::pair(1, Limit::Client));
  limits.states_of_client = 3;
  change();
  EXPECT_EQ(fill(a), std::pair(0, Limit::Client));
  EXPECT_EQ(a.life->states.load(), 5u) << "what it holds stays";
  for (int i = 0; i < 2; ++i) close_last();
  EXPECT_EQ(fill(a), std::pair(0, Limit::Client));
  close_last();
  EXPECT_EQ(fill(a), std::pair(1, Limit::Client));
}

TEST_F(Nfs4ChangedStateLimits, count_at_each_address_from_then_on) {
  limits.states = 100;
  change();
  fill(a);
  EXPECT_EQ(fill(b), std::pair(2, Limit::Address));
  limits.states_of_address = 7;
  change();
  EXPECT_EQ(fill(b), std::pair(1, Limit::Address));
  limits.states_of_address = 5;
  change();
  EXPECT_EQ(fill(b), std::pair(0, Limit::Address));
  for (int i = 0; i < 3; ++i) close_last();
  EXPECT_EQ(fill(b), std::pair(1, Limit::Address));
}

TEST_F(Nfs4ChangedStateLimits, count_for_all_from_then_on) {
  fill(a);
  fill(b);
  EXPECT_EQ(fill(c), std::pair(2, Limit::All));
  limits.states = 9;
  change();
  EXPECT_EQ(fill(c), std::pair(1, Limit::All));
  limits.states = 2;
  change();
  EXPECT_EQ(fill(c), std::pair(0, Limit::All));
  EXPECT_EQ(world.files.states(), 9u);
  EXPECT_TRUE(world.open(c, opened_.back().file).verdict.granted()) << "an upgrade is nothing more";
  for (const testing::Client& each : {a, b})
    world.files.release(*world.clients.end(each.id, false));
  EXPECT_EQ(fill(c), std::pair(0, Limit::All)) << "it has more by itself";
}

TEST_F(Nfs4ChangedStateLimits, share_out_by_address_as_they_say) {
  limits.states = limits.states_of_address = limits.states_of_client = 16;
  limits.shared_out = true;
  change();
  EXPECT_EQ(fill(a), std::pair(8, Limit::All));
  limits.shared_out = false;
  change();
  EXPECT_EQ(fill(a).first, 8);
}

TEST_F(Nfs4ChangedStateLimits, count_for_delegations_from_then_on) {
  limits.states = limits.states_of_address = limits.states_of_client = 1000;
  change();
  EXPECT_EQ(fill_delegations(a), std::pair(4, Limit::Address));
  limits.delegations = 12;
  change();
  EXPECT_EQ(fill_delegations(a), std::pair(2, Limit::Address)) << "half of it, as before";
  limits.delegations = 4;
  change();
  EXPECT_EQ(fill_delegations(a), std::pair(0, Limit::Address));
  ASSERT_EQ(a.life->delegations.load(), 6u);
  for (int i = 0; i < 5; ++i) return_last();
  EXPECT_EQ(fill_delegations(a), std::pair(1, Limit::Address));
}

TEST_F(Nfs4ChangedStateLimits, say_which_reclaimed_delegation_is_given_back_at_once) {
  limits.delegations = 1;
  change();
  world.grace->begin(world.now + std::chrono::hours(1), true);
  const testing::Client client = world.fresh_client("holder");
  client.life->may_reclaim = true;
  DelegateArgs args{World::file(1), DelegationType::Read, {}};
  args.reclaim = true;
  EXPECT_EQ(world.files.delegate(args, client.life).limit, Limit::None);
  args.file = World::file(2);
  EXPECT_EQ(world.files.delegate(args, client.life).limit, Limit::All);
}

TEST_F(Nfs4ChangedStateLimits, leave_how_many_operations_wait) {
  limits.waiting = limits.ranges_of_mirrored = 0;
  change();
  EXPECT_EQ(fill_delegations(a), std::pair(4, Limit::Address));
  EXPECT_EQ(world.open(c, 1).verdict.kind, Verdict::Kind::Recall);
  EXPECT_EQ(world.files.wait(World::file(1), [] {}).how, Wait::Begun);
}

TEST(Nfs4ChangedLimits, count_right_while_threads_ask) {
  World world;
  testing::on_threads([&](int thread) {
    const std::string name = std::to_string(thread), address = "192.0.2." + name;
    for (std::uint32_t i = 0; i < 300; ++i) {
      if (thread == 0) {
        ClientLimits clients;
        clients.clients = clients.clients_of_address = clients.unconfirmed = 1 + i % 4;
        clients.sessions = 1 + i % 2;
        clients.shared_out = i % 3 == 0;
        world.clients.change_limits(clients);
        StateLimits states;
        states.states = states.states_of_address = states.states_of_client = i % 8;
        states.delegations = i % 4;
        states.shared_out = i % 3 == 0;
        world.files.change_limits(states);
        continue;
      }
      const ClientId id = world.exchange_id(name, 1, "root", false, address).clientid;
      const CreateSessionResult made = world.create_session(id, 1);
      if (made.status != Status::Ok) continue;
      const testing::Client client{id, made.sessionid, made.life};
      world.clients.reclaim_complete(*made.life);
      world.create_session(id, 2);
      world.clients.callback_paths(id);
      for (std::uint64_t file = 0; file < 4; ++file) world.open(client, file);
      world.files.delegate({World::file(i % 8), DelegationType::Read, {}}, client.life);
      if (const LifePtr ended = world.clients.end(id, false)) world.files.release(*ended);
    }
  });
  EXPECT_EQ(world.files.states(), 0u);
  EXPECT_FALSE(world.clients.any_confirmed());
  world.clients.change_limits({});
  world.files.change_limits({});
  EXPECT_TRUE(world.open(world.client("late"), 1).verdict.granted());
}

}  // namespace
}  // namespace stag::nfs::state
