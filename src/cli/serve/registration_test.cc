#include "cli/serve/registration.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "endpoint/listener.h"
#include "nfs/server/server.h"
#include "testing/proves.h"
#include "testing/rpcbind_service.h"
#include "testing/vfs/posix_backend.h"

namespace stag::cli {
namespace {

using rpc::TransportKind;
using rpcbind::Registration;

constexpr std::uint32_t kNfs = 100003;
constexpr std::uint32_t kMount = 100005;

void add_programs(rpc::Server& server) {
  rpc::Program nfs(kNfs, 3);
  nfs.absent_from(TransportKind::Udp);
  server.add(std::move(nfs));
  rpc::Program mount(kMount, 3);
  mount.absent_from(TransportKind::Rdma);
  server.add(std::move(mount));
}

std::vector<std::string> lines(const std::vector<Registration>& all) {
  std::vector<std::string> out;
  for (const Registration& entry : all) out.push_back(rpcbind::to_text({entry}));
  for (std::string& line : out) line.pop_back();
  return out;
}

using Lines = std::vector<std::string>;

TEST(RpcbindRegistration, names_each_program_once_for_every_transport_it_is_present_on) {
  PROVES("R8166-9-e", "R8267-4.2-c");
  rpc::Server server;
  add_programs(server);
  const auto all = registrations_of(server,
                                    {{TransportKind::Rdma, {"192.0.2.1", 20049}},
                                     {TransportKind::Tcp, {"192.0.2.1", 2049}},
                                     {TransportKind::Udp, {"192.0.2.1", 2049}},
                                     {TransportKind::Rdma, {"2001:db8::1", 20050}}},
                                    "rdma");
  EXPECT_EQ(lines(all), (Lines{"100003 3 rdma 192.0.2.1.78.81", "100003 3 tcp 192.0.2.1.8.1",
                               "100003 3 rdma6 2001:db8::1.78.82", "100005 3 tcp 192.0.2.1.8.1",
                               "100005 3 udp 192.0.2.1.8.1"}));
}

TEST(RpcbindRegistration, has_both_address_families_where_a_listener_serves_both) {
  rpc::Server server;
  server.add(rpc::Program(kNfs, 3));
  const auto all = registrations_of(server, {{TransportKind::Rdma, {"::", 20049}}}, "torus");
  EXPECT_EQ(lines(all), (Lines{"100003 3 torus6 ::.78.81", "100003 3 torus 0.0.0.0.78.81"}));
}

TEST(RpcbindRegistration, names_the_address_that_reaches_furthest) {
  rpc::Server server;
  server.add(rpc::Program(kNfs, 3));
  const auto all = registrations_of(server,
                                    {{TransportKind::Tcp, {"127.0.0.1", 1}},
                                     {TransportKind::Tcp, {"192.0.2.1", 2}},
                                     {TransportKind::Tcp, {"::1", 3}}},
                                    "rdma");
  EXPECT_EQ(lines(all), (Lines{"100003 3 tcp 192.0.2.1.0.2", "100003 3 tcp6 ::1.0.3"}));
}

endpoint::ListenOptions by(endpoint::Transport transport, std::shared_ptr<endpoint::Loops> loops) {
  endpoint::ListenOptions options;
  options.transport = transport;
  options.loops = std::move(loops);
  return options;
}

TEST(RpcbindRegistration, leads_a_client_to_a_server_on_software_RDMA) {
  PROVES("R8166-5-f", "R8166-9-c", "R8166-9-d");
  const auto loops = std::make_shared<endpoint::Loops>();
  testing::RpcbindService rpcbind;
  rpc::Server rpcbind_server, server;
  rpcbind.serve_version_4(rpcbind_server);
  nfs::NfsServer nfs_server(nfs::ServerState::ephemeral(7));
  nfs_server.add_programs(server);
  const Address any{"127.0.0.1", 0};
  auto rpcbind_at = endpoint::listen(rpcbind_server, any, by(endpoint::Transport::Tcp, loops));
  auto rdma = endpoint::listen(server, any, by(endpoint::Transport::Rdma, loops));
  ASSERT_TRUE(rpcbind_at.ok() && rdma.ok());
  endpoint::ConnectOptions options;
  options.connector.transport = endpoint::Transport::Tcp;
  options.loops = loops;
  auto client = endpoint::connect(rpcbind_at->address(), options);
  ASSERT_TRUE(client.ok());
  rpc::Channel& channel = client->rpc().channel();
  rpcbind::Registrar registrar(channel);
  auto tcp = endpoint::listen(server, any, by(endpoint::Transport::Tcp, loops));
  ASSERT_TRUE(tcp.ok());
  const auto wanted = registrations_of(
      server, {{TransportKind::Rdma, rdma->address()}, {TransportKind::Tcp, tcp->address()}},
      "rdma");
  const auto done =
      endpoint::wait_on(client->loop(), [&] { return registrar.set(wanted, wanted); });
  ASSERT_TRUE(done.ok());
  const rpcbind::Question question{kNfs, 3, {"rdma"}};
  const auto found = endpoint::wait_on(
      client->loop(), [&] { return rpcbind::lookup(channel, question, rpc::CallOptions()); });
  ASSERT_TRUE(found.ok()) << found.error().message();
  auto nfs = endpoint::connect({"127.0.0.1", found->port}, {});
  ASSERT_TRUE(nfs.ok()) << nfs.error().message();
  EXPECT_TRUE(nfs->ping(kNfs, 3).ok());
  auto nfs_by_tcp = endpoint::connect(tcp->address(), options);
  ASSERT_TRUE(nfs_by_tcp.ok());
  EXPECT_TRUE(nfs_by_tcp->ping(kNfs, 3).ok()) << "the same program number";
}

// Files may not grow any more, as on a full disk.
class FullDisk {
 public:
  FullDisk() {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
};

TEST(RecordOfRegistrations, stays_as_it_was_where_the_disk_is_full) {
  const vfs::testing::Folder folder("/tmp");
  const std::string directory = folder.path();
  const std::vector<Registration> one{{kNfs, 3, "tcp", "0.0.0.0.8.1"}};
  const auto recorded = [&] {
    std::ifstream file(directory + "/rpcbind");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  ASSERT_TRUE(record_registrations(directory, one).ok());
  EXPECT_EQ(recorded(), rpcbind::to_text(one));
  {
    const FullDisk disk;
    EXPECT_FALSE(record_registrations(directory, {{kMount, 3, "tcp", "0.0.0.0.8.2"}}).ok());
  }
  EXPECT_EQ(recorded(), rpcbind::to_text(one));
}

TEST(RecordOfRegistrations, that_cannot_be_read_is_no_missing_one) {
  const vfs::testing::Folder folder("/tmp");
  const auto missing = recorded_registrations(folder.path());
  ASSERT_TRUE(missing.ok());
  EXPECT_TRUE(missing->empty());
  std::filesystem::create_directory(std::filesystem::path(folder.path()) / "rpcbind");
  const auto unreadable = recorded_registrations(folder.path());
  ASSERT_FALSE(unreadable.ok());
  EXPECT_NE(unreadable.error().find("cannot read"), std::string::npos) << unreadable.error();
}

}  // namespace
}  // namespace stag::cli
