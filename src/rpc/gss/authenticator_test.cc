// What a server of RPCSEC_GSS answers, message by message (RFC 2203 sections 5.1 to 5.4), also to
// clients that keep no rules.
#include "rpc/gss/authenticator.h"

#include <gtest/gtest.h>

#include <deque>

#include "testing/gss_world.h"
#include "testing/held_executor.h"

namespace stag::rpc {
namespace {

using gss::Credential;
using gss::Major;
using oncrpc::AcceptStat;
using oncrpc::AuthFlavor;
using oncrpc::AuthStat;
using testing::GssWorld;
using testing::RawGssClient;
using testing::store::INCREMENT;
using testing::store::PUT;

std::vector<std::byte> word(std::uint32_t value) {
  std::vector<std::byte> bytes(4);
  store_be(bytes.data(), value);
  return bytes;
}

class GssServer : public ::testing::Test {
 protected:
  // Of INCREMENT, with a sequence number.
  std::optional<RawGssClient::Answer> increment(gss::Context& context, std::uint32_t seq_num) {
    return client.send_signed(client.data(seq_num), context, word(1), INCREMENT::number);
  }
  static bool good(const std::optional<RawGssClient::Answer>& answer) {
    return answer && answer->header.status.success();
  }
  static AuthStat refusal(const std::optional<RawGssClient::Answer>& answer) {
    return answer ? answer->refusal() : AuthStat::AUTH_OK;
  }

  GssWorld world;
  RawGssClient client{world};
};

// RFC 2203 5.2.3.1
TEST_F(GssServer, answers_INIT_with_a_handle_a_window_of_256_and_the_windows_checksum) {
  testing::FakeInitiator initiator(world.realm);
  const auto context = *initiator.begin();
  const gss::Step step = context->step({});
  const auto answer = client.init(step.token.bytes());
  ASSERT_TRUE(good(answer));
  const auto results = answer->init();
  ASSERT_TRUE(results);
  EXPECT_EQ(results->major, Major::COMPLETE);
  EXPECT_FALSE(results->handle.empty());
  EXPECT_EQ(results->window, 256u);
  const auto window = word(256);
  const Bytes message = window;
  EXPECT_EQ(answer->header.verifier.flavor, AuthFlavor::RPCSEC_GSS);
  EXPECT_EQ(context->verify_mic(gss::Pieces(&message, 1), answer->verifier), Major::COMPLETE);
}

TEST_F(GssServer, answers_CONTINUE_NEEDED_with_a_NULL_verifier_and_the_same_handle_to_the_end) {
  world.realm->rounds = 2;
  testing::FakeInitiator initiator(world.realm);
  const auto context = *initiator.begin();
  const gss::Step first = context->step({});
  const auto answer = client.init(first.token.bytes());
  EXPECT_EQ(answer->header.verifier.flavor, AuthFlavor::AUTH_NONE);
  EXPECT_TRUE(answer->verifier.empty());
  EXPECT_EQ(answer->init()->major, Major::CONTINUE_NEEDED);
  EXPECT_EQ(world.authenticator->contexts().half_open(), 1u);
  const gss::Step second = context->step(answer->init()->token);
  const auto end = client.init(second.token.bytes(), answer->init()->handle);
  EXPECT_EQ(end->init()->major, Major::COMPLETE);
  EXPECT_TRUE(std::ranges::equal(end->init()->handle, answer->init()->handle));
  EXPECT_EQ(end->header.verifier.flavor, AuthFlavor::RPCSEC_GSS);
  EXPECT_EQ(world.authenticator->contexts().half_open(), 0u);
}

// RFC 2203 5.2.3.1: "the context setup has failed; in this case handle and gss_token must be set to
// NULL by the server" and "a NULL verifier".
TEST_F(GssServer, answers_a_token_that_is_refused_with_the_status_and_nothing_else) {
  const auto answer = client.init(bytes_of("nonsense"));
  ASSERT_TRUE(good(answer));
  const auto results = answer->init();
  EXPECT_EQ(results->major, Major::DEFECTIVE_TOKEN);
  EXPECT_EQ(results->minor, 7u);
  EXPECT_TRUE(results->handle.empty() && results->token.empty());
  EXPECT_EQ(answer->header.verifier.flavor, AuthFlavor::AUTH_NONE);
  EXPECT_EQ(world.authenticator->contexts().half_open(), 0u);
  EXPECT_EQ(world.realm->alive, 0u);
}

TEST_F(GssServer, refuses_tokens_above_64_KiB_and_arguments_that_are_none) {
  std::vector<std::byte> arguments(4 + gss::kMaxToken + 4);
  store_be(arguments.data(), gss::kMaxToken + 4);
  Credential init;
  init.procedure = gss::Procedure::INIT;
  EXPECT_EQ(client.send(init, {}, arguments)->init()->major, Major::DEFECTIVE_TOKEN);
  EXPECT_EQ(client.send(init, {}, {})->init()->major, Major::DEFECTIVE_TOKEN);
  EXPECT_EQ(client.send(init, {}, word(0xffffffff))->init()->major, Major::DEFECTIVE_TOKEN);
  EXPECT_EQ(world.realm->alive, 0u);
}

// RFC 2203 5.2.3.2: CREDPROBLEM and CTXPROBLEM are no answers to context creation requests.
TEST_F(GssServer, answers_CONTINUE_INIT_of_an_unknown_or_established_context_with_NO_CONTEXT) {
  const auto context = client.establish();
  EXPECT_EQ(client.init(bytes_of("x"), client.handle)->init()->major, Major::NO_CONTEXT);
  const auto unknown = std::vector<std::byte>(16, std::byte{1});
  EXPECT_EQ(client.init(bytes_of("x"), unknown)->init()->major, Major::NO_CONTEXT);
  EXPECT_TRUE(good(increment(*context, 1))) << "the context is unharmed";
}

TEST_F(GssServer, lets_nobody_else_continue_a_set_up) {
  world.realm->rounds = 2;
  testing::FakeInitiator initiator(world.realm);
  const auto context = *initiator.begin();
  const auto answer = client.init(context->step({}).token.bytes());
  const gss::Step second = context->step(answer->init()->token);
  RawGssClient thief(world, "192.0.2.99");
  EXPECT_EQ(thief.init(second.token.bytes(), answer->init()->handle)->init()->major,
            Major::NO_CONTEXT);
  EXPECT_EQ(client.init(second.token.bytes(), answer->init()->handle)->init()->major,
            Major::COMPLETE);
}

// RFC 2203 5.3.3.2
TEST_F(GssServer, signs_the_sequence_number_of_an_accepted_request) {
  const auto context = client.establish();
  for (const std::uint32_t seq_num : {1u, 7u, 3u}) {
    const auto answer = increment(*context, seq_num);
    ASSERT_TRUE(good(answer));
    const auto number = word(seq_num);
    const Bytes message = number;
    EXPECT_EQ(context->verify_mic(gss::Pieces(&message, 1), answer->verifier), Major::COMPLETE);
    EXPECT_EQ(answer->results, word(2));
  }
}

// RFC 2203 5.3.3.1: "silently discarded"; on a connection, whose client sends nothing twice, it
// ends (decision 0026).
TEST_F(GssServer, drops_a_sequence_number_that_was_seen_or_is_below_the_window) {
  const auto context = client.establish();
  constexpr std::uint32_t kLast = 100'000;
  EXPECT_TRUE(good(increment(*context, kLast)));
  EXPECT_TRUE(good(increment(*context, kLast - 255))) << "within the window that was announced";
  for (const std::uint32_t seq_num : {kLast, kLast - 255, kLast - gss::SequenceWindow::kKept, 1u}) {
    EXPECT_FALSE(increment(*context, seq_num).has_value()) << seq_num;
    EXPECT_EQ(client.last_close, Reason::RpcSequenceRefused);
  }
  EXPECT_TRUE(good(increment(*context, kLast + 1)));
}

// A Call waits for its turn on its connection while another connection of its client flows.
TEST_F(GssServer, serves_a_request_that_thousands_of_the_same_context_have_overtaken) {
  const auto context = client.establish();
  EXPECT_TRUE(good(increment(*context, 1)));
  for (std::uint32_t seq_num = 3; seq_num < 8000; ++seq_num)
    ASSERT_TRUE(good(increment(*context, seq_num)));
  EXPECT_TRUE(good(increment(*context, 2)));
}

// RFC 2203 5.3.3.1: "When a request is received by the server".
TEST_F(GssServer, judges_the_number_of_a_request_when_it_arrives_however_late_it_is_served) {
  const auto context = client.establish();
  rpc::IncomingCall first =
      client.signed_call(client.data(1), *context, word(1), INCREMENT::number);
  rpc::IncomingCall again, unseen;
  again.origin = unseen.origin = first.origin;
  again.payload = unseen.payload = first.payload;
  world.server.on_arrival(first);
  world.server.on_arrival(again);
  for (std::uint32_t number = 2; number <= gss::SequenceWindow::kKept + 2; ++number)
    ASSERT_TRUE(good(increment(*context, number)));
  EXPECT_TRUE(good(client.serve(first)));
  for (rpc::IncomingCall* const replay : {&again, &unseen}) {
    EXPECT_FALSE(client.serve(*replay).has_value());
    EXPECT_EQ(client.last_close, Reason::RpcSequenceRefused);
  }
}

TEST_F(GssServer, decides_about_a_request_once) {
  const auto context = client.establish();
  const auto stranger = *testing::FakeInitiator(world.realm).begin();
  rpc::IncomingCall forged =
      client.signed_call(client.data(1), *stranger, word(1), INCREMENT::number);
  world.server.on_arrival(forged);
  EXPECT_EQ(refusal(client.serve(forged)), AuthStat::RPCSEC_GSS_CREDPROBLEM);
  rpc::IncomingCall call = client.signed_call(client.data(1), *context, word(1), INCREMENT::number);
  world.server.on_arrival(call);
  ASSERT_NE(call.who, nullptr);
  EXPECT_TRUE(good(client.serve(call)));
  EXPECT_EQ(call.who, nullptr);
  EXPECT_FALSE(client.serve(call).has_value()) << "the same bytes are another message";
}

// RFC 2203 7.2.1: only a good checksum moves the window.
TEST_F(GssServer, is_not_moved_by_a_number_above_the_window_without_its_checksum) {
  const auto context = client.establish();
  const auto stranger = *testing::FakeInitiator(world.realm).begin();
  EXPECT_EQ(refusal(increment(*stranger, 0x70000000)), AuthStat::RPCSEC_GSS_CREDPROBLEM);
  EXPECT_TRUE(good(increment(*context, 1)));
}

// RFC 2203 5.3.3.3
TEST_F(GssServer, answers_CTXPROBLEM_to_a_number_above_MAXSEQ) {
  const auto context = client.establish();
  EXPECT_EQ(refusal(increment(*context, gss::kMaxSeq + 1)), AuthStat::RPCSEC_GSS_CTXPROBLEM);
  EXPECT_EQ(refusal(increment(*context, 0xffffffff)), AuthStat::RPCSEC_GSS_CTXPROBLEM);
  EXPECT_TRUE(good(increment(*context, gss::kMaxSeq)));
}

TEST_F(GssServer, answers_CREDPROBLEM_to_an_unknown_handle_and_to_a_wrong_checksum) {
  const auto context = client.establish();
  Credential credential = client.data(1);
  const auto stranger = *testing::FakeInitiator(world.realm).begin();
  EXPECT_EQ(refusal(client.send_signed(credential, *stranger, word(1), 1)),
            AuthStat::RPCSEC_GSS_CREDPROBLEM);
  std::vector<std::byte> other = client.handle;
  for (std::size_t i = 0; i < other.size(); ++i) {
    other = client.handle;
    other[i] ^= std::byte{1};
    credential.handle = other;
    EXPECT_EQ(refusal(client.send_signed(credential, *context, word(1), 1)),
              AuthStat::RPCSEC_GSS_CREDPROBLEM);
  }
  credential.handle = {};
  EXPECT_EQ(refusal(client.send_signed(credential, *context, word(1), 1)),
            AuthStat::RPCSEC_GSS_CREDPROBLEM);
  EXPECT_TRUE(good(increment(*context, 1)));
}

TEST_F(GssServer, lets_nobody_use_or_end_the_context_of_another_by_its_handle) {
  const auto context = client.establish();
  RawGssClient thief(world, "192.0.2.67");
  const auto own = thief.establish();
  EXPECT_EQ(refusal(thief.send_signed(client.data(200), *own, word(1), INCREMENT::number)),
            AuthStat::RPCSEC_GSS_CREDPROBLEM);
  Credential destroy = client.data(201);
  destroy.procedure = gss::Procedure::DESTROY;
  EXPECT_EQ(refusal(thief.send_signed(destroy, *own, {})), AuthStat::RPCSEC_GSS_CREDPROBLEM);
  EXPECT_TRUE(good(increment(*context, 1))) << "nor was the window moved";
  EXPECT_TRUE(good(thief.send_signed(thief.data(1), *own, word(1), INCREMENT::number)));
}

TEST_F(GssServer, answers_CTXPROBLEM_when_the_ticket_has_expired) {
  world.realm->lifetime = 10;
  const auto context = client.establish();
  EXPECT_TRUE(good(increment(*context, 1)));
  world.loop.pass(std::chrono::seconds(10));
  EXPECT_EQ(refusal(increment(*context, 2)), AuthStat::RPCSEC_GSS_CTXPROBLEM);
  EXPECT_EQ(world.authenticator->contexts().established(), 0u);
}

// RFC 2203 5.1, 5.3.3.3
TEST_F(GssServer, refuses_versions_2_and_3_and_another_version_of_a_context_that_exists) {
  const auto context = client.establish();
  for (const std::uint32_t version : {0u, 2u, 3u, 77u}) {
    Credential init;
    init.version = version;
    init.procedure = gss::Procedure::INIT;
    EXPECT_EQ(refusal(client.send(init, {}, {})), AuthStat::AUTH_REJECTEDCRED);
    Credential data = client.data(5);
    data.version = version;
    EXPECT_EQ(refusal(client.send_signed(data, *context, word(1), 1)), AuthStat::AUTH_BADCRED);
  }
  // RPCSEC_GSS_BIND_CHANNEL of version 2, RPCSEC_GSS_LIST of version 3: no procedure of version 1.
  auto start = client.head(client.data(5), 1);
  store_be(start.data() + 32, 3u);
  store_be(start.data() + 36, 5u);
  IncomingCall call = client.incoming(start, {}, {});
  EXPECT_EQ(refusal(client.serve(call)), AuthStat::AUTH_REJECTEDCRED);
}

TEST_F(GssServer, refuses_credentials_that_are_malformed) {
  const auto context = client.establish();
  const auto good_start = client.head(client.data(9), INCREMENT::number);
  auto start = good_start;
  store_be(start.data() + 36, 9u);  // the procedure
  IncomingCall call = client.incoming(start, {}, word(1));
  EXPECT_EQ(refusal(client.serve(call)), AuthStat::AUTH_BADCRED);
  start = good_start;
  store_be(start.data() + 44, 4u);  // the service
  call = client.incoming(start, {}, word(1));
  EXPECT_EQ(refusal(client.serve(call)), AuthStat::AUTH_BADCRED);
  call = client.incoming(client.head_of(Bytes(good_start).subspan(32, 8), 1), {}, word(1));
  EXPECT_EQ(refusal(client.serve(call)), AuthStat::AUTH_BADCRED);
  call = client.incoming(client.head_of({}, 1), {}, word(1));
  EXPECT_EQ(refusal(client.serve(call)), AuthStat::AUTH_BADCRED);
}

TEST_F(GssServer, wants_control_messages_under_procedure_NULL_and_without_chunks) {
  const auto context = client.establish();
  testing::FakeInitiator initiator(world.realm);
  const auto other = *initiator.begin();
  const gss::Step step = other->step({});
  Credential init;
  init.procedure = gss::Procedure::INIT;
  const Buffer arguments = gss::encode_init_arg(step.token.bytes()).rope().flatten();
  EXPECT_EQ(refusal(client.send(init, {}, arguments.bytes(), 1)), AuthStat::AUTH_BADCRED);
  Credential destroy = client.data(1);
  destroy.procedure = gss::Procedure::DESTROY;
  EXPECT_EQ(refusal(client.send_signed(destroy, *context, {}, 1)), AuthStat::AUTH_BADCRED);
  // RFC 8166 8.2.2: elements of RPCSEC_GSS are never reduced.
  IncomingCall call = client.incoming(client.head(init, 0), {}, arguments.bytes());
  call.items.add(64, testing::store::pattern(4, 1));
  EXPECT_EQ(refusal(client.serve(call)), AuthStat::AUTH_BADCRED);
}

TEST_F(GssServer, refuses_a_data_request_without_a_verifier_of_RPCSEC_GSS) {
  const auto context = client.establish();
  EXPECT_EQ(refusal(client.send(client.data(1), {}, word(1), 1)), AuthStat::AUTH_BADVERF);
  const std::vector<std::byte> zeros(12);
  EXPECT_EQ(refusal(client.send(client.data(1), {AuthFlavor::RPCSEC_GSS, zeros}, word(1), 1)),
            AuthStat::RPCSEC_GSS_CREDPROBLEM);
}

// RFC 2203 5.3.3.4.2, 5.3.3.4.3
TEST_F(GssServer, answers_GARBAGE_ARGS_to_arguments_that_are_not_what_the_service_sends) {
  const auto context = client.establish();
  std::uint32_t seq_num = 0;
  for (const gss::Service service : {gss::Service::integrity, gss::Service::privacy}) {
    xdr::Encoder plain;
    plain.u32(1);
    const xdr::Stream arguments = std::move(plain).finish();
    const auto send = [&](std::uint32_t inside, int change) {
      const auto made = gss::protect(*context, service, inside, arguments);
      Buffer wire = Buffer::copy_of(made->rope().flatten().bytes());
      std::vector<std::byte> bytes(wire.bytes().begin(), wire.bytes().end());
      if (change >= 0) bytes[static_cast<std::size_t>(change)] ^= std::byte{1};
      return client.send_signed(client.data(++seq_num, service), *context, bytes,
                                INCREMENT::number);
    };
    EXPECT_TRUE(good(send(seq_num + 1, -1)));
    EXPECT_EQ(send(seq_num, -1)->header.status.accept, AcceptStat::GARBAGE_ARGS);
    EXPECT_EQ(send(seq_num + 2, -1)->header.status.accept, AcceptStat::GARBAGE_ARGS);
    for (const int change : {3, 9, 13, 17})
      EXPECT_EQ(send(seq_num + 1, change)->header.status.accept, AcceptStat::GARBAGE_ARGS);
    // Plain arguments are those of another service.
    EXPECT_EQ(client.send_signed(client.data(++seq_num, service), *context, word(1), 1)
                  ->header.status.accept,
              AcceptStat::GARBAGE_ARGS);
  }
}

TEST_F(GssServer, signs_errors_of_accepted_requests_too) {
  const auto context = client.establish();
  const auto answer = client.send_signed(client.data(4), *context, {}, 99);
  EXPECT_EQ(answer->header.status.accept, AcceptStat::PROC_UNAVAIL);
  const auto number = word(4);
  const Bytes message = number;
  EXPECT_EQ(context->verify_mic(gss::Pieces(&message, 1), answer->verifier), Major::COMPLETE);
}

// RFC 2203 5.3.3.4.1
TEST_F(GssServer, answers_CTXPROBLEM_when_the_mechanism_cannot_sign_the_reply) {
  const auto context = client.establish();
  world.realm->mics = Major::FAILURE;
  EXPECT_EQ(refusal(increment(*context, 1)), AuthStat::RPCSEC_GSS_CTXPROBLEM);
}

// RFC 2203 5.4
TEST_F(GssServer, ends_a_context_by_DESTROY_that_is_signed_and_new) {
  const auto context = client.establish();
  EXPECT_TRUE(good(increment(*context, 5)));
  Credential destroy = client.data(5);
  destroy.procedure = gss::Procedure::DESTROY;
  EXPECT_FALSE(client.send_signed(destroy, *context, {}).has_value());
  destroy.seq_num = 6;
  const auto stranger = *testing::FakeInitiator(world.realm).begin();
  EXPECT_EQ(refusal(client.send_signed(destroy, *stranger, {})), AuthStat::RPCSEC_GSS_CREDPROBLEM);
  const auto answer = client.send_signed(destroy, *context, {});
  EXPECT_TRUE(good(answer) && answer->results.empty());
  const auto number = word(6);
  const Bytes message = number;
  EXPECT_EQ(context->verify_mic(gss::Pieces(&message, 1), answer->verifier), Major::COMPLETE);
  EXPECT_EQ(refusal(increment(*context, 7)), AuthStat::RPCSEC_GSS_CREDPROBLEM);
}

TEST_F(GssServer, keeps_calls_of_other_contexts_going_while_one_is_accepted_slowly) {
  const auto context = client.establish();
  int inside = 0;
  world.realm->on_step = [&] {
    const bool first = ++inside == 1;
    EXPECT_TRUE(!first || good(increment(*context, 1)));
  };
  RawGssClient other(world, "192.0.2.67");
  const auto second = other.establish();
  EXPECT_EQ(inside, 1);
}

TEST(GssServerFlood, harms_no_other_client_with_set_ups_that_are_never_finished) {
  GssServerOptions options;
  options.half_open = 8;
  options.contexts = 12;
  GssWorld world(gss::Service::integrity, std::move(options));
  ASSERT_TRUE(world.call<INCREMENT>(1).ok());
  world.realm->rounds = 2;
  RawGssClient honest(world, "192.0.2.1"), flood(world, "192.0.2.66");
  testing::FakeInitiator initiator(world.realm);
  const auto context = *initiator.begin();
  const auto begun = honest.init(context->step({}).token.bytes());
  for (int i = 0; i < 100; ++i) {
    const auto begin = *initiator.begin();
    EXPECT_EQ(flood.init(begin->step({}).token.bytes())->init()->major, Major::CONTINUE_NEEDED);
  }
  EXPECT_EQ(world.authenticator->contexts().half_open(), 8u);
  const gss::Step second = context->step(begun->init()->token);
  EXPECT_EQ(honest.init(second.token.bytes(), begun->init()->handle)->init()->major,
            Major::COMPLETE);
  for (int i = 0; i < 100; ++i) flood.establish();
  EXPECT_EQ(world.authenticator->contexts().established(), 12u);
  EXPECT_TRUE(world.call<INCREMENT>(1).ok());
  EXPECT_EQ(world.realm->accepted, 102u) << "the first client kept its context";
}

Task<> increment_once(Client client, int& served) {
  const auto result = co_await client.call<INCREMENT>(1u);
  EXPECT_TRUE(result.ok()) << result.error().message();
  if (result.ok()) ++served;
}

Task<> increment_once_or_not(Client client, int& served) {
  const auto result = co_await client.call<INCREMENT>(1u);
  if (result.ok()) ++served;
}

// As after a pause of the server: all tokens have arrived before the first is accepted.
TEST(GssServerFlood, pushes_no_context_out_with_first_tokens_that_wait) {
  constexpr int kUsers = 1000;
  testing::HeldExecutor executor;
  GssServerOptions options;
  options.executor = &executor;
  GssWorld world(gss::Service::none, std::move(options));
  int served = 0;
  for (int i = 0; i < kUsers; ++i) {
    const auto user = Credentials::secured(world.security(gss::Service::none));
    detach(increment_once(Client(world.channel, testing::store::kBinding, user), served));
  }
  world.loop.drain();
  EXPECT_EQ(executor.held.size(), 1u) << "the others wait for their turn";
  EXPECT_EQ(world.authenticator->contexts().half_open(), 0u);
  while (!executor.held.empty()) {
    executor.run_all();
    world.loop.drain();
  }
  EXPECT_EQ(served, kUsers);
  EXPECT_EQ(world.realm->accepted, 1000u) << "each set up one context";
}

// The first token of a context, on its way.
struct FirstToken {
  FirstToken(GssWorld& world, const std::string& host) : server(world.server) {
    const auto context = *testing::FakeInitiator(world.realm).begin();
    const Buffer token = context->step({}).token;
    const Buffer arguments = gss::encode_init_arg(token.bytes()).rope().flatten();
    Credential init;
    init.procedure = gss::Procedure::INIT;
    RawGssClient client(world, host);
    call = client.incoming(client.head(init, 0), {}, arguments.bytes());
  }
  Task<> serve() {
    const auto reply = co_await server.serve(call);
    const Buffer bytes = reply->stream.rope().flatten();
    xdr::Decoder decoder(bytes);
    STAG_CHECK(oncrpc::decode_reply(decoder).ok());
    major = gss::decode_init_res(bytes.bytes().last(decoder.remaining()))->major;
  }

  Server& server;
  IncomingCall call;
  std::optional<Major> major{};
};

TEST(GssServerFlood, keeps_no_other_address_from_its_context_with_tokens_of_one) {
  const auto tokens = std::make_shared<testing::HeldExecutor>();
  GssServerOptions options;
  options.tokens = tokens;
  GssWorld world(gss::Service::none, std::move(options));
  std::deque<FirstToken> flood, others;
  for (std::uint32_t i = 0; i <= GssAuthenticator::kWaiting; ++i)
    detach(flood.emplace_back(world, "192.0.2.66").serve());
  for (int i = 0; i < 200; ++i)
    detach(others.emplace_back(world, "198.51.100." + std::to_string(i)).serve());
  EXPECT_EQ(flood.back().major, Major::NO_CONTEXT) << "more than may wait";
  EXPECT_EQ(tokens->held.size(), 201u) << "one of each address";
  while (!tokens->held.empty()) {
    tokens->run_all();
    world.loop.drain();
  }
  for (const FirstToken& other : others) EXPECT_EQ(other.major, Major::COMPLETE);
  flood.pop_back();
  for (const FirstToken& one : flood) EXPECT_EQ(one.major, Major::COMPLETE);
}

// Calls outlive their connections: who connects, sends tokens and goes, again and again, has none
// accepted for it.
TEST(GssServerFlood, has_no_token_accepted_for_connections_that_have_gone) {
  const auto tokens = std::make_shared<testing::HeldExecutor>();
  GssServerOptions options;
  options.tokens = tokens;
  GssWorld world(gss::Service::none, std::move(options));
  const auto connection = std::make_shared<Connection>();
  world.channel.come_on(connection);
  int served = 0;
  for (int i = 0; i < 100; ++i) {
    const auto user = Credentials::secured(world.security(gss::Service::none));
    detach(increment_once_or_not(Client(world.channel, testing::store::kBinding, user), served));
  }
  world.loop.drain();
  ASSERT_EQ(tokens->held.size(), 1u);
  connection->end();
  while (!tokens->held.empty()) {
    tokens->run_all();
    world.loop.drain();
  }
  EXPECT_LE(world.realm->accepted, 1u);
}

TEST(GssServerFlood, that_waits_for_a_keytab_keeps_no_message_of_others_waiting) {
  const auto tokens = std::make_shared<testing::HeldExecutor>(/*runs_at_once=*/true);
  testing::HeldExecutor messages(/*runs_at_once=*/true);
  GssServerOptions options;
  options.tokens = tokens;
  options.executor = &messages;
  options.large = 0;
  GssWorld world(gss::Service::integrity, std::move(options));
  EXPECT_TRUE(world.call<INCREMENT>(1).ok());
  tokens->at_once = false;
  EXPECT_TRUE(world.call<INCREMENT>(1).ok());
  EXPECT_TRUE(tokens->held.empty());
}

// Its principal is looked up after its last token was accepted, and others come meanwhile.
TEST(GssServerFlood, that_takes_a_context_before_it_is_established_has_its_client_begin_anew) {
  std::optional<RawGssClient> flood;
  bool flooded = false;
  GssServerOptions options;
  options.half_open = 1;
  GssWorld* at = nullptr;
  options.ids = [&](Loop&, const std::string&, const void*) {
    if (!std::exchange(flooded, true)) {
      const auto begin = *testing::FakeInitiator(at->realm).begin();
      const auto answer = flood->init(begin->step({}).token.bytes());
      EXPECT_EQ(answer->init()->major, Major::CONTINUE_NEEDED);
    }
    return Result<UserIds, NoUserIds>(UserIds{});
  };
  GssWorld world(gss::Service::none, std::move(options));
  at = &world;
  world.realm->rounds = 2;
  flood.emplace(world, "192.0.2.66");
  const auto result = world.call<INCREMENT>(1);
  EXPECT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(world.realm->accepted, 2u);
}

TEST(GssServerFlood, gives_no_handle_of_a_context_that_went_before_it_was_established) {
  std::function<void()> meanwhile;
  GssServerOptions options;
  options.half_open = 1;
  options.ids = [&](Loop&, const std::string&, const void*) {
    if (meanwhile) std::exchange(meanwhile, {})();
    return Result<UserIds, NoUserIds>(UserIds{});
  };
  GssWorld world(gss::Service::none, std::move(options));
  world.realm->rounds = 2;
  testing::FakeInitiator initiator(world.realm);
  RawGssClient honest(world, "192.0.2.1"), flood(world, "192.0.2.66");
  const auto context = *initiator.begin(), other = *initiator.begin();
  const auto begun = honest.init(context->step({}).token.bytes());
  meanwhile = [&] { flood.init(other->step({}).token.bytes()); };
  const gss::Step second = context->step(begun->init()->token);
  const auto end = honest.init(second.token.bytes(), begun->init()->handle);
  EXPECT_EQ(end->init()->major, Major::NO_CONTEXT);
  EXPECT_TRUE(end->init()->handle.empty());
  EXPECT_EQ(end->header.verifier.flavor, AuthFlavor::AUTH_NONE);
  EXPECT_EQ(world.authenticator->contexts().established(), 0u);
}

TEST_F(GssServer, knows_headers_that_are_not_worth_an_RDMA_Read) {
  const auto context = client.establish();
  Origin origin;
  const auto worth = [&](const Credential& credential, std::uint32_t procedure) {
    const IncomingCall call = client.incoming(client.head(credential, procedure), {}, {});
    return world.server.is_worth_fetching(origin, call.payload.bytes());
  };
  EXPECT_TRUE(worth(client.data(1), PUT::number));
  Credential unknown = client.data(1);
  const std::vector<std::byte> handle(16);
  unknown.handle = handle;
  EXPECT_FALSE(worth(unknown, PUT::number));
  Credential other_version = client.data(1);
  other_version.version = 3;
  EXPECT_FALSE(worth(other_version, PUT::number));
}

}  // namespace
}  // namespace stag::rpc
