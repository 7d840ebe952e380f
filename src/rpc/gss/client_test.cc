// What the Calls of one user do to each other by the context that they share: those that end early
// while it is set up, those that end without a Reply, and contexts that are good for nothing.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/completion.h"
#include "base/task_group.h"
#include "testing/gss_world.h"

namespace stag::rpc {
namespace {

using testing::credential_of;
using testing::GssWorld;
using testing::store::INCREMENT;
using testing::store::kBinding;

// A Channel that has no connection, or a server that says nothing, when a test wants it so.
class Troubled final : public Channel {
 public:
  explicit Troubled(GssWorld& world) : Channel(1), world_(world) {}

  Task<Result<ReplyMessage, CallError>> call(CallMessage& message) override {
    if (unreachable) {
      co_await end_of(message);
      co_return Failure{CallError::transport(Reason::ConnectionRefused, where())};
    }
    if (away > Duration::zero()) {
      Completion<Ok> back;
      const Timer timer = world_.loop.after(std::exchange(away, Duration::zero()),
                                            [&back] { back.complete(Ok{}); });
      co_await back;
    }
    // What is held is signed all the same.
    if (holds_next || holds_destroys) {
      static_cast<void>(message.begin_transmission());
      last = message.stream.rope().flatten();
      if (std::exchange(holds_next, false)) {
        co_await end_of(message);
        co_return Failure{CallError::transport(Reason::Cancelled, where())};
      }
      if (credential_of(last).procedure == gss::Procedure::DESTROY) {
        co_await end_of(message);
        ++timed_out;
        co_return Failure{CallError::transport(Reason::TimedOut, where())};
      }
    }
    Result<ReplyMessage, CallError> reply = co_await world_.channel.call(message);
    last = world_.channel.last_call.rope().flatten();
    if (credential_of(last).procedure == gss::Procedure::DESTROY) ++destroys;
    co_return reply;
  }
  Task<void> close() override { co_return; }
  void serve_reverse(Service&) override {}
  Loop& loop() override { return world_.loop; }
  TransportKind kind() const override { return TransportKind::Memory; }
  std::string where() const override { return "troubled"; }

  bool unreachable = false;
  Duration away{};  // the next Call waits so long for a connection
  // Until their time is over, or they are cancelled.
  bool holds_next = false, holds_destroys = false;
  int destroys = 0, timed_out = 0;
  Buffer last;  // Call

 private:
  Task<void> end_of(const CallMessage& message) {
    Completion<Ok> over;
    const auto end = [&over] {
      if (!over.completed()) over.complete(Ok{});
    };
    Timer timer;
    if (message.deadline) timer = world_.loop.after(*message.deadline - world_.loop.now(), end);
    const CancelCallback cancelled(message.cancel, [&] { world_.loop.post(end); });
    co_await over;
  }

  GssWorld& world_;
};

Task<> call_into(Client client, CallOptions options, std::optional<CallResult<std::uint32_t>>& to) {
  to = co_await client.call<INCREMENT>(1u, options);
}

struct TroubledWorld : GssWorld {
  CallResult<std::uint32_t> increment() { return *loop.run(troubled_client.call<INCREMENT>(1u)); }
  // In a context that is there.
  void hold_a_call() {
    EXPECT_TRUE(increment().ok());
    troubled.holds_next = true;
    CallOptions options;
    options.cancel = cancel.emplace();
    calls.add(call_into(troubled_client, options, held_end));
    held = troubled.last;
  }
  // Its number stays without a Reply.
  void lose_a_call() {
    hold_a_call();
    cancel->cancel();
    loop.drain();
    EXPECT_TRUE(held_end && held_end->error().reason == Reason::Cancelled);
  }
  // Whether the last Call had the context of the one that was held.
  bool same_context() const {
    return std::ranges::equal(credential_of(held).handle, credential_of(troubled.last).handle);
  }
  // This is their last second. The server takes them for a while.
  void end_tickets() {
    realm->lifetime = 0;
    realm->skew = 300;
    // So that a client that goes on and on comes to an end.
    realm->on_step = [of = realm.get()] {
      if (of->accepted > 20) of->lifetime = 100;
    };
  }
  std::size_t established() const { return authenticator->contexts().established(); }
  void end() { loop.run(ended(*this)); }
  static Task<bool> ended(TroubledWorld& world) {
    co_await world.security_->end(world.troubled);
    co_return true;
  }

  Troubled troubled{*this};
  Client troubled_client{troubled, kBinding, Credentials::secured(security_)};
  TaskGroup calls;
  std::optional<CancelSource> cancel;
  std::optional<CallResult<std::uint32_t>> held_end;
  Buffer held;
};

// A Channel without a connection says why there is none, and not what ended the Call.
TEST(GssClient, fails_no_other_call_when_the_one_that_sets_up_runs_out_of_time_or_is_cancelled) {
  for (const bool cancels : {false, true}) {
    TroubledWorld world;
    world.troubled.unreachable = true;
    CancelSource cancel;
    CallOptions short_of_time;
    if (cancels)
      short_of_time.cancel = cancel;
    else
      short_of_time.timeout = std::chrono::seconds(5);
    std::array<std::optional<CallResult<std::uint32_t>>, 4> ends;
    TaskGroup calls;
    for (auto& end : ends)
      calls.add(
          call_into(world.troubled_client, &end == &ends[0] ? short_of_time : CallOptions{}, end));
    world.loop.drain();
    world.troubled.unreachable = false;
    if (cancels) cancel.cancel();
    world.loop.pass(std::chrono::seconds(5));
    ASSERT_TRUE(ends[0].has_value());
    EXPECT_EQ(ends[0]->error().reason, Reason::ConnectionRefused);
    for (std::size_t i = 1; i < ends.size(); ++i)
      EXPECT_TRUE(ends[i] && ends[i]->ok()) << i << (ends[i] ? ends[i]->error().message() : "");
    EXPECT_EQ(world.realm->accepted, 1u) << "one of them sets up";
  }
}

TEST(GssClient, fails_the_calls_that_wait_when_there_is_no_connection_for_any) {
  TroubledWorld world;
  world.troubled.unreachable = true;
  CallOptions one, two;
  one.timeout = std::chrono::seconds(5);
  two.timeout = std::chrono::seconds(9);
  std::array<std::optional<CallResult<std::uint32_t>>, 2> ends;
  TaskGroup calls;
  calls.add(call_into(world.troubled_client, one, ends[0]));
  calls.add(call_into(world.troubled_client, two, ends[1]));
  world.loop.pass(std::chrono::seconds(8));
  EXPECT_TRUE(ends[0].has_value());
  EXPECT_FALSE(ends[1].has_value()) << "before its own time";
  world.loop.pass(std::chrono::seconds(1));
  ASSERT_TRUE(ends[1].has_value());
  EXPECT_EQ(ends[1]->error().reason, Reason::ConnectionRefused);
}

// Kerberos has the time in a token, and most servers take it for five minutes.
TEST(GssClient, makes_another_token_when_the_first_became_too_old_while_the_server_was_away) {
  TroubledWorld world;
  world.realm->clock = [&world] { return world.loop.now(); };
  world.troubled.away = std::chrono::seconds(400);
  CallOptions patient;
  patient.timeout = std::chrono::hours(1);
  std::array<std::optional<CallResult<std::uint32_t>>, 4> ends;
  TaskGroup calls;
  for (auto& end : ends) calls.add(call_into(world.troubled_client, patient, end));
  world.loop.pass(std::chrono::seconds(400));
  for (const auto& end : ends) EXPECT_TRUE(end && end->ok()) << (end ? end->error().message() : "");
  EXPECT_EQ(world.realm->initiated, 2u);
}

TEST(GssClient, makes_one_other_token_at_most_when_clocks_differ) {
  TroubledWorld world;
  world.realm->clock = [&world] { return world.loop.now(); };
  world.realm->ahead = 400;
  for (const std::uint32_t away : {0, 60}) {
    world.realm->initiated = 0;
    world.troubled.away = std::chrono::seconds(away);
    const auto result = world.increment();
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().reason, Reason::GssClockSkew);
    EXPECT_EQ(world.realm->initiated, away == 0 ? 1u : 2u);
  }
}

TEST(GssClient, sets_up_once_a_call_in_the_last_second_of_a_ticket_and_leaves_nothing_behind) {
  TroubledWorld world;
  world.end_tickets();
  for (std::uint32_t i = 1; i <= 5; ++i) {
    const auto result = world.increment();
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().reason, Reason::GssTicketExpired);
    EXPECT_EQ(world.realm->accepted, i);
    world.loop.drain();
    EXPECT_EQ(world.established(), 0u);
  }
  EXPECT_EQ(world.troubled.destroys, 5);
  world.realm->lifetime = 100;
  EXPECT_TRUE(world.increment().ok()) << "with a new ticket";
}

TEST(GssClient, tells_all_calls_that_wait_that_the_ticket_has_ended) {
  TroubledWorld world;
  world.end_tickets();
  std::array<std::optional<CallResult<std::uint32_t>>, 4> ends;
  TaskGroup calls;
  for (auto& end : ends) calls.add(call_into(world.troubled_client, {}, end));
  world.loop.drain();
  for (const auto& end : ends) {
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end->error().reason, Reason::GssTicketExpired);
  }
  EXPECT_EQ(world.realm->accepted, 1u);
}

// The server may fetch the arguments of such a Call later, and judge its number then.
TEST(GssClient, takes_another_context_before_the_window_passes_a_call_that_ended_without_a_reply) {
  TroubledWorld world;
  world.lose_a_call();
  for (int i = 1; i <= 1000; ++i) {
    ASSERT_TRUE(world.increment().ok());
    ASSERT_EQ(world.same_context(), i < 256) << i;
  }
  EXPECT_EQ(world.realm->accepted, 2u);
  EXPECT_EQ(world.established(), 1u);
}

// As above: numbers are given when a connection takes the Calls.
TEST(GssClient, takes_another_context_before_calls_that_wait_to_be_sent_make_the_window_pass_one) {
  TroubledWorld world;
  world.lose_a_call();
  for (int i = 0; i < 155; ++i) ASSERT_TRUE(world.increment().ok());
  std::array<std::optional<CallResult<std::uint32_t>>, 100> ends;
  for (auto& end : ends) {
    world.troubled.away = std::chrono::seconds(1);
    world.calls.add(call_into(world.troubled_client, {}, end));
    world.loop.drain();
  }
  EXPECT_EQ(world.realm->accepted, 1u) << "there are numbers for these";
  ASSERT_TRUE(world.increment().ok());
  EXPECT_FALSE(world.same_context());
  world.loop.pass(std::chrono::seconds(1));
  EXPECT_TRUE(world.same_context());
  EXPECT_EQ(credential_of(world.troubled.last).seq_num - credential_of(world.held).seq_num, 255u);
  for (const auto& end : ends) EXPECT_TRUE(end && end->ok());
}

TEST(GssClient, tells_the_caller_what_the_mechanism_says_itself) {
  TroubledWorld world;
  world.realm->no_ticket = {Reason::GssFailed, "KDC policy rejects request"};
  EXPECT_EQ(world.increment().error().message(),
            "troubled: KDC policy rejects request: Kerberos failed");
  world.realm->no_ticket = {Reason::GssTicketExpired, "Ticket expired"};
  EXPECT_EQ(world.increment().error().where, "troubled") << "what says all by itself";
}

TEST(GssClient, asks_for_another_context_once_a_window_where_there_is_none) {
  TroubledWorld world;
  world.lose_a_call();
  world.realm->no_ticket = {Reason::GssNoTicket, ""};
  const std::uint64_t before = reason_counters().of(Reason::GssNoTicket);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(world.increment().ok());
  const std::uint64_t asked = reason_counters().of(Reason::GssNoTicket) - before;
  EXPECT_GE(asked, 2u) << "later, too";
  EXPECT_LE(asked, 4u);
  world.realm->no_ticket = {};
  for (int i = 0; i < 256; ++i) ASSERT_TRUE(world.increment().ok());
  EXPECT_FALSE(world.same_context());
}

TEST(GssClient, asks_for_another_context_once_a_window_while_a_call_takes_long) {
  TroubledWorld world;
  world.hold_a_call();
  world.realm->refuses_tokens = true;
  const std::uint32_t before = world.realm->initiated;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(world.increment().ok());
  const std::uint32_t asked = world.realm->initiated - before;
  EXPECT_GE(asked, 2u) << "later, too";
  EXPECT_LE(asked, 4u);
  world.realm->refuses_tokens = false;
  for (int i = 0; i < 256; ++i) ASSERT_TRUE(world.increment().ok());
  EXPECT_FALSE(world.same_context());
  world.cancel->cancel();
  world.loop.drain();
}

TEST(GssClient, lets_all_calls_go_on_once_another_context_was_asked_for_in_vain) {
  TroubledWorld world;
  world.hold_a_call();
  for (int i = 0; i < 255; ++i) ASSERT_TRUE(world.increment().ok());
  ASSERT_TRUE(world.same_context());
  world.realm->refuses_tokens = true;
  const std::uint32_t before = world.realm->initiated;
  std::array<std::optional<CallResult<std::uint32_t>>, 20> ends;
  for (auto& end : ends) world.calls.add(call_into(world.troubled_client, {}, end));
  world.loop.drain();
  for (const auto& end : ends) EXPECT_TRUE(end && end->ok());
  EXPECT_EQ(world.realm->initiated - before, 1u);
  world.cancel->cancel();
  world.loop.drain();
}

// A user who has a context that is good for another hour has no need of a KDC.
TEST(GssClient, lets_all_calls_but_one_go_on_while_another_context_is_asked_for_and_none_comes) {
  TroubledWorld world;
  world.lose_a_call();
  for (int i = 0; i < 255; ++i) ASSERT_TRUE(world.increment().ok());
  world.loop.holds_offloaded = true;
  std::optional<CallResult<std::uint32_t>> asks;
  world.calls.add(call_into(world.troubled_client, {}, asks));
  CallOptions options;
  options.timeout = std::chrono::seconds(5);
  std::array<std::optional<CallResult<std::uint32_t>>, 20> ends;
  for (auto& end : ends) world.calls.add(call_into(world.troubled_client, options, end));
  world.loop.drain();
  EXPECT_FALSE(ends[0].has_value()) << "KDCs answer soon as a rule";
  world.loop.pass(std::chrono::seconds(4));
  for (const auto& end : ends) EXPECT_TRUE(end && end->ok());
  const TimePoint now = world.loop.now();
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(world.increment().ok());
  EXPECT_EQ(world.loop.now(), now);
  EXPECT_TRUE(world.same_context());
  EXPECT_FALSE(asks.has_value());
  world.loop.holds_offloaded = false;
  world.loop.run_offloaded();
  world.loop.drain();
  EXPECT_TRUE(asks && asks->ok());
  EXPECT_TRUE(world.increment().ok());
  EXPECT_FALSE(world.same_context());
}

TEST(GssClient, asks_for_another_context_once_a_window_where_that_takes_longer_than_a_call_may) {
  TroubledWorld world;
  world.lose_a_call();
  world.realm->no_ticket = {Reason::GssKdcUnreachable, ""};
  world.loop.holds_offloaded = true;
  CallOptions options;
  options.timeout = std::chrono::seconds(5);
  int asked = 0;
  for (int i = 0; i < 1000; ++i) {
    std::optional<CallResult<std::uint32_t>> end;
    world.calls.add(call_into(world.troubled_client, options, end));
    world.loop.drain();
    if (!end) {
      ++asked;
      world.loop.pass(std::chrono::seconds(27));
      world.loop.run_offloaded();
      world.loop.drain();
    }
    ASSERT_TRUE(end.has_value());
  }
  EXPECT_GE(asked, 2) << "later, too";
  EXPECT_LE(asked, 4);
}

TEST(GssClient, holds_no_call_up_to_tell_the_server_of_contexts_that_are_left) {
  TroubledWorld world;
  world.troubled.holds_destroys = true;
  const TimePoint began = world.loop.now();
  for (int round = 0; round < 3; ++round) {
    world.lose_a_call();
    for (int i = 0; i < 256; ++i) ASSERT_TRUE(world.increment().ok());
    EXPECT_FALSE(world.same_context());
  }
  EXPECT_EQ(world.loop.now(), began);
  EXPECT_EQ(world.troubled.timed_out, 0);
  world.loop.pass(std::chrono::seconds(2));
  EXPECT_EQ(world.troubled.timed_out, 3);
}

// A user's unmount waits for it.
TEST(GssClient, tells_the_server_of_all_contexts_at_once_in_the_end) {
  TroubledWorld world;
  world.hold_a_call();
  for (int i = 0; i < 256; ++i) ASSERT_TRUE(world.increment().ok());
  world.cancel->cancel();
  world.loop.drain();
  world.troubled.holds_destroys = true;
  const TimePoint began = world.loop.now();
  world.end();
  EXPECT_EQ(world.troubled.timed_out, 2);
  EXPECT_EQ(world.loop.now() - began, std::chrono::seconds(2));
}

TEST(GssClient, asks_once_to_destroy_a_context_that_the_server_has_lost) {
  TroubledWorld world;
  ASSERT_TRUE(world.increment().ok());
  world.server.add(std::make_unique<GssAuthenticator>(
      GssServerOptions{.acceptor = std::make_shared<testing::FakeAcceptor>(world.realm)}));
  world.end();
  EXPECT_EQ(world.troubled.destroys, 1);
}

TEST(GssClient, does_not_ask_to_destroy_a_context_that_the_server_said_it_has_lost) {
  TroubledWorld world;
  ASSERT_TRUE(world.increment().ok());
  world.server.add(std::make_unique<GssAuthenticator>(
      GssServerOptions{.acceptor = std::make_shared<testing::FakeAcceptor>(world.realm)}));
  world.realm->no_ticket = {Reason::GssNoTicket, ""};
  EXPECT_EQ(world.increment().error().reason, Reason::GssNoTicket);
  world.end();
  EXPECT_EQ(world.troubled.destroys, 0);
}

}  // namespace
}  // namespace stag::rpc
