// What a Server tells of the Calls that it serves.
#include "rpc/observer.h"

#include <gtest/gtest.h>

#include <vector>

#include "rpc/client.h"
#include "rpc/server.h"
#include "testing/direct_channel.h"
#include "testing/failing_program.h"
#include "testing/manual_loop.h"
#include "testing/toy_security.h"

namespace stag::rpc {
namespace {

using testing::FAIL;
using testing::FAIL_ONCE;
using testing::Failing;

struct Told {
  std::optional<std::uint32_t> procedure{};
  Duration took{};
  bool answered = false;
  oncrpc::ReplyStatus status{};
  std::optional<std::uint32_t> first_result{};
  std::vector<std::byte> results{};
  std::uint64_t reply_bytes = 0;
  Buffer plain_arguments{};
  std::optional<WorkerTime> worker_time{};
};

class Recorder final : public Observer {
 public:
  explicit Recorder(testing::ManualLoop& on) : loop(on) {}
  void follow(bool wanted) { trace_calls(wanted); }
  void on_connected(const Origin&) noexcept override {}
  void on_disconnected(const Origin&, Reason) noexcept override {}
  void on_call_arrived(const Origin&, const ArrivedCall&) noexcept override {}
  void on_reply_sent(const Origin&, const SentReply&) noexcept override {}
  void on_call_begun(const BegunCall& call) noexcept override {
    begun.push_back(call.header.procedure);
  }
  void on_call_ended(const EndedCall& call) noexcept override {
    Told one{.answered = call.answered,
             .status = call.status,
             .first_result = call.first_result,
             .results = {call.results.begin(), call.results.end()},
             .reply_bytes = call.reply_bytes,
             .plain_arguments = call.plain_arguments,
             .worker_time = call.worker_time};
    if (call.header) one.procedure = call.header->procedure;
    one.took = loop.now() - call.began;
    told.push_back(one);
  }

  testing::ManualLoop& loop;
  std::vector<std::uint32_t> begun;
  std::vector<Told> told;
};

// Its handler has some jobs done by workers, if an observer wants to know of them.
struct HAVE_DONE : testing::store::INCREMENT {
  static constexpr std::uint32_t program = 0x20000089, version = 1, number = 1;
};

Task<std::optional<OutgoingReply>> serve_copy(Server& server, IncomingCall call) {
  std::optional<OutgoingReply> reply = co_await server.serve(call);
  co_return reply;
}

class Observed : public ::testing::Test {
 protected:
  Observed() {
    server.add(testing::failing_program(executed));
    server.add<HAVE_DONE>([](CallContext& context, std::uint32_t jobs) -> Task<std::uint32_t> {
      WorkerTime* const time = context.worker_time();
      if (time != nullptr) time->jobs += jobs;
      co_return time == nullptr ? 0 : jobs;
    });
    server.observe(recorder);
  }
  template <xdr::Procedure P>
  void call(Failing how) {
    static_cast<void>(*loop.run(client.call<P>(static_cast<std::uint32_t>(how))));
  }
  void send(std::initializer_list<std::uint32_t> words) {
    xdr::Encoder encoder;
    for (const std::uint32_t word : words) encoder.u32(word);
    auto origin = std::make_shared<Origin>();
    origin->loop = &loop;
    IncomingCall incoming;
    incoming.origin = origin;
    incoming.payload = std::move(encoder).finish().rope().flatten();
    static_cast<void>(*loop.run(serve_copy(server, std::move(incoming))));
  }
  const Told& only() const {
    EXPECT_EQ(recorder.told.size(), 1u);
    return recorder.told.front();
  }

  testing::ManualLoop loop;
  Recorder recorder{loop};
  std::uint32_t executed = 0;
  Server server;
  testing::DirectChannel channel{loop, server};
  Client client{channel, testing::kFailingBinding};
};

TEST_F(Observed, call_is_told_with_its_header_and_the_first_word_of_its_results) {
  call<FAIL>(Failing::Not);
  EXPECT_EQ(recorder.begun, std::vector{FAIL::number});
  EXPECT_EQ(only().procedure, FAIL::number);
  EXPECT_TRUE(only().answered && only().status.success());
  EXPECT_EQ(only().first_result, static_cast<std::uint32_t>(Failing::Not));
  EXPECT_EQ(only().results.size(), 4u);
  EXPECT_EQ(only().reply_bytes, channel.last_reply.size());
}

TEST_F(Observed, call_that_must_run_once_has_the_results_that_were_kept) {
  call<FAIL_ONCE>(Failing::Not);
  EXPECT_EQ(only().first_result, static_cast<std::uint32_t>(Failing::Not));
}

TEST_F(Observed, call_whose_arguments_were_transformed_is_told_with_what_was_unwrapped) {
  server.add(std::make_unique<testing::ToyAuthenticator>(/*seals=*/true));
  const auto security = std::make_shared<testing::ToySecurity>("alice", /*seals=*/true);
  Client secured(channel, testing::kFailingBinding, Credentials::secured(security));
  static_cast<void>(*loop.run(secured.call<FAIL>(static_cast<std::uint32_t>(Failing::Not))));
  ASSERT_EQ(recorder.told.size(), 2u) << "its context was set up first";
  const Buffer& plain = recorder.told.back().plain_arguments;
  ASSERT_EQ(plain.size(), 4u);
  EXPECT_EQ(load_be<std::uint32_t>(plain.data()), static_cast<std::uint32_t>(Failing::Not));
  EXPECT_EQ(recorder.told.back().results.size(), 4u) << "as they were before they were sealed";
}

TEST_F(Observed, call_that_is_followed_is_told_with_what_workers_did_for_it) {
  recorder.follow(true);
  EXPECT_EQ(**loop.run(client.call<HAVE_DONE>(3u)), 3u);
  ASSERT_TRUE(only().worker_time.has_value());
  EXPECT_EQ(only().worker_time->jobs, 3u);
}

TEST_F(Observed, call_that_nobody_follows_has_no_times) {
  EXPECT_EQ(**loop.run(client.call<HAVE_DONE>(3u)), 0u);
  EXPECT_FALSE(only().worker_time.has_value());
}

TEST_F(Observed, call_that_failed_has_the_status_of_its_reply) {
  call<FAIL>(Failing::Later);
  EXPECT_EQ(only().status, oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::SYSTEM_ERR));
  EXPECT_EQ(only().procedure, FAIL::number);
  EXPECT_FALSE(only().first_result);
}

TEST_F(Observed, call_with_a_credential_that_is_refused_is_told_with_the_reason) {
  send({7, 0, 2, testing::kFailingProgram, 1, FAIL::number, 99, 0, 0, 0});
  EXPECT_EQ(only().status, oncrpc::ReplyStatus::auth_error(oncrpc::AuthStat::AUTH_REJECTEDCRED));
  EXPECT_EQ(recorder.begun, std::vector{FAIL::number});
}

TEST_F(Observed, call_of_a_procedure_that_is_not_there_is_told_all_the_same) {
  send({7, 0, 2, testing::kFailingProgram, 1, 77, 0, 0, 0, 0});
  EXPECT_EQ(only().procedure, 77u);
  EXPECT_EQ(only().status.accept, oncrpc::AcceptStat::PROC_UNAVAIL);
  EXPECT_EQ(recorder.begun, std::vector{77u});
}

TEST_F(Observed, message_that_is_no_call_is_told_without_a_header_or_an_answer) {
  send({7, 0});
  EXPECT_FALSE(only().procedure);
  EXPECT_FALSE(only().answered);
  EXPECT_TRUE(recorder.begun.empty());
}

}  // namespace
}  // namespace stag::rpc
