// How calls end before their time: cancelled, or their connection killed, at every step they take.
#include <gtest/gtest.h>

#include "fabric/sim/sim_fabric.h"
#include "rpc/client.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "testing/blob_program.h"
#include "testing/proves.h"

namespace stag::rpc::rdma {
namespace {

using namespace stag::testing;

constexpr std::uint32_t kLarge = 300000;

template <class T>
Task<bool> closing(T& object) {
  co_await object.close();
  co_return true;
}

// One client, one server, one seed.
struct World {
  explicit World(fabric::SimOptions sim) : loop(sim.seed), network(loop, sim) {
    program_server.add(blob_program());
    address = *server.listen(network, {"server", 20049});
    ChannelOptions options;
    options.seed = sim.seed;
    channel.emplace(network, address, options);
  }
  ~World() {
    loop.run(closing(*channel));
    loop.run(closing(server));
  }
  Client client() { return Client(*channel, kBlobBinding); }

  fabric::SimLoop loop;
  fabric::SimFabric network;
  rpc::Server program_server;
  Server server{program_server};
  Address address;
  std::optional<Channel> channel;
};

enum class Form { Write, Read, LongCall, LongReply };

template <class P>
Task<void> make(Client client, typename P::Args args, CancelToken cancel, std::optional<bool>& good,
                std::optional<Reason>& failure) {
  CallOptions options;
  options.cancel = cancel;
  auto result = co_await client.call<P>(args, options);
  if (!result) {
    failure = result.error().reason;
    good = false;
  } else if constexpr (std::is_same_v<typename P::Results, Stored>) {
    good = result->intact;
  } else {
    good = result->data == pattern(args.seed, args.length);
  }
}

Task<void> call_of(Form form, Client client, std::uint32_t seed, CancelToken cancel,
                   std::optional<bool>& good, std::optional<Reason>& failure) {
  switch (form) {
    case Form::Write:
      return make<Store>(client, {seed, pattern(seed, kLarge)}, cancel, good, failure);
    case Form::Read:
      return make<Fetch>(client, {seed, kLarge}, cancel, good, failure);
    case Form::LongCall:
      return make<StoreWhole>(client, {seed, pattern(seed, kLarge)}, cancel, good, failure);
    case Form::LongReply:
      return make<FetchWhole>(client, {seed, kLarge}, cancel, good, failure);
  }
  return make<Fetch>(client, {seed, 0}, cancel, good, failure);
}

class Ending : public ::testing::TestWithParam<Form> {};

// The call is cancelled after its nth step. Its memory is freed at once, so a byte placed or
// fetched later is found by the address sanitizer; another call on the same connection still
// completes.
bool cancel_after(Form form, std::uint64_t step, std::uint32_t slow_revocations) {
  fabric::SimOptions sim;
  sim.seed = step + 1;
  sim.faults.pending_revocation_permille = slow_revocations;
  World world(sim);
  EXPECT_TRUE(world.loop.run(world.client().ping(kBlobProgram, 1)).ok());
  CancelSource source;
  std::optional<bool> good, next_good;
  std::optional<Reason> failure, next_failure;
  const std::uint64_t begun = world.network.steps();
  detach(call_of(form, world.client(), 1, source, good, failure));
  world.loop.run_until([&] { return good.has_value() || world.network.steps() >= begun + step; });
  const bool in_time = !good.has_value();
  source.cancel();
  EXPECT_TRUE(world.loop.run_until([&] { return good.has_value(); })) << "step " << step;
  // The Reply may have been there already, only its memory not yet free.
  if (in_time && good == false) {
    EXPECT_EQ(failure, Reason::Cancelled) << "step " << step;
  }
  detach(call_of(form, world.client(), 2, {}, next_good, next_failure));
  EXPECT_TRUE(world.loop.run_until([&] { return next_good.has_value(); })) << "step " << step;
  EXPECT_EQ(next_good, true) << "step " << step;
  EXPECT_EQ(world.network.open_connections(), 2u) << "the connection is kept, step " << step;
  return in_time;
}

TEST_P(Ending, leaves_the_connection_to_other_calls_when_a_call_is_cancelled_at_any_step) {
  for (std::uint64_t step = 0; cancel_after(GetParam(), step, 0); ++step) ASSERT_LT(step, 200u);
  for (std::uint64_t step = 0; cancel_after(GetParam(), step, 500); ++step) ASSERT_LT(step, 200u);
}

bool kill_at(Form form, std::uint64_t step) {
  fabric::SimOptions sim;
  sim.seed = step;
  sim.faults.kill_at_step = step;
  World world(sim);
  std::optional<bool> good[3];
  std::optional<Reason> failure[3];
  for (std::uint32_t i = 0; i < 3; ++i)
    detach(call_of(form, world.client(), i, {}, good[i], failure[i]));
  EXPECT_TRUE(world.loop.run_until([&] { return good[0] && good[1] && good[2]; }))
      << "step " << step;
  for (std::uint32_t i = 0; i < 3; ++i)
    EXPECT_EQ(good[i], true) << "step " << step << ": "
                             << to_string(failure[i].value_or(Reason::None));
  return world.network.steps() >= step;
}

TEST_P(Ending, is_mended_by_the_next_connection_at_whatever_step_this_one_ends) {
  for (std::uint64_t step = 1; kill_at(GetParam(), step); ++step) ASSERT_LT(step, 400u);
}

std::string name_of(const ::testing::TestParamInfo<Form>& form) {
  static constexpr const char* kNames[] = {"Write", "Read", "LongCall", "LongReply"};
  return kNames[static_cast<int>(form.param)];
}
INSTANTIATE_TEST_SUITE_P(EveryForm, Ending,
                         ::testing::Values(Form::Write, Form::Read, Form::LongCall,
                                           Form::LongReply),
                         name_of);

}  // namespace
}  // namespace stag::rpc::rdma
