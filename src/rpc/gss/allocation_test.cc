// Memory: a Call in steady state takes nothing from the heap for its security, and where there is
// none a Call fails, not the server.
#include <gtest/gtest.h>

#include "testing/failing_new.h"
#include "testing/gss_world.h"

namespace stag::rpc {
namespace {

using testing::GssWorld;
using testing::RawGssClient;
using testing::store::INCREMENT;
using testing::store::kBinding;

Task<> call_often(Client& client, std::uint32_t times, std::uint32_t& good) {
  for (std::uint32_t i = 0; i < times; ++i) {
    auto one = co_await client.call<INCREMENT>(i);
    if (one.ok() && *one == i + 1) ++good;
  }
}

// What the mechanism itself allocates is not counted: this one allocates nothing.
TEST(GssAllocation, is_none_in_steady_state_with_service_none) {
  GssWorld world;
  std::uint32_t good = 0;
  detach(call_often(world.client, 10, good));
  world.loop.drain();
  ASSERT_EQ(good, 10u);
  constexpr std::size_t kMany = 1'000'000;
  testing::allocations_until_failure = kMany;
  detach(call_often(world.client, 1000, good));
  EXPECT_EQ(kMany - testing::allocations_until_failure, 0u);
  testing::allocations_until_failure = 0;
  EXPECT_EQ(good, 1010u);
}

// The n-th allocation of a Call fails, for every n. `check` is called with the header of each
// Reply.
template <class Make, class Check>
void fail_each_allocation(GssWorld& world, Make make, Check check) {
  for (std::size_t n = 1, answered = 0; answered < 2 && n < 200; ++n) {
    IncomingCall call = make();
    std::optional<std::optional<OutgoingReply>> reply;
    testing::allocations_until_failure = n;
    try {
      reply = world.loop.run(world.server.serve(call));
    } catch (const std::bad_alloc&) {
    }
    if (testing::allocations_until_failure != 0) ++answered;  // none has failed any more
    testing::allocations_until_failure = 0;
    world.loop.drain();
    EXPECT_EQ(world.server.active_calls(), 0u);
    EXPECT_LT(n, 199u);
    if (!reply || !*reply) continue;
    const Buffer bytes = (**reply).stream.rope().flatten();
    xdr::Decoder decoder(bytes);
    check(*oncrpc::decode_reply(decoder));
  }
}

TEST(GssAllocation, that_fails_costs_the_Call) {
  for (const gss::Service service :
       {gss::Service::none, gss::Service::integrity, gss::Service::privacy}) {
    GssWorld world;
    RawGssClient client(world);
    const auto make_init = [&] {
      const auto context = *testing::FakeInitiator(world.realm).begin();
      const gss::Step step = context->step({});
      gss::Credential init;
      init.procedure = gss::Procedure::INIT;
      const Buffer arguments = gss::encode_init_arg(step.token.bytes()).rope().flatten();
      return client.incoming(client.head(init, 0), {}, arguments.bytes());
    };
    fail_each_allocation(world, make_init, [](const oncrpc::ReplyHeader& header) {
      EXPECT_TRUE(header.status.success() ||
                  header.verifier.flavor == oncrpc::AuthFlavor::RPCSEC_GSS);
    });
    EXPECT_EQ(world.authenticator->contexts().half_open(), 0u) << "nothing is left of them";
    const auto context = client.establish();
    std::uint32_t seq_num = 0;
    const auto make_data = [&] {
      xdr::Encoder plain;
      plain.u32(1);
      const xdr::Stream arguments = std::move(plain).finish();
      const auto sealed = service == gss::Service::none
                              ? Result<xdr::Stream, gss::Major>(arguments)
                              : gss::protect(*context, service, seq_num + 1, arguments);
      const auto start = client.head(client.data(++seq_num, service), INCREMENT::number);
      const Bytes message = start;
      gss::Mic mic;
      EXPECT_EQ(context->get_mic(gss::Pieces(&message, 1), mic), gss::Major::COMPLETE);
      return client.incoming(start, {oncrpc::AuthFlavor::RPCSEC_GSS, mic.bytes()},
                             sealed->rope().flatten().bytes());
    };
    // The client believes no other, and takes it that its Call has failed.
    fail_each_allocation(world, make_data, [&](const oncrpc::ReplyHeader& header) {
      std::array<std::byte, 4> word;
      store_be(word.data(), seq_num);
      const Bytes message = word;
      EXPECT_EQ(context->verify_mic(gss::Pieces(&message, 1), header.verifier.body),
                gss::Major::COMPLETE);
    });
  }
}

// Nothing of a Call that could not be judged is known: its client repeats it.
TEST(GssAllocation, that_fails_while_a_Call_is_judged_leaves_its_number_unused) {
  GssServerOptions options;
  options.ids = [](Loop&, const std::string&, const void*) {
    UserIds many;
    for (std::uint32_t gid = 0; gid < 100; ++gid) many.gids.push_back(gid);
    return Result<UserIds, NoUserIds>(many);
  };
  GssWorld world(gss::Service::none, std::move(options));
  RawGssClient client(world);
  const auto context = client.establish();
  const std::array<std::byte, 4> one{};
  IncomingCall call = client.signed_call(client.data(1), *context, one, INCREMENT::number);
  std::size_t failed = 0;
  for (std::size_t n = 1;; ++n) {
    ASSERT_LT(n, 100u);
    Authentication who;
    xdr::Decoder decoder(call.payload);
    const auto header = oncrpc::decode_call(decoder);
    testing::allocations_until_failure = n;
    try {
      EXPECT_TRUE(world.authenticator->authenticate_at_once(*header, call, who));
    } catch (const std::bad_alloc&) {
      ++failed;
      continue;
    }
    testing::allocations_until_failure = 0;
    EXPECT_EQ(who.verdict, Authentication::Verdict::Accepted) << n;
    break;
  }
  EXPECT_GT(failed, 0u);
}

}  // namespace
}  // namespace stag::rpc
