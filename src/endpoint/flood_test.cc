// One host that opens as many connections as it can to a process that may open few files.
#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

#include "endpoint/client.h"
#include "endpoint/listener.h"
#include "net/socket.h"
#include "rpc/server.h"
#include "testing/scarce.h"
#include "testing/store_service.h"

namespace stag::endpoint {
namespace {

using namespace testing::store;

struct FloodOf {
  Transport transport;
  std::string_view said;  // on each of its connections
  const char* name;
};

// Connections of 127.0.0.2, as long as this lives.
class Flood {
 public:
  Flood(const Address& server, std::string_view said, std::size_t count) {
    wait_on(loops_.at(0), [&] { return open(*this, server, said, count); });
  }
  ~Flood() {
    run_on(loops_.at(0), [this] { sockets_.clear(); });
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

 private:
  static Task<> open(Flood& self, Address server, std::string_view said, std::size_t count) {
    net::ConnectOptions options;
    options.from = "127.0.0.2";
    while (self.sockets_.size() < count) {
      auto socket = co_await net::connect(self.loops_.at(0), server, options);
      if (!socket) co_return;
      if (!said.empty()) {
        const auto written = co_await socket->write_all(Rope::copy_of(bytes_of(said)));
        static_cast<void>(written);
      }
      self.sockets_.push_back(std::move(*socket));
    }
  }

  Loops loops_;
  std::vector<net::TcpSocket> sockets_;
};

class EndpointFlood : public ::testing::TestWithParam<FloodOf> {};

TEST_P(EndpointFlood, leaves_open_files_for_clients_of_other_hosts) {
  if (testing::sanitizer_needs_descriptors()) GTEST_SKIP() << "the sanitizer needs descriptors";
  State state;
  rpc::Server server;
  server.add(make_program(state));
  ListenOptions listening;
  ConnectOptions connecting;
  listening.transport = connecting.connector.transport = GetParam().transport;
  connecting.binding = kBinding;
  // As they are, a share that follows, and one that is lowered with what all may have.
  for (const auto& [all, of_one] : {std::pair{0u, 0u}, {10'000u, 0u}, {800u, 200u}}) {
    const testing::FewFiles few(120);
    auto listener = listen(server, {"127.0.0.1", 0}, listening);
    ASSERT_TRUE(listener.ok());
    if (all != 0) listener->limit_connections(all, of_one);
    const Flood flood(listener->address(), GetParam().said, 70);
    auto client = connect(listener->address(), connecting);
    ASSERT_TRUE(client.ok()) << client.error().message();
    EXPECT_TRUE(client->ping(kProgram, kVersion).ok());
  }
}

constexpr std::string_view kMpaRequest("MPA ID Req Frame\0\1\0\0", 20);
INSTANTIATE_TEST_SUITE_P(Ways, EndpointFlood,
                         ::testing::Values(FloodOf{Transport::Tcp, "", "Tcp"},
                                           FloodOf{Transport::Rdma, "", "HalfOpen"},
                                           FloodOf{Transport::Rdma, kMpaRequest, "Rdma"}),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace stag::endpoint
