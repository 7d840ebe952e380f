// A Server that ends: no further Call begins, and those in progress can be waited for.
#include "rpc/server.h"

#include <gtest/gtest.h>

#include "oncrpc/message.h"
#include "testing/manual_loop.h"

namespace stag::rpc {
namespace {

constexpr std::uint32_t kProgram = 0x20000003;

class ServerEnd : public ::testing::Test {
 protected:
  ServerEnd() { server_.add(Program(kProgram, 1)); }

  // Whether NULL is answered.
  bool answers() {
    auto origin = std::make_shared<Origin>();
    origin->loop = &loop_;
    oncrpc::CallHeader header;
    header.program = kProgram;
    header.version = 1;
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header);
    IncomingCall call;
    call.origin = origin;
    call.payload = std::move(encoder).finish().rope().flatten();
    bool answered = false;
    detach(ask(call, answered));
    return answered;
  }
  Task<> ask(IncomingCall& call, bool& answered) {
    const auto reply = co_await server_.serve(call);
    answered = reply.has_value();
  }

  testing::ManualLoop loop_;
  Server server_;
};

TEST_F(ServerEnd, leaves_calls_without_an_answer_once_it_has_stopped_serving) {
  EXPECT_TRUE(answers());
  server_.stop_serving();
  EXPECT_FALSE(answers());
  EXPECT_EQ(server_.active_calls(), 0u);
}

}  // namespace
}  // namespace stag::rpc
