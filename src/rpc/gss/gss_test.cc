// RPCSEC_GSS from both ends (RFC 2203), by the fake mechanism and without a transport: contexts are
// set up, used with each service, replaced and ended.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "base/completion.h"
#include "base/task_group.h"
#include "testing/gss_world.h"
#include "testing/held_executor.h"

namespace stag::rpc {
namespace {

using gss::Major;
using testing::credential_of;
using testing::GssWorld;
using testing::WhoCalls;
using testing::store::ADD_ONCE;
using testing::store::GET;
using testing::store::INCREMENT;
using testing::store::kBinding;
using testing::store::PUT;
using testing::store::REVERSE;
using Ids = Eventual<Result<UserIds, NoUserIds>>;

constexpr gss::Service kServices[] = {gss::Service::none, gss::Service::integrity,
                                      gss::Service::privacy};

TEST(RpcsecGss, sets_a_context_up_once_and_proves_the_caller_with_each_service) {
  std::uint32_t flavor = 390003;
  for (const gss::Service service : kServices) {
    GssWorld world(service);
    for (int i = 0; i < 3; ++i) {
      const auto result = world.call<WhoCalls>("");
      ASSERT_TRUE(result.ok()) << result.error().message();
      EXPECT_EQ(*result, "alice@EXAMPLE.ORG " + std::to_string(flavor) + " 65534 0");
    }
    EXPECT_EQ(world.realm->accepted, 1u);
    ++flavor;
  }
}

TEST(RpcsecGss, exchanges_tokens_until_both_ends_have_what_they_need) {
  for (const int rounds : {1, 2, 5}) {
    GssWorld world(gss::Service::integrity);
    world.realm->rounds = rounds;
    const auto result = world.call<INCREMENT>(1);
    ASSERT_TRUE(result.ok()) << result.error().message();
    EXPECT_EQ(*result, 2u);
    EXPECT_EQ(world.authenticator->contexts().established(), 1u);
    EXPECT_EQ(world.authenticator->contexts().half_open(), 0u);
  }
}

// A server whose second answer names the context otherwise than the first.
class Renaming final : public Service {
 public:
  explicit Renaming(Service& inner) : inner_(inner) {}
  Task<std::optional<OutgoingReply>> serve(IncomingCall& call) override {
    auto reply = co_await inner_.serve(call);
    if (++answers == 2) rename(*reply);
    co_return reply;
  }
  int answers = 0;

 private:
  static void rename(OutgoingReply& reply) {
    const Buffer bytes = reply.stream.rope().flatten();
    xdr::Decoder decoder(bytes);
    STAG_CHECK(oncrpc::decode_reply(decoder).ok());
    const std::size_t header = bytes.size() - decoder.remaining();
    auto results = *gss::decode_init_res(bytes.bytes().subspan(header));
    std::vector<std::byte> handle(results.handle.begin(), results.handle.end());
    handle.back() ^= std::byte{1};
    results.handle = handle;
    xdr::Encoder changed;
    changed.fixed_opaque(bytes.bytes().first(header));
    changed.append(gss::encode_init_res(results));
    reply.stream = std::move(changed).finish();
  }

  Service& inner_;
};

// RFC 2203 5.2.2: the handle "will not change for the duration of the context, including responses
// to RPCSEC_GSS_CONTINUE_INIT".
TEST(RpcsecGss, takes_no_context_whose_handle_changes_while_it_is_set_up) {
  GssWorld world;
  world.realm->rounds = 2;
  Renaming service(world.server);
  testing::DirectChannel channel(world.loop, service);
  Client client(channel, kBinding, Credentials::secured(world.security_));
  const auto result = *world.loop.run(client.call<INCREMENT>(1u));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().reason, Reason::RpcResultsMalformed);
  EXPECT_EQ(service.answers, 2);
}

TEST(RpcsecGss, moves_bulk_apart_unless_it_is_transformed) {
  for (const gss::Service service : kServices) {
    GssWorld world(service, {}, /*reduce=*/true);
    const Rope data = testing::store::pattern(70'001, 3);
    const auto stored =
        world.call<PUT>({.slot = 3, .data = data, .checksum = testing::store::checksum(data)});
    ASSERT_TRUE(stored.ok()) << stored.error().message();
    EXPECT_EQ(stored->checksum, testing::store::checksum(data));
    bool marked = false;
    for (const xdr::Item& item : world.channel.last_call.items())
      marked = marked || item.id != xdr::kNoItem;
    EXPECT_EQ(marked, service == gss::Service::none);
    const auto back = world.call<GET>({.slot = 3, .count = 100'000});
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(back->data, data);
    EXPECT_EQ(world.channel.last_bound.items.empty(), service != gss::Service::none);
  }
}

TEST(RpcsecGss, hides_arguments_and_results_with_privacy_only) {
  const std::string text = "a name that nobody shall read";
  for (const gss::Service service : kServices) {
    GssWorld world(service);
    const auto result = world.call<REVERSE>(text);
    ASSERT_TRUE(result.ok());
    const Buffer sent = world.channel.last_call.rope().flatten();
    const Buffer received = world.channel.last_reply.rope().flatten();
    const bool seen = text_of(sent.bytes()).find(text) != std::string_view::npos;
    EXPECT_EQ(seen, service != gss::Service::privacy);
    const bool seen_back = text_of(received.bytes()).find(*result) != std::string_view::npos;
    EXPECT_EQ(seen_back, service != gss::Service::privacy);
  }
}

TEST(RpcsecGss, asks_the_name_service_once_a_context) {
  int asked = 0;
  GssServerOptions options;
  options.ids = [&asked](Loop& loop, const std::string& name, const void*) -> Ids {
    co_await resume_on(loop);
    ++asked;
    EXPECT_EQ(name, "alice@EXAMPLE.ORG");
    UserIds ids;
    ids.uid = 1001;
    for (std::uint32_t gid = 0; gid < 40; ++gid) ids.gids.push_back(gid);
    co_return ids;
  };
  GssWorld mapped(gss::Service::none, std::move(options));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(*mapped.call<WhoCalls>(""), "alice@EXAMPLE.ORG 390003 1001 40");
  EXPECT_EQ(asked, 1);
}

TEST(RpcsecGss, gives_no_context_to_a_principal_that_the_name_service_refuses) {
  GssServerOptions options;
  options.ids = [](Loop&, const std::string&, const void*) -> Ids {
    return Result<UserIds, NoUserIds>(Failure{NoUserIds::Refused});
  };
  GssWorld world(gss::Service::none, std::move(options));
  const auto result = world.call<INCREMENT>(1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().reason, Reason::GssServerRefused);
  EXPECT_EQ(world.realm->accepted, 1u) << "it asks no second time";
  EXPECT_EQ(world.authenticator->contexts().half_open(), 0u);
  EXPECT_EQ(world.authenticator->contexts().established(), 0u);
}

// After a restart of the server all its users are asked for at once.
TEST(RpcsecGss, fails_no_call_because_the_name_service_was_late_for_a_while) {
  int asked = 0;
  GssServerOptions options;
  options.ids = [&asked](Loop&, const std::string&, const void*) -> Ids {
    if (++asked < 3) return Result<UserIds, NoUserIds>(Failure{NoUserIds::NotNow});
    return Result<UserIds, NoUserIds>(UserIds{});
  };
  GssWorld world(gss::Service::none, std::move(options));
  const auto result = world.call<INCREMENT>(1);
  EXPECT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(world.authenticator->contexts().established(), 1u);
}

TEST(RpcsecGss, fails_no_call_because_the_workers_had_no_room_for_its_token_once) {
  struct Busy final : Executor {
    bool submit(Job&& job) override { return ++asked > 1 && idle.submit(std::move(job)); }
    testing::HeldExecutor idle{/*runs_at_once=*/true};
    int asked = 0;
  };
  GssServerOptions options;
  options.tokens = std::make_shared<Busy>();
  GssWorld world(gss::Service::none, std::move(options));
  const auto result = world.call<INCREMENT>(1);
  EXPECT_TRUE(result.ok()) << result.error().message();
}

TEST(RpcsecGss, asks_for_principals_as_the_work_of_their_host) {
  std::vector<const void*> clients;
  GssServerOptions options;
  options.ids = [&clients](Loop&, const std::string&, const void* client) -> Ids {
    clients.push_back(client);
    return Result<UserIds, NoUserIds>(UserIds{});
  };
  GssWorld world(gss::Service::none, std::move(options));
  for (const char* host :
       {"192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"})
    testing::RawGssClient(world, host).establish();
  ASSERT_EQ(clients.size(), 6u);
  EXPECT_EQ(clients[0], clients[1]);
  EXPECT_NE(clients[0], clients[2]);
  EXPECT_EQ(clients[3], clients[4]) << "a host has any address of its /64";
  EXPECT_NE(clients[3], clients[5]);
}

TEST(RpcsecGss, replaces_a_context_that_the_server_has_lost_without_failing_a_call) {
  for (const gss::Service service : kServices) {
    GssWorld world(service);
    ASSERT_TRUE(world.call<ADD_ONCE>(5).ok());
    GssWorld restarted(service);
    // The client's context is unknown to the other server.
    Client moved(restarted.channel, kBinding, Credentials::secured(world.security_));
    const auto result = restarted.loop.run(moved.call<ADD_ONCE>(7u));
    ASSERT_TRUE((*result).ok()) << result->error().message();
    EXPECT_EQ(**result, 7u);
    EXPECT_EQ(restarted.realm->accepted, 1u);
  }
}

// A server that is another process, with a memory of its own, whenever a data request comes.
class Restarting final : public Service {
 public:
  Restarting(GssWorld& world, int times) : world_(world), left_(times) {}
  Task<std::optional<OutgoingReply>> serve(IncomingCall& call) override {
    if (load_be<std::uint32_t>(call.payload.data() + 20) != 0 && left_ > 0) {
      --left_;
      world_.server.add(std::make_unique<GssAuthenticator>(
          GssServerOptions{.acceptor = std::make_shared<testing::FakeAcceptor>(world_.realm)}));
    }
    return world_.server.serve(call);
  }

 private:
  GssWorld& world_;
  int left_;
};

TEST(RpcsecGss, outlives_several_restarts_within_one_call) {
  GssWorld world(gss::Service::integrity);
  Restarting service(world, 8);
  testing::DirectChannel channel(world.loop, service);
  Client client(channel, kBinding, Credentials::secured(world.security_));
  TaskGroup calls;
  int done = 0;
  const auto add = [](Client& of, int& count) -> Task<> {
    const auto result = co_await of.call<ADD_ONCE>(1u);
    EXPECT_TRUE(result.ok()) << result.error().message();
    ++count;
  };
  for (int i = 0; i < 20; ++i) calls.add(add(client, done));
  world.loop.drain();
  EXPECT_EQ(done, 20);
  EXPECT_EQ(world.state.total, 20u);
}

TEST(RpcsecGss, gives_up_on_a_server_that_remembers_no_context) {
  GssWorld world;
  Restarting service(world, 100);
  testing::DirectChannel channel(world.loop, service);
  Client client(channel, kBinding, Credentials::secured(world.security_));
  const auto result = *world.loop.run(client.call<ADD_ONCE>(1u));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().status,
            oncrpc::ReplyStatus::auth_error(oncrpc::AuthStat::RPCSEC_GSS_CREDPROBLEM));
  EXPECT_LE(world.realm->accepted, 10u);
}

TEST(RpcsecGss, replaces_a_context_that_has_expired_without_failing_a_call) {
  GssWorld world(gss::Service::integrity);
  world.realm->lifetime = 100;
  ASSERT_TRUE(world.call<INCREMENT>(1).ok());
  world.loop.pass(std::chrono::seconds(99));
  ASSERT_TRUE(world.call<INCREMENT>(1).ok());
  EXPECT_EQ(world.realm->accepted, 1u);
  world.loop.pass(std::chrono::seconds(2));
  ASSERT_TRUE(world.call<INCREMENT>(1).ok());
  EXPECT_EQ(world.realm->accepted, 2u);
}

TEST(RpcsecGss, tells_the_server_when_the_context_is_no_longer_used) {
  GssWorld world(gss::Service::privacy);
  ASSERT_TRUE(world.call<INCREMENT>(1).ok());
  EXPECT_EQ(world.authenticator->contexts().established(), 1u);
  world.end();
  EXPECT_EQ(world.authenticator->contexts().established(), 0u);
  EXPECT_EQ(world.realm->alive, 0u);
  world.end();
  ASSERT_TRUE(world.call<INCREMENT>(1).ok()) << "a later Call makes another";
  EXPECT_EQ(world.realm->accepted, 2u);
}

TEST(RpcsecGss, says_why_there_is_no_credential) {
  GssWorld world;
  world.realm->no_ticket = {Reason::GssTicketExpired, "Ticket expired"};
  const auto result = world.call<INCREMENT>(1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().reason, Reason::GssTicketExpired);
  EXPECT_NE(result.error().message().find("kinit"), std::string::npos);
  world.realm->no_ticket = {};
  EXPECT_TRUE(world.call<INCREMENT>(1).ok());
}

TEST(RpcsecGss, says_why_the_server_refused_a_token) {
  GssWorld world;
  world.realm->refuses_tokens = true;
  const auto result = world.call<INCREMENT>(1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().reason, Reason::GssServerKeyWrong);
  EXPECT_EQ(world.authenticator->contexts().half_open(), 0u);
}

TEST(RpcsecGss, has_many_calls_wait_for_one_set_up) {
  GssWorld world(gss::Service::integrity);
  TaskGroup calls;
  int done = 0;
  const auto add = [](GssWorld& of, int& count) -> Task<> {
    const auto result = co_await of.client.call<ADD_ONCE>(1u);
    EXPECT_TRUE(result.ok());
    ++count;
  };
  for (int i = 0; i < 50; ++i) calls.add(add(world, done));
  world.loop.drain();
  EXPECT_EQ(done, 50);
  EXPECT_EQ(world.state.total, 50u);
  EXPECT_EQ(world.realm->accepted, 1u);
}

TEST(RpcsecGss, tells_all_calls_that_wait_why_there_is_no_context) {
  GssWorld world;
  world.realm->no_ticket = {Reason::GssNoTicket, ""};
  TaskGroup calls;
  int failed = 0;
  const auto add = [](GssWorld& of, int& count) -> Task<> {
    const auto result = co_await of.client.call<INCREMENT>(1u);
    EXPECT_EQ(result.error().reason, Reason::GssNoTicket);
    ++count;
  };
  for (int i = 0; i < 5; ++i) calls.add(add(world, failed));
  world.loop.drain();
  EXPECT_EQ(failed, 5);
}

// Holds Calls until it is told to let them go.
struct Gate {
  Task<> wait() {
    Completion<Ok> over;
    waiting.push_back(&over);
    most = std::max(most, waiting.size());
    co_await over;
  }
  void open() {
    while (!waiting.empty()) {
      Completion<Ok>* const first = waiting.front();
      waiting.pop_front();
      first->complete(Ok{});
    }
  }
  std::deque<Completion<Ok>*> waiting;
  std::size_t most = 0;
};

struct SLOW : INCREMENT {
  static constexpr std::uint32_t program = 0x2000007a;
};

// RFC 2203 5.2.3.1: the window "specifies the maximum number of client requests that may be
// outstanding for this context".
TEST(RpcsecGss, has_no_more_calls_in_progress_than_the_servers_window) {
  GssWorld world;
  Gate gate;
  world.server.add<SLOW>([&gate](CallContext&, std::uint32_t value) -> Task<std::uint32_t> {
    co_await gate.wait();
    co_return value;
  });
  TaskGroup calls;
  int done = 0;
  const auto call = [](GssWorld& of, int& count) -> Task<> {
    const auto result = co_await of.client.call<SLOW>(1u);
    EXPECT_TRUE(result.ok());
    ++count;
  };
  for (int i = 0; i < 600; ++i) calls.add(call(world, done));
  world.loop.drain();
  EXPECT_EQ(gate.most, 256u);
  while (done < 600) {
    gate.open();
    world.loop.drain();
  }
  EXPECT_EQ(gate.most, 256u);
}

// A call in progress, and what the others of its user see of it.
struct Outrun {
  Outrun() {
    world.server.add<SLOW>([this](CallContext&, std::uint32_t value) -> Task<std::uint32_t> {
      co_await gate.wait();
      co_return value;
    });
    calls.add(call_slowly(*this));
    world.loop.drain();
    first = world.channel.last_call.rope().flatten();
  }
  static Task<> call_slowly(Outrun& of) {
    of.good = (co_await of.world.client.call<SLOW>(1u)).ok();
  }
  // Whether the last message has the context of the first.
  bool same_context() const {
    const Buffer last = world.channel.last_call.rope().flatten();
    return std::ranges::equal(credential_of(first).handle, credential_of(last).handle);
  }

  GssWorld world;
  Gate gate;
  TaskGroup calls;
  Buffer first;
  bool good = false;
};

// RFC 2203 5.3.3.1: a server may judge a number after it has seen later ones.
TEST(RpcsecGss, takes_another_context_before_the_window_passes_a_call_in_progress) {
  Outrun outrun;
  for (int i = 1; i <= 1000; ++i) {
    ASSERT_TRUE(outrun.world.call<INCREMENT>(1).ok());
    ASSERT_EQ(outrun.same_context(), i < 256) << i;
  }
  EXPECT_EQ(outrun.world.realm->accepted, 2u);
  outrun.gate.open();
  outrun.world.loop.drain();
  EXPECT_TRUE(outrun.good);
  outrun.world.end();
  EXPECT_EQ(outrun.world.authenticator->contexts().established(), 0u);
}

TEST(RpcsecGss, tells_the_server_which_contexts_no_call_uses_any_more) {
  Outrun outrun;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(outrun.world.call<INCREMENT>(1).ok());
    EXPECT_LE(outrun.world.authenticator->contexts().established(), 2u);
    outrun.gate.open();
    outrun.world.loop.drain();
    EXPECT_TRUE(outrun.good);
    outrun.calls.add(Outrun::call_slowly(outrun));
    outrun.world.loop.drain();
  }
  EXPECT_EQ(outrun.world.realm->accepted, 6u);
  outrun.gate.open();
  outrun.world.loop.drain();
}

TEST(RpcsecGss, goes_on_with_a_context_that_is_outrun_where_there_is_no_other) {
  Outrun outrun;
  outrun.world.realm->no_ticket = {Reason::GssTicketExpired, "Ticket expired"};
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(outrun.world.call<INCREMENT>(1).ok());
  EXPECT_EQ(outrun.world.realm->accepted, 1u);
  outrun.gate.open();
  outrun.world.loop.drain();
}

TEST(RpcsecGss, lets_a_call_go_that_is_cancelled_or_too_late_while_it_waits_for_a_context) {
  Gate gate;
  GssServerOptions options;
  options.ids = [&gate](Loop&, const std::string&, const void*) -> Ids {
    co_await gate.wait();
    co_return UserIds{};
  };
  GssWorld world(gss::Service::integrity, std::move(options));
  TaskGroup calls;
  std::vector<Reason> ends(3, Reason::RpcUnanswered);
  const auto call = [](GssWorld& of, CallOptions with, Reason& end) -> Task<> {
    const auto result = co_await of.client.call<INCREMENT>(1u, with);
    end = result.ok() ? Reason::None : result.error().reason;
  };
  CancelSource cancel;
  calls.add(call(world, {}, ends[0]));
  CallOptions cancellable, short_of_time;
  cancellable.cancel = cancel;
  short_of_time.timeout = std::chrono::seconds(5);
  calls.add(call(world, cancellable, ends[1]));
  calls.add(call(world, short_of_time, ends[2]));
  world.loop.drain();
  cancel.cancel();
  world.loop.pass(std::chrono::seconds(6));
  EXPECT_EQ(ends, (std::vector{Reason::RpcUnanswered, Reason::Cancelled, Reason::TimedOut}));
  gate.open();
  world.loop.drain();
  EXPECT_EQ(ends[0], Reason::None);
}

Task<> call_into(Client client, Rope data,
                 std::optional<CallResult<testing::store::PutResults>>& to) {
  const testing::store::PutArgs put{
      .slot = 1, .data = data, .checksum = testing::store::checksum(data)};
  to = co_await client.call<PUT>(put);
}

// Both of one context and of several contexts of a connection.
TEST(RpcsecGss, has_workers_accept_one_token_of_a_connection_and_open_one_message_of_a_context) {
  testing::HeldExecutor executor;
  GssServerOptions options;
  options.executor = &executor;
  GssWorld world(gss::Service::privacy, std::move(options));
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i)
    clients.emplace_back(world.channel, kBinding,
                         Credentials::secured(world.security(gss::Service::privacy)));
  std::array<std::optional<CallResult<testing::store::PutResults>>, 9> ends;
  TaskGroup calls;
  for (std::size_t i = 0; i < ends.size(); ++i)
    calls.add(call_into(clients[i % 3], testing::store::pattern(50'000, 1), ends[i]));
  world.loop.drain();
  std::size_t tokens = 0, messages = 0;
  while (!executor.held.empty()) {
    const auto is_token = [](const Executor::Job& job) { return job.bytes < 1000; };
    const auto now = static_cast<std::size_t>(std::ranges::count_if(executor.held, is_token));
    EXPECT_LE(now, 1u);
    EXPECT_LE(executor.held.size() - now, 3u);
    tokens += now;
    messages += executor.held.size() - now;
    executor.run_all();
    world.loop.drain();
  }
  EXPECT_EQ(tokens, 3u);
  EXPECT_EQ(messages, 9u);
  for (const auto& end : ends) EXPECT_TRUE(end && end->ok());
}

TEST(RpcsecGss, computes_on_the_loop_what_the_workers_have_no_room_for) {
  testing::HeldExecutor executor(/*runs_at_once=*/true);
  GssServerOptions options;
  options.executor = &executor;
  GssWorld world(gss::Service::integrity, std::move(options));
  ASSERT_TRUE(world.call<INCREMENT>(1).ok());
  executor.full = true;
  const Rope data = testing::store::pattern(70'001, 3);
  const auto stored =
      world.call<PUT>({.slot = 3, .data = data, .checksum = testing::store::checksum(data)});
  EXPECT_TRUE(stored.ok()) << stored.error().message();
  EXPECT_TRUE(world.call<GET>({.slot = 3, .count = 100'000}).ok());
  // A token is refused: its client may try again.
  Client late(world.channel, kBinding, Credentials::secured(world.security(gss::Service::none)));
  const auto refused = *world.loop.run(late.call<INCREMENT>(1u));
  EXPECT_EQ(refused.error().reason, Reason::GssServerRefused);
  executor.full = false;
  EXPECT_TRUE((*world.loop.run(late.call<INCREMENT>(1u))).ok());
}

// A host that has many contexts is no more than one among the hosts that take turns.
TEST(RpcsecGss, protects_messages_as_the_work_of_their_host_whatever_context_they_have) {
  testing::HeldExecutor executor(/*runs_at_once=*/true);
  GssServerOptions options;
  options.executor = &executor;
  GssWorld world(gss::Service::integrity, std::move(options));
  const Rope data = testing::store::pattern(70'001, 3);
  const PUT::Args args{.slot = 3, .data = data, .checksum = testing::store::checksum(data)};
  std::vector<std::optional<CallResult<PUT::Results>>> ends(4);
  TaskGroup calls;
  const auto call = [](Client client, PUT::Args put,
                       std::optional<CallResult<PUT::Results>>& to) -> Task<> {
    to = co_await client.call<PUT>(put);
  };
  std::vector<Client> users;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (i == 2) world.channel.come_from("192.0.2.8");
    users.emplace_back(world.channel, kBinding,
                       Credentials::secured(world.security(gss::Service::integrity)));
    ASSERT_TRUE((*world.loop.run(users[i].call<INCREMENT>(1u))).ok());
  }
  executor.at_once = false;
  for (std::size_t i = 0; i < ends.size(); ++i) calls.add(call(users[i], args, ends[i]));
  world.loop.drain();
  ASSERT_EQ(executor.held.size(), 4u);
  EXPECT_EQ(executor.held[0].client, executor.held[1].client);
  EXPECT_NE(executor.held[0].client, executor.held[2].client);
  EXPECT_EQ(executor.held[2].client, executor.held[3].client);
  EXPECT_GT(executor.held[0].bytes, 70'000u);
  executor.at_once = true;
  executor.run_all();
  world.loop.drain();
  for (const auto& end : ends) EXPECT_TRUE(end && end->ok());
}

TEST(RpcsecGss, makes_an_error_of_the_server_of_a_mechanism_that_fails) {
  GssWorld world(gss::Service::integrity);
  ASSERT_TRUE(world.call<INCREMENT>(1).ok());
  world.realm->mics = Major::CONTEXT_EXPIRED;
  // RFC 2203 5.3.3.4.1: CTXPROBLEM; and the next context cannot be made either.
  const auto result = world.call<INCREMENT>(1);
  ASSERT_FALSE(result.ok());
  world.realm->mics = Major::COMPLETE;
  EXPECT_TRUE(world.call<INCREMENT>(1).ok());
}

}  // namespace
}  // namespace stag::rpc
