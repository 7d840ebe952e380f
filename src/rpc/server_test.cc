// A Server that ends: no further Call begins, and those in progress can be waited for.
#include "rpc/server.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "gss/credential.h"
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

// Says that its results are as long as its argument is large.
class AsAsked final : public Handler {
 public:
  Eventual<HandlerOutcome> run(CallContext&, xdr::Decoder&, const ReducedItems&,
                               xdr::Encoder&) override {
    return HandlerOutcome{};
  }
  std::optional<std::uint64_t> results_max(xdr::Decoder& arguments,
                                           const ProcedureBinding*) const override {
    std::uint32_t asked = 0;
    return arguments.u32(asked) ? asked : 0;
  }
};

class Unknown final : public Handler {
 public:
  Eventual<HandlerOutcome> run(CallContext&, xdr::Decoder&, const ReducedItems&,
                               xdr::Encoder&) override {
    return HandlerOutcome{};
  }
};

class ServerReplyMax : public ::testing::Test {
 protected:
  ServerReplyMax() {
    server_.add(std::move(Program(kProgram, 1)
                              .add(1, std::make_unique<AsAsked>())
                              .add(2, std::make_unique<Unknown>())));
  }
  static constexpr std::uint32_t kAsked = 1 << 20;

  std::optional<std::uint64_t> reply_max_of(gss::Service service,
                                            gss::Procedure procedure = gss::Procedure::DATA) {
    std::array<std::byte, gss::credential_size(0)> body;
    gss::encode_credential({.procedure = procedure, .seq_num = 7, .service = service, .handle = {}},
                           body);
    oncrpc::CallHeader header;
    header.program = kProgram;
    header.version = 1;
    header.procedure = 1;
    header.credential = {oncrpc::AuthFlavor::RPCSEC_GSS, Bytes(body)};
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header);
    if (service == gss::Service::integrity) {
      encoder.u32(8);
      encoder.u32(7);
    }
    if (service == gss::Service::privacy)
      encoder.u32(1000);  // of something that looks like nothing
    else
      encoder.u32(kAsked);
    return server_.reply_max(Origin{}, std::move(encoder).finish().rope().flatten());
  }

  Server server_;
};

TEST_F(ServerReplyMax, is_what_signed_arguments_ask_for) {
  EXPECT_EQ(reply_max_of(gss::Service::none), oncrpc::kReplyHeaderSize + kAsked);
  EXPECT_EQ(reply_max_of(gss::Service::integrity), oncrpc::kReplyHeaderSize + kAsked);
}

TEST_F(ServerReplyMax, is_unknown_where_arguments_are_encrypted_except_when_a_context_is_made) {
  EXPECT_EQ(reply_max_of(gss::Service::privacy), std::nullopt);
  EXPECT_EQ(reply_max_of(gss::Service::privacy, gss::Procedure::INIT), 0u);
}

// As those of the C API, which are as long as its program makes them.
TEST_F(ServerReplyMax, is_unknown_where_the_handler_does_not_know) {
  const auto reply_to = [&](std::uint32_t procedure) {
    oncrpc::CallHeader header;
    header.program = kProgram;
    header.version = 1;
    header.procedure = procedure;
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header);
    return server_.reply_max(Origin{}, std::move(encoder).finish().rope().flatten());
  };
  EXPECT_EQ(reply_to(2), std::nullopt);
  EXPECT_EQ(reply_to(0), oncrpc::kReplyHeaderSize) << "NULL has none";
  EXPECT_EQ(reply_to(3), 0u) << "there is no such procedure";
}

}  // namespace
}  // namespace stag::rpc
