// The XIDs of a server's Calls to its client: the client's replay cache knows Calls by them.
#include <gtest/gtest.h>

#include "fabric/sim/sim_fabric.h"
#include "rpc/client.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "testing/store_service.h"

namespace stag::rpc::rdma {
namespace {

namespace store = testing::store;

struct AddBack : store::INCREMENT {
  static constexpr std::uint32_t program = 0x2000007b;
};

Task<std::uint32_t> add_at_client(CallContext& call, std::uint32_t value) {
  const std::shared_ptr<rpc::Channel> back = call.reverse_channel();
  Client client(*back, store::kBinding);
  const auto sum = co_await client.call<store::ADD_ONCE>(value);
  co_return sum.ok() ? *sum : 0;
}

template <class T>
Task<bool> closing(T& object) {
  co_await object.close();
  co_return true;
}

class ReverseXids : public ::testing::Test {
 protected:
  ReverseXids() { reverse.add(store::make_program(state)); }
  // A client on a connection of its own that executes ADD_ONCE for the server, five by five.
  std::uint32_t add_five(const Address& at) {
    ChannelOptions options;
    options.seed = 7;
    options.probe_after = Duration::zero();
    Channel channel(network, at, options);
    channel.serve_reverse(reverse);
    Client client(channel, store::kBinding);
    const auto result = loop.run(client.call<AddBack>(5u));
    loop.run(closing(channel));
    return result.ok() ? *result : 0;
  }

  fabric::SimLoop loop;
  fabric::SimFabric network{loop};
  rpc::Server reverse;
  store::State state;
};

// Each start has random numbers of its own: the same XID again is a matter of one in 2^32.
TEST_F(ReverseXids, are_others_on_the_next_connection_and_after_a_restart) {
  for (std::uint32_t start = 0; start < 2; ++start) {
    rpc::Server programs;
    programs.add<AddBack>(add_at_client);
    Server server(programs);
    const Address at = *server.listen(network, {"server", 20049});
    EXPECT_EQ(add_five(at), 10 * start + 5);
    EXPECT_EQ(add_five(at), 10 * start + 10) << "on another connection";
    loop.run(closing(server));
  }
  EXPECT_EQ(state.executed, 4u);
}

}  // namespace
}  // namespace stag::rpc::rdma
