#include <gtest/gtest.h>

#include "net/loop.h"
#include "rpc/tcp/channel.h"
#include "rpc/tcp/server.h"
#include "rpcbind/lookup.h"
#include "rpcbind/registrar.h"
#include "testing/proves.h"
#include "testing/rpcbind_service.h"

namespace stag::rpcbind {
namespace {

using namespace std::chrono_literals;
using net::EpollLoop;
using testing::RpcbindService;

constexpr std::uint32_t kNfs = 100003;
constexpr std::uint32_t kMount = 100005;

TEST(UniversalAddress, is_the_host_and_the_two_bytes_of_the_port) {
  const struct {
    Address address;
    std::string_view text;
  } kCases[] = {
      {{"192.0.2.7", 52049}, "192.0.2.7.203.81"},  // RFC 5665 5.2.3.3
      {{"0.0.0.0", 20049}, "0.0.0.0.78.81"},
      {{"127.0.0.1", 255}, "127.0.0.1.0.255"},
      {{"::", 2049}, "::.8.1"},
      {{"::1", 65535}, "::1.255.255"},
      {{"2001:db8::8:800:200c:417a", 111}, "2001:db8::8:800:200c:417a.0.111"},
      {{"1:2:3:4:5:6:7:8", 256}, "1:2:3:4:5:6:7:8.1.0"},
      {{"::ffff:192.0.2.1", 1}, "::ffff:192.0.2.1.0.1"},
      {{"1:2:3:4:5:6:192.0.2.1", 1}, "1:2:3:4:5:6:192.0.2.1.0.1"},
      {{"fe80::", 1}, "fe80::.0.1"},
  };
  for (const auto& each : kCases) {
    EXPECT_EQ(to_universal(each.address), each.text);
    const auto back = from_universal(each.text);
    ASSERT_TRUE(back.has_value()) << each.text;
    EXPECT_EQ(*back, each.address);
  }
  EXPECT_EQ(to_universal({"", 2049}), "::.8.1");
  EXPECT_EQ(to_universal({"fe80::1%eth0", 2049}), "fe80::1.8.1");
}

TEST(UniversalAddress, is_refused_in_any_other_form) {
  for (const char* text : {"",
                           ".",
                           "8.1",
                           "127.0.0.1",
                           "127.0.0.8.1",
                           "127.0.0.1.256.1",
                           "127.0.0.1.1.256",
                           "127.0.0.1.-1.1",
                           "127.0.0.1.8.",
                           "127.0.0.1..1",
                           "127.0.0.1. 8.1",
                           "127.0.0.01.8.1",
                           "1.2.3.4.5.8.1",
                           "999.0.0.1.8.1",
                           "host.8.1",
                           "/run/socket",
                           "1:2:3:4:5:6:7.8.1",
                           "1:2:3:4:5:6:7:8:9.8.1",
                           "1::2::3.8.1",
                           ":::.8.1",
                           ":1.8.1",
                           "1:.8.1",
                           "::1:.8.1",
                           "12345::.8.1",
                           "::g.8.1",
                           "1.2.3.4::.8.1",
                           "1:2:3:4:5:6:7::8.8.1",
                           "::1%eth0.8.1",
                           "99999999999999999999.0.0.1.8.1",
                           "::ffff:1.2.3.8.1"})
    EXPECT_FALSE(from_universal(text).has_value()) << text;
}

TEST(Netids, have_a_6_at_their_end_for_IPv6) {
  PROVES("R8166-9-a", "R8166-9-b");
  EXPECT_EQ(netid(kRdma, false), "rdma");
  EXPECT_EQ(netid(kRdma, true), "rdma6");
  const std::vector<std::string> v4{"rdma", "rdma6"}, v6{"rdma6", "rdma"};
  EXPECT_EQ(netids_for(kRdma, "192.0.2.1"), v4);
  EXPECT_EQ(netids_for(kRdma, "server.example"), v4);
  EXPECT_EQ(netids_for(kRdma, "2001:db8::1"), v6);
}

// An rpcbind over loopback TCP, and a Channel to it.
struct World {
  explicit World(void (*versions)(RpcbindService&, rpc::Server&)) {
    versions(service, programs);
    server = *rpc::tcp::TcpServer::listen(loop, {"127.0.0.1", 0}, programs);
  }
  void run(Task<> (*test)(World&, rpc::Channel&)) {
    loop.post([this, test] { detach(whole(this, test)); });
    loop.run();
  }
  static Task<> whole(World* world, Task<> (*test)(World&, rpc::Channel&)) {
    rpc::tcp::TcpConnector connector(world->loop);
    auto channel = co_await connector.connect(world->server->local(), CancelToken());
    EXPECT_TRUE(channel.ok());
    co_await test(*world, **channel);
    co_await (*channel)->close();
    co_await world->server->close();
    world->loop.stop();
  }

  EpollLoop loop;
  RpcbindService service;
  rpc::Server programs;
  std::unique_ptr<rpc::tcp::TcpServer> server;
};

void version_4(RpcbindService& service, rpc::Server& server) {
  service.serve_version_4(server);
}

// Not in a braced list where they are awaited: the two do not go together in every compiler.
Question nfs_on(std::vector<std::string> netids) {
  return {kNfs, 3, std::move(netids)};
}
Question nfs_on(std::string netid, std::string other = "") {
  return {kNfs, 3, {std::move(netid), std::move(other)}};
}
Question mount_on(std::string netid, std::string other = "") {
  return {kMount, 3, {std::move(netid), std::move(other)}};
}

TEST(Lookup, finds_the_port_by_the_netid_of_RDMA) {
  PROVES("R8166-5-d");
  World world(version_4);
  world.service.put(kNfs, 3, "tcp", "0.0.0.0.8.1");
  world.service.put(kNfs, 4, "rdma", "0.0.0.0.1.1");
  world.service.put(kNfs, 3, "rdma", "0.0.0.0.48.57");
  world.service.put(kNfs, 3, "rdma6", "::.78.82");
  world.run([](World&, rpc::Channel& channel) -> Task<> {
    const auto rdma = co_await lookup(channel, nfs_on(netids_for(kRdma, "127.0.0.1")));
    EXPECT_TRUE(rdma.ok());
    EXPECT_EQ(rdma->port, 12345);
    EXPECT_EQ(rdma->netid, "rdma");
    const auto rdma6 = co_await lookup(channel, nfs_on(netids_for(kRdma, "::1")));
    EXPECT_EQ(rdma6->port, 20050);
    const auto tcp = co_await lookup(channel, nfs_on(netids_for(kTcp, "127.0.0.1")));
    EXPECT_EQ(tcp->port, 2049);
  });
}

TEST(Lookup, says_that_a_program_is_not_registered_for_the_netids_asked) {
  World world(version_4);
  world.service.put(kNfs, 3, "tcp", "0.0.0.0.8.1");
  world.service.put(kNfs, 4, "rdma", "0.0.0.0.78.81");
  world.run([](World&, rpc::Channel& channel) -> Task<> {
    const auto found = co_await lookup(channel, nfs_on("rdma", "rdma6"));
    EXPECT_FALSE(found.ok());
    EXPECT_EQ(found.error().reason, Reason::RpcProgramNotRegistered);
    EXPECT_NE(found.error().message().find("rpcbind knows no such program"), std::string::npos);
  });
}

TEST(Lookup, does_not_believe_an_address_that_is_none) {
  World world(version_4);
  world.service.put(kNfs, 3, "rdma", "0.0.0.0.777.1");
  world.service.put(kNfs, 3, "tcp", "0.0.0.0.0.0");
  world.run([](World&, rpc::Channel& channel) -> Task<> {
    for (const char* netid : {"rdma", "tcp"}) {
      const auto found = co_await lookup(channel, nfs_on(netid));
      EXPECT_FALSE(found.ok());
      EXPECT_EQ(found.error().reason, Reason::RpcbindAddressMalformed);
    }
  });
}

TEST(Lookup, asks_version_3_where_there_is_no_4) {
  World world(
      [](RpcbindService& service, rpc::Server& server) { service.serve_version_3(server); });
  world.service.put(kNfs, 3, "rdma", "0.0.0.0.78.81");
  world.run([](World&, rpc::Channel& channel) -> Task<> {
    const auto found = co_await lookup(channel, nfs_on("rdma"));
    EXPECT_TRUE(found.ok() && found->port == 20049);
  });
}

TEST(Lookup, asks_by_GETADDR_for_its_own_transport_where_there_is_no_list) {
  World world([](RpcbindService& service, rpc::Server& server) {
    service.serve_version_3(server, false);
    service.serve_version_2(server);
  });
  world.service.put(kMount, 3, "tcp", "0.0.0.0.3.255");
  world.service.put(kMount, 3, "rdma", "0.0.0.0.78.81");
  world.run([](World&, rpc::Channel& channel) -> Task<> {
    const auto tcp = co_await lookup(channel, mount_on("tcp", "tcp6"));
    EXPECT_TRUE(tcp.ok() && tcp->port == 1023);
    // The answer would be that of TCP.
    const auto rdma = co_await lookup(channel, mount_on("rdma", "rdma6"));
    EXPECT_FALSE(rdma.ok());
    EXPECT_EQ(rdma.error().reason, Reason::RpcProgramNotRegistered);
  });
}

TEST(Lookup, asks_a_port_mapper_of_version_2_for_TCP_and_UDP) {
  World world(
      [](RpcbindService& service, rpc::Server& server) { service.serve_version_2(server); });
  world.service.put(kMount, 3, "udp", "0.0.0.0.2.2");
  world.run([](World&, rpc::Channel& channel) -> Task<> {
    const auto udp = co_await lookup(channel, mount_on("udp6", "udp"));
    EXPECT_TRUE(udp.ok() && udp->port == 514 && udp->netid == "udp");
    const auto tcp = co_await lookup(channel, mount_on("tcp"));
    EXPECT_EQ(tcp.error().reason, Reason::RpcProgramNotRegistered);
  });
}

TEST(Lookup, ends_in_time_on_a_connection_of_its_own_where_nobody_answers) {
  EpollLoop loop;
  // It takes connections and says nothing.
  auto silent = net::TcpListener::listen(loop, {"127.0.0.1", 0});
  ASSERT_TRUE(silent.ok());
  const auto test = [](EpollLoop* on, std::uint16_t port) -> Task<> {
    rpc::tcp::TcpConnector connector(*on);
    Options options;
    options.port = port;
    options.timeout = 20ms;
    auto found = co_await lookup(connector, "127.0.0.1", nfs_on("tcp"), options);
    EXPECT_FALSE(found.ok());
    EXPECT_EQ(found.error().reason, Reason::TimedOut);
    CancelSource source;
    source.cancel();
    options.cancel = source;
    found = co_await lookup(connector, "127.0.0.1", nfs_on("tcp"), options);
    EXPECT_EQ(found.error().reason, Reason::Cancelled);
    on->stop();
  };
  loop.post([&] { detach(test(&loop, silent->local().port)); });
  loop.run();
}

std::vector<Registration> ours() {
  return {{kNfs, 3, "tcp", "0.0.0.0.8.1"},
          {kNfs, 3, "rdma", "0.0.0.0.78.81"},
          {kMount, 3, "tcp", "0.0.0.0.8.1"}};
}

const std::vector<Registration> kNothing;
const std::vector<std::string> kOurs{"100003 3 tcp 0.0.0.0.8.1", "100003 3 rdma 0.0.0.0.78.81",
                                     "100005 3 tcp 0.0.0.0.8.1"};

std::vector<std::string> one(const char* line) {
  return {line};
}

TEST(Registrar, registers_and_takes_back) {
  PROVES("R8166-5-c");
  World world(version_4);
  world.service.put(kNfs, 4, "tcp", "0.0.0.0.8.1");
  world.run([](World& w, rpc::Channel& channel) -> Task<> {
    Registrar registrar(channel);
    const auto done = co_await registrar.set(ours(), kNothing);
    EXPECT_TRUE(done.ok());
    std::vector<std::string> all = kOurs;
    all.insert(all.begin(), "100003 4 tcp 0.0.0.0.8.1");
    EXPECT_EQ(w.service.lines(), all);
    const auto found = co_await lookup(channel, nfs_on("rdma"));
    EXPECT_TRUE(found.ok() && found->port == 20049);
    const bool gone = co_await registrar.unset();
    EXPECT_TRUE(gone);
    EXPECT_EQ(w.service.lines(), one("100003 4 tcp 0.0.0.0.8.1"));
  });
}

TEST(Registrar, takes_any_netid) {
  PROVES("R8166-5-e");
  World world(version_4);
  world.run([](World&, rpc::Channel& channel) -> Task<> {
    Registrar registrar(channel);
    std::vector<Registration> wanted;
    wanted.push_back({kNfs, 3, "torus", "192.0.2.1.78.81"});
    const auto done = co_await registrar.set(wanted, kNothing);
    EXPECT_TRUE(done.ok());
    const auto found = co_await lookup(channel, nfs_on(netids_for("torus", "192.0.2.1")));
    EXPECT_TRUE(found.ok() && found->port == 20049 && found->netid == "torus");
  });
}

std::vector<Registration> left_behind() {
  return {{kNfs, 3, "rdma", "0.0.0.0.1.1"},
          {kNfs, 2, "udp", "0.0.0.0.1.2"},
          {100021, 4, "tcp", "0.0.0.0.9.9"}};
}

TEST(Registrar, clears_what_an_earlier_run_left_behind) {
  World world(version_4);
  world.service.put(kNfs, 3, "tcp", "0.0.0.0.8.1", "me");
  world.service.put(kNfs, 3, "rdma", "0.0.0.0.1.1", "me");
  world.service.put(kNfs, 2, "udp", "0.0.0.0.1.2", "me");
  world.service.put(100021, 4, "tcp", "0.0.0.0.1.3", "me");
  world.run([](World& w, rpc::Channel& channel) -> Task<> {
    Registrar registrar(channel);
    const auto done = co_await registrar.set(ours(), left_behind());
    EXPECT_TRUE(done.ok());
    std::vector<std::string> all = kOurs;
    all.insert(all.begin(), "100021 4 tcp 0.0.0.0.1.3");
    EXPECT_EQ(w.service.lines(), all) << "what another program registered stays";
  });
}

TEST(Registrar, leaves_another_server_alone_and_names_it) {
  World world(version_4);
  world.service.put(kMount, 3, "tcp", "0.0.0.0.3.9", "superuser");
  world.run([](World& w, rpc::Channel& channel) -> Task<> {
    Registrar registrar(channel);
    const auto done = co_await registrar.set(ours(), kNothing);
    EXPECT_FALSE(done.ok());
    EXPECT_EQ(done.error(),
              "program 100005 version 3 on tcp is registered with rpcbind already, at 0.0.0.0.3.9 "
              "by superuser; stop the server that did it");
    EXPECT_EQ(w.service.lines(), one("100005 3 tcp 0.0.0.0.3.9"));
  });
}

TEST(Registrar, takes_back_what_it_registered_when_one_is_refused) {
  World world(version_4);
  // The same address, so it counts as left behind; but UNSET does not take a stranger's.
  world.service.put(kMount, 3, "tcp", "0.0.0.0.8.1", "somebody");
  world.service.put(kMount, 3, "tcp", "0.0.0.0.8.2", "somebody");
  world.run([](World& w, rpc::Channel& channel) -> Task<> {
    Registrar registrar(channel);
    std::vector<Registration> wanted = ours();
    const std::vector<Registration> previous(1, wanted[2]);
    wanted[2].address = "0.0.0.0.8.2";
    const auto done = co_await registrar.set(std::move(wanted), previous);
    EXPECT_FALSE(done.ok());
    EXPECT_NE(done.error().find("refused to register program 100005 version 3 on tcp"),
              std::string::npos);
    EXPECT_EQ(w.service.lines().size(), 2u) << "only the stranger's";
  });
}

TEST(Registrations, are_kept_as_lines_and_read_back) {
  const std::string text = to_text(ours());
  EXPECT_EQ(text.substr(0, text.find('\n')), "100003 3 tcp 0.0.0.0.8.1");
  const std::vector<Registration> back = from_text(text);
  ASSERT_EQ(back.size(), 3u);
  for (std::size_t i = 0; i < back.size(); ++i) EXPECT_TRUE(same(back[i], ours()[i]));
  EXPECT_TRUE(from_text("\n1 2\nx 3 tcp a\n1 2 tcp a b\n1 2 tcp\n").empty());
}

}  // namespace
}  // namespace stag::rpcbind
