// Call security above any transport: who is asked what, in which order, and what becomes of Calls
// and Replies that do not prove themselves. The mechanism is testing/toy_security.h.
#include <gtest/gtest.h>

#include "base/task_group.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "testing/direct_channel.h"
#include "testing/manual_loop.h"
#include "testing/store_service.h"
#include "testing/toy_security.h"

namespace stag::rpc {
namespace {

using namespace testing::store;
using oncrpc::AcceptStat;
using oncrpc::AuthStat;
using oncrpc::ReplyStatus;
using testing::DirectChannel;
using testing::ManualLoop;
using testing::ToyAuthenticator;
using testing::ToySecurity;

struct WhoCalls : REVERSE {
  static constexpr std::uint32_t program = 0x20000079;
};
struct RoomForResults : INCREMENT {
  static constexpr std::uint32_t program = 0x20000079, number = 6;
};

struct Unserved : INCREMENT {
  static constexpr std::uint32_t number = 99;
};

struct SecuredWorld {
  explicit SecuredWorld(bool seals = false, bool reduce = false)
      : channel(loop, server, reduce), security(std::make_shared<ToySecurity>("alice", seals)) {
    server.add(make_program(state));
    server.add<WhoCalls>([](CallContext& call, std::string) -> Task<std::string> {
      co_return call.caller().name == nullptr ? "nobody" : *call.caller().name;
    });
    server.add<RoomForResults>([](CallContext& call, std::uint32_t) -> Task<std::uint32_t> {
      co_return static_cast<std::uint32_t>(call.results_max());
    });
    auto made = std::make_unique<ToyAuthenticator>(seals);
    authenticator = made.get();
    server.add(std::move(made));
  }
  template <xdr::Procedure P>
  CallResult<typename P::Results> call(typename P::Args args) {
    return *loop.run(client.call<P>(args));
  }

  ManualLoop loop;
  State state;
  Server server;
  DirectChannel channel;
  ToyAuthenticator* authenticator = nullptr;
  std::shared_ptr<ToySecurity> security;
  Client client{channel, kBinding, Credentials::secured(security)};
};

TEST(CallSecurity, sets_a_context_up_once_and_proves_the_caller) {
  for (const bool seals : {false, true}) {
    SecuredWorld world(seals);
    for (int i = 0; i < 3; ++i) {
      const auto result = world.call<WhoCalls>("");
      ASSERT_TRUE(result.ok()) << result.error().message();
      EXPECT_EQ(*result, "alice");
    }
    EXPECT_EQ(world.authenticator->set_ups, 1u);
    EXPECT_EQ(world.authenticator->accepted, 3u);
  }
}

TEST(CallSecurity, moves_bulk_apart_unless_it_is_sealed) {
  for (const bool seals : {false, true}) {
    SecuredWorld world(seals, /*reduce=*/true);
    const Rope data = pattern(70'001, 3);
    const auto stored = world.call<PUT>({.slot = 3, .data = data, .checksum = checksum(data)});
    ASSERT_TRUE(stored.ok()) << stored.error().message();
    EXPECT_EQ(stored->checksum, checksum(data));
    const std::uint64_t inline_size = world.channel.last_call.size();
    EXPECT_EQ(world.channel.last_call.items().empty(), seals) << inline_size;
    const auto back = world.call<GET>({.slot = 3, .count = 100'000});
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(back->data, data);
    // RFC 8166 6.2: what has no Write chunk needs room with the rest.
    EXPECT_EQ(world.channel.last_bound.items.empty(), seals);
    EXPECT_GE(world.channel.last_bound.total_max(), 100'000u + 24 + 12);
  }
}

TEST(CallSecurity, refuses_a_sealed_call_with_data_in_chunks) {
  SecuredWorld world(true);
  IncomingCall call;
  auto origin = std::make_shared<Origin>();
  origin->loop = &world.loop;
  call.origin = origin;
  ASSERT_TRUE(world.call<INCREMENT>(1).ok());
  // The context is number 1, and sequence number 900 is a new one.
  oncrpc::CallHeader header;
  header.program = kProgram;
  header.version = kVersion;
  header.procedure = PUT::number;
  const auto body = testing::toy::body_of({testing::toy::Kind::Data, 1, 900});
  header.credential = testing::toy::auth(body);
  xdr::Encoder start;
  oncrpc::encode(start, header, {});
  oncrpc::encode(start, header.credential);
  const Buffer signed_part = std::move(start).finish().head();
  const auto signature = testing::toy::sign(world.security->key(), signed_part.bytes());
  xdr::Encoder whole;
  whole.fixed_opaque(signed_part.bytes());
  oncrpc::encode(whole, testing::toy::auth(signature));
  whole.u32s(900, 1, 4);
  call.payload = std::move(whole).finish().head();
  call.items.add(64, pattern(4, 1));
  const auto reply = *world.loop.run(world.server.serve(call));
  ASSERT_TRUE(reply.has_value());
  xdr::Decoder decoder(reply->stream.rope().flatten());
  EXPECT_EQ(oncrpc::decode_reply(decoder)->status, ReplyStatus::accepted(AcceptStat::GARBAGE_ARGS));
  EXPECT_EQ(world.state.executed, 0u);
}

TEST(CallSecurity, believes_no_reply_without_the_servers_signature) {
  for (const bool seals : {false, true}) {
    SecuredWorld world(seals);
    world.authenticator->signs_badly = true;
    const auto result = world.call<INCREMENT>(1);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind, CallError::Kind::Malformed);
    EXPECT_EQ(result.error().reason, Reason::RpcReplyUnverified);
  }
}

TEST(CallSecurity, signs_accepted_replies_without_results_too) {
  SecuredWorld world;
  const auto result = world.call<Unserved>(1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, CallError::Kind::Answered) << result.error().message();
  EXPECT_EQ(result.error().status, ReplyStatus::accepted(AcceptStat::PROC_UNAVAIL));
}

TEST(CallSecurity, makes_a_new_context_once_when_the_server_has_lost_the_old_one) {
  SecuredWorld world;
  ASSERT_TRUE(world.call<INCREMENT>(1).ok());
  world.authenticator->forget_contexts();
  const auto result = world.call<INCREMENT>(1);
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(world.security->renewals, 1u);
  EXPECT_EQ(world.authenticator->set_ups, 2u);
}

TEST(CallSecurity, gives_up_when_no_context_is_good_enough) {
  SecuredWorld world;
  ASSERT_TRUE(world.call<INCREMENT>(1).ok());
  world.security->forges = true;
  const auto result = world.call<INCREMENT>(1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().status, ReplyStatus::auth_error(AuthStat::AUTH_REJECTEDVERF));
  EXPECT_EQ(world.authenticator->accepted, 1u);
}

TEST(CallSecurity, ends_the_call_that_cannot_be_signed) {
  SecuredWorld world;
  world.security->cannot_sign = true;
  const auto result = world.call<INCREMENT>(1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().reason, Reason::RpcProtectionFailed);
}

TEST(CallSecurity, is_an_error_of_the_server_where_authentication_has_no_memory) {
  SecuredWorld world;
  world.authenticator->throws = true;
  const auto result = world.call<INCREMENT>(1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(world.server.active_calls(), 0u);
  world.authenticator->throws = false;
  EXPECT_TRUE(world.call<INCREMENT>(1).ok());
}

// Decision 0026: the verifier of every accepted Reply.
TEST(CallSecurity, signs_the_error_of_a_call_that_fails_after_its_authentication) {
  SecuredWorld world(/*seals=*/true);
  ASSERT_TRUE(world.call<INCREMENT>(1).ok());
  world.authenticator->opens_nothing = true;
  const auto result = world.call<INCREMENT>(1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, CallError::Kind::Answered) << result.error().message();
  EXPECT_EQ(result.error().status, ReplyStatus::accepted(AcceptStat::SYSTEM_ERR));
  world.authenticator->opens_nothing = false;
  EXPECT_TRUE(world.call<INCREMENT>(1).ok());
}

// What a transport does: an exception ends the connection.
struct WithoutReply final : Service {
  explicit WithoutReply(Server& of) : server(of) {}
  Task<std::optional<OutgoingReply>> serve(IncomingCall& call) override {
    try {
      co_return co_await server.serve(call);
    } catch (const std::bad_alloc&) {
      ++ended;
    }
    co_return std::nullopt;
  }
  Server& server;
  int ended = 0;
};

TEST(CallSecurity, gives_no_reply_where_the_error_cannot_be_signed_either) {
  SecuredWorld world(/*seals=*/true);
  WithoutReply service(world.server);
  DirectChannel channel(world.loop, service);
  Client client(channel, kBinding, Credentials::secured(world.security));
  world.authenticator->opens_nothing = world.authenticator->signs_nothing = true;
  const auto result = *world.loop.run(client.call<INCREMENT>(1u));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, CallError::Kind::Transport) << result.error().message();
  EXPECT_EQ(service.ended, 1);
  EXPECT_EQ(world.server.active_calls(), 0u);
}

TEST(CallSecurity, leaves_others_alone_while_one_call_waits_for_its_authentication) {
  SecuredWorld world;
  Client plain(world.channel, kBinding);
  ASSERT_TRUE(world.call<INCREMENT>(1).ok());
  world.authenticator->is_slow = [](const auto&) { return true; };
  std::optional<CallResult<std::uint32_t>> slow;
  TaskGroup calls;
  const auto make = [](Client& client, std::optional<CallResult<std::uint32_t>>& to) -> Task<> {
    to = co_await client.call<INCREMENT>(1u);
  };
  calls.add(make(world.client, slow));
  world.loop.drain();
  EXPECT_TRUE(world.loop.run(plain.call<INCREMENT>(5u))->ok());
  EXPECT_FALSE(slow.has_value());
  EXPECT_EQ(world.server.active_calls(), 1u);
  world.authenticator->let_go();
  world.loop.drain();
  ASSERT_TRUE(slow.has_value());
  EXPECT_TRUE(slow->ok());
}

TEST(CallContext, keeps_what_a_handler_needs_as_long_as_the_Call_is_executed) {
  const IncomingCall call;
  const oncrpc::CallHeader header;
  const Authentication who;
  const auto needed = std::make_shared<int>(5);
  {
    CallContext context(call, header, who);
    EXPECT_EQ(*context.keep<std::shared_ptr<int>>(needed), 5);
    EXPECT_EQ(needed.use_count(), 2);
  }
  EXPECT_EQ(needed.use_count(), 1);
}

TEST(CallContext, says_how_long_results_may_be_less_what_protects_them) {
  SecuredWorld world;
  Client plain(world.channel, kBinding);
  world.channel.reply_room = {.inline_max = 1000, .chunk_max = 0};
  EXPECT_EQ(**world.loop.run(plain.call<RoomForResults>(0u)), 1000u - 24);
  EXPECT_EQ(*world.call<RoomForResults>(0), 1000u - 24 - 12);
  world.channel.reply_room.chunk_max = 5000;
  EXPECT_EQ(**world.loop.run(plain.call<RoomForResults>(0u)), 5000u - 24);
  world.channel.reply_room = {.inline_max = 10, .chunk_max = 0};
  EXPECT_EQ(**world.loop.run(plain.call<RoomForResults>(0u)), 0u);
}

}  // namespace
}  // namespace stag::rpc
