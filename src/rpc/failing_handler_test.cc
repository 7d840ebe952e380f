// A handler that throws costs its Call a SYSTEM_ERR and nobody else anything.
#include <gtest/gtest.h>

#include "rpc/client.h"
#include "rpc/server.h"
#include "testing/direct_channel.h"
#include "testing/failing_program.h"
#include "testing/manual_loop.h"

namespace stag::rpc {
namespace {

using testing::FAIL;
using testing::FAIL_ONCE;
using testing::Failing;

class FailingHandler : public ::testing::Test {
 protected:
  FailingHandler() { server.add(testing::failing_program(executed)); }
  template <xdr::Procedure P>
  CallResult<std::uint32_t> call(Failing how) {
    return *loop.run(client.call<P>(static_cast<std::uint32_t>(how)));
  }
  static std::uint64_t traced() {
    return reason_counters().of(Reason::RpcHandlerFailed) +
           reason_counters().of(Reason::OutOfMemory);
  }
  template <xdr::Procedure P>
  void expect_system_error(Failing how) {
    const std::uint64_t before = traced();
    const CallResult<std::uint32_t> result = call<P>(how);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind, CallError::Kind::Answered);
    EXPECT_EQ(result.error().status, oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::SYSTEM_ERR));
    EXPECT_EQ(traced(), before + 1);
  }

  testing::ManualLoop loop;
  std::uint32_t executed = 0;
  Server server;
  testing::DirectChannel channel{loop, server};
  Client client{channel, testing::kFailingBinding};
};

TEST_F(FailingHandler, is_answered_with_SYSTEM_ERR_whenever_and_whatever_it_throws) {
  for (std::uint32_t how = 1; how < static_cast<std::uint32_t>(Failing::Count); ++how) {
    expect_system_error<FAIL>(static_cast<Failing>(how));
    EXPECT_EQ(executed, how) << "the client does not ask again by itself";
  }
  EXPECT_TRUE(call<FAIL>(Failing::Not).ok());
  EXPECT_EQ(server.active_calls(), 0u);
}

TEST_F(FailingHandler, leaves_no_call_in_progress_when_it_must_not_run_twice) {
  for (std::uint32_t how = 1; how < static_cast<std::uint32_t>(Failing::Count); ++how)
    expect_system_error<FAIL_ONCE>(static_cast<Failing>(how));
  EXPECT_TRUE(call<FAIL_ONCE>(Failing::Not).ok());
  EXPECT_EQ(server.active_calls(), 0u);
}

Task<std::optional<OutgoingReply>> serve(Server& server, IncomingCall call) {
  std::optional<OutgoingReply> reply = co_await server.serve(call);
  co_return reply;
}

// The server does not know how much of it was done.
TEST_F(FailingHandler, is_not_run_again_for_a_duplicate_which_gets_the_same_answer) {
  static_cast<void>(call<FAIL_ONCE>(Failing::AtOnce));
  const auto origin = std::make_shared<Origin>();
  origin->peer = {"192.0.2.7", 700};
  origin->loop = &loop;
  IncomingCall duplicate;
  duplicate.origin = origin;
  duplicate.payload = channel.last_call.rope().flatten();
  const std::optional<OutgoingReply> reply = *loop.run(serve(server, duplicate));
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->stream.rope(), channel.last_reply.rope());
  EXPECT_EQ(executed, 1u);
}

Task<> serve_into(Server& server, IncomingCall call, std::optional<OutgoingReply>& reply) {
  reply = co_await server.serve(call);
}

TEST_F(FailingHandler, answers_a_duplicate_that_waits_for_it) {
  const auto origin = std::make_shared<Origin>();
  origin->loop = &loop;
  oncrpc::CallHeader header;
  header.xid = 5;
  header.program = testing::kFailingProgram;
  header.version = 1;
  header.procedure = FAIL_ONCE::number;
  xdr::Encoder encoder;
  oncrpc::encode(encoder, header);
  encoder.u32(static_cast<std::uint32_t>(Failing::Later));
  IncomingCall incoming;
  incoming.origin = origin;
  incoming.payload = std::move(encoder).finish().rope().flatten();
  std::optional<OutgoingReply> first, second;
  detach(serve_into(server, incoming, first));
  detach(serve_into(server, incoming, second));
  loop.drain();
  EXPECT_TRUE(first.has_value());
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(first->stream.rope(), second->stream.rope());
  EXPECT_EQ(executed, 1u);
}

}  // namespace
}  // namespace stag::rpc
