// RPCSEC_GSS with Kerberos itself, over TCP and over RPC-over-RDMA, with a real KDC
// (testing/kdc.h).
#include <gtest/gtest.h>

#include "fabric/sim/sim_fabric.h"
#include "gss/krb5/krb5.h"
#include "net/loop.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/server.h"
#include "rpc/tcp/channel.h"
#include "rpc/tcp/server.h"
#include "testing/gss_world.h"
#include "testing/kdc.h"

namespace stag::rpc {
namespace {

namespace store = testing::store;
using testing::GssServerWorld;
using testing::Kdc;
using testing::WhoCalls;

class Kerberos : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (Kdc::available()) kdc = new Kdc;
  }
  static void TearDownTestSuite() { delete std::exchange(kdc, nullptr); }
  void SetUp() override {
    if (kdc == nullptr) GTEST_SKIP() << "krb5-kdc, krb5-admin-server or krb5-user is not installed";
  }
  static GssServerOptions server_options() {
    GssServerOptions options;
    options.acceptor = *gss::krb5::acceptor({.keytab = kdc->server_keytab()});
    return options;
  }
  static std::shared_ptr<ClientSecurity> security(gss::Service service,
                                                  const std::string& host = Kdc::kHost) {
    gss::krb5::InitiatorOptions options;
    options.host = host;
    options.client_keytab = kdc->client_keytab();
    GssClientOptions client;
    client.initiator = *gss::krb5::initiator(options);
    client.service = service;
    return rpcsec_gss(std::move(client));
  }
  static Task<> use(GssServerWorld& world, Channel& channel, gss::Service service,
                    const std::string& flavor) {
    const auto safety = security(service);
    Client client(channel, store::kBinding, Credentials::secured(safety));
    const auto who = co_await client.call<WhoCalls>(std::string());
    EXPECT_TRUE(who.ok()) << who.error().message();
    if (!who.ok()) co_return;
    EXPECT_EQ(*who, "alice@EXAMPLE.ORG " + flavor + " 65534 0");
    const Rope data = store::pattern(300'001, 7);
    const store::PutArgs put{.slot = 1, .data = data, .checksum = store::checksum(data)};
    const auto stored = co_await client.call<store::PUT>(put);
    EXPECT_TRUE(stored.ok() && stored->checksum == put.checksum);
    const store::GetArgs get{.slot = 1, .count = 300'001};
    const auto got = co_await client.call<store::GET>(get);
    EXPECT_TRUE(got.ok() && got->data == data);
    EXPECT_EQ(world.authenticator->contexts().established(), 1u);
    co_await safety->end(channel);
    EXPECT_EQ(world.authenticator->contexts().established(), 0u);
  }
  static Task<> use_each(GssServerWorld& world, Channel& channel) {
    co_await use(world, channel, gss::Service::none, "390003");
    co_await use(world, channel, gss::Service::integrity, "390004");
    co_await use(world, channel, gss::Service::privacy, "390005");
  }
  static Task<> over_tcp(net::EpollLoop& loop, GssServerWorld& world) {
    auto server = tcp::TcpServer::listen(loop, {"127.0.0.1", 0}, world.server);
    tcp::TcpChannel channel(loop, (*server)->local(), {});
    co_await use_each(world, channel);
    co_await channel.close();
    co_await (*server)->close();
    loop.stop();
  }
  static Task<bool> over_rdma(fabric::SimLoop& loop, GssServerWorld& world) {
    fabric::SimFabric network{loop};
    rdma::Server server{world.server};
    const Address at = *server.listen(network, {"server", 20049});
    rdma::Channel channel(network, at, {});
    co_await use_each(world, channel);
    co_await channel.close();
    co_await server.close();
    co_return true;
  }

  static inline Kdc* kdc = nullptr;
};

TEST_F(Kerberos, protects_calls_over_TCP) {
  GssServerWorld world(server_options());
  net::EpollLoop loop;
  loop.post([&] { detach(over_tcp(loop, world)); });
  loop.run();
}

TEST_F(Kerberos, protects_calls_over_RDMA) {
  GssServerWorld world(server_options());
  fabric::SimLoop loop;
  EXPECT_TRUE(loop.run(over_rdma(loop, world)));
}

TEST_F(Kerberos, explains_to_the_caller_why_there_is_no_context) {
  testing::GssWorld world(gss::Service::none, server_options());
  kdc->kadmin("addprinc -randkey nfs/stranger.example.org");
  const auto call = [&world](const std::string& host) {
    Client client(world.channel, store::kBinding,
                  Credentials::secured(security(gss::Service::none, host)));
    return *world.loop.run(client.call<store::INCREMENT>(1u));
  };
  EXPECT_TRUE(call(Kdc::kHost).ok());
  EXPECT_EQ(call("nobody.example.org").error().reason, Reason::GssServerUnknown);
  EXPECT_EQ(call("stranger.example.org").error().reason, Reason::GssServerKeyWrong)
      << "a ticket for another server than the one that it was shown to";
}

}  // namespace
}  // namespace stag::rpc
