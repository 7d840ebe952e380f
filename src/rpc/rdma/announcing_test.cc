// What either end announces of remote invalidation on fabric/verbs, which knows what a connection's
// device can do when it has found the device (RFC 8797 section 4.1).
#include <gtest/gtest.h>

#include "rpc/client.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/server.h"
#include "testing/blob_program.h"
#include "testing/proves.h"
#include "testing/recording_fabric.h"
#include "testing/two_devices.h"

namespace stag::rpc::rdma {
namespace {

using namespace stag::testing;

// Of InfiniBand, without memory windows: what is exposed cannot be invalidated.
fabric::stub::StubOptions windowless() {
  fabric::stub::StubOptions device = fabric::stub::rxe_like();
  device.attributes.device_cap_flags = 0;
  device.attributes.max_mw = device.attributes.max_srq = device.attributes.max_srq_wr = 0;
  return device;
}

// The first device has windows, the second one has none.
struct Announcing : ::testing::Test {
  Announcing() { program_server.add(blob_program()); }
  void start(const std::string& clients_device, bool open_regions = false) {
    devices = std::make_unique<TwoDevices>(clients_device, fabric::stub::rxe_like(), windowless(),
                                           open_regions);
    server_side.emplace(devices->any(), record);
    server = std::make_unique<Server>(program_server);
    port = server->listen(*server_side, {"", 0})->port;
  }
  void connect(const std::string& host) {
    ChannelOptions options;
    options.seed = 7;
    channel = std::make_unique<Channel>(devices->fabric(), Address{host, port}, options);
    ASSERT_TRUE(devices->run(channel->connect({}))->ok());
  }
  void TearDown() override {
    if (channel) devices->run(closing(*channel));
    if (server) devices->run(closing(*server));
    channel.reset();
    server.reset();
    devices.reset();
  }
  template <class T>
  static Task<bool> closing(T& object) {
    co_await object.close();
    co_return true;
  }
  // Replies that have invalidated a handle.
  std::size_t invalidating() const {
    std::size_t count = 0;
    for (const Recorded& entry : record.log())
      count += entry.act == Act::Send && entry.invalidate.has_value();
    return count;
  }

  Record record;
  std::unique_ptr<TwoDevices> devices;
  std::optional<RecordingFabric> server_side;
  rpc::Server program_server;
  std::unique_ptr<Server> server;
  std::unique_ptr<Channel> channel;
  std::uint16_t port = 0;
};

// Remembers what it was asked with, and turns it down.
struct Listening final : fabric::Acceptor {
  Result<fabric::ConnectOptions, Reason> on_connect_request(
      const fabric::ConnectRequest& request) override {
    asked = rpcrdma::decode_private_data(request.private_data);
    return Failure{Reason::Shutdown};
  }
  void on_connection(std::unique_ptr<fabric::Connection>) override {}
  std::optional<rpcrdma::PrivateData> asked;
};

TEST_F(Announcing, says_as_a_client_what_the_device_of_the_connection_can_do) {
  PROVES("R8797-3.2-d");
  struct Case {
    const char* device;
    bool open_regions, expected;
  };
  for (const Case& each :
       {Case{"first", false, true}, Case{"second", false, false}, Case{"first", true, false}}) {
    TwoDevices machine(each.device, fabric::stub::rxe_like(), windowless(), each.open_regions);
    Listening acceptor;
    const auto listener = machine.any().listen(machine.any_address(), {}, acceptor);
    ASSERT_TRUE(listener.ok());
    ChannelOptions options;
    options.reconnect_for = Duration::zero();
    Channel channel(machine.fabric(), (*listener)->local_address(), options);
    EXPECT_FALSE(machine.run(channel.connect({}))->ok());
    ASSERT_TRUE(acceptor.asked.has_value());
    EXPECT_EQ(acceptor.asked->remote_invalidation, each.expected) << each.device;
    machine.run(closing(channel));
  }
}

TEST_F(Announcing, says_as_a_server_what_the_device_of_each_connection_can_do) {
  PROVES("R8797-3.2-d");
  start("first");
  for (const std::string host : {"127.0.0.1", "127.0.0.2", "127.0.0.1"}) {
    const auto connection = devices->run(devices->any().connect({host, port}, {}, {}));
    ASSERT_TRUE(connection.has_value() && connection->ok());
    const auto said = rpcrdma::decode_private_data((**connection)->peer_private_data());
    ASSERT_TRUE(said.has_value());
    EXPECT_EQ(said->remote_invalidation, host == "127.0.0.1");
  }
}

TEST_F(Announcing, has_Replies_invalidate_only_between_devices_that_both_can) {
  PROVES("R8797-4.1-c", "R8797-3.2-c");
  for (const std::string of_client : {"first", "second"}) {
    start(of_client);
    for (const std::string to_server : {"127.0.0.1", "127.0.0.2"}) {
      record.clear();
      connect(to_server);
      Client client(*channel, kBlobBinding);
      const auto blob = devices->run(client.call<Fetch>({1, 100000}, {}));
      ASSERT_TRUE(blob.has_value() && blob->ok());
      EXPECT_EQ((*blob)->data, pattern(1, 100000));
      const bool both = of_client == "first" && to_server == "127.0.0.1";
      EXPECT_EQ(invalidating(), both ? 1u : 0u) << of_client << " to " << to_server;
      devices->run(closing(*channel));
      channel.reset();
    }
    devices->run(closing(*server));
    server.reset();
    devices.reset();
  }
}

}  // namespace
}  // namespace stag::rpc::rdma
