// A TCP server of which any one allocation fails, at any point of a connection's life: it goes on,
// other connections notice nothing, and nothing leaks. The whole program's operator new fails.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <thread>

#include "oncrpc/message.h"
#include "oncrpc/record.h"
#include "rpc/server.h"
#include "rpc/tcp/server.h"
#include "testing/failing_new.h"
#include "testing/store_service.h"

namespace stag::rpc::tcp {
namespace {

using namespace testing::store;

// A server on a thread of its own, so that no free list has been filled by an earlier one.
class FreshServer {
 public:
  FreshServer() {
    std::promise<std::uint16_t> port;
    thread_ = std::thread([this, &port] { run(port); });
    port_ = port.get_future().get();
  }
  ~FreshServer() {
    loop_->post([this] { detach(close(this)); });
    thread_.join();
  }
  std::uint16_t port() const { return port_; }
  // From now on the n-th allocation of the server fails. `n` 0: none.
  void fail_allocation(std::size_t n) {
    std::promise<void> done;
    loop_->post([&] {
      fired_ = testing::allocations_until_failure == 0;
      testing::allocations_until_failure = n;
      done.set_value();
    });
    done.get_future().wait();
  }
  // Whether the one that was asked for before the last call of fail_allocation() did fail.
  bool fired() const { return fired_; }

 private:
  void run(std::promise<std::uint16_t>& port) {
    net::EpollLoop loop;
    State state;
    Server programs;
    programs.add(make_program(state));
    ServerOptions options;
    options.max_calls = 2;
    options.stream.queued = 64 << 10;
    auto server = TcpServer::listen(loop, {"127.0.0.1", 0}, programs, {}, options);
    loop_ = &loop;
    server_ = server->get();
    loop.post([&] { port.set_value(server_->local().port); });
    loop.run();
  }
  static Task<> close(FreshServer* self) {
    co_await self->server_->close();
    self->loop_->stop();
  }

  std::thread thread_;
  net::EpollLoop* loop_ = nullptr;
  TcpServer* server_ = nullptr;
  std::uint16_t port_ = 0;
  bool fired_ = false;
};

class BlockingClient {
 public:
  explicit BlockingClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~BlockingClient() { ::close(fd_); }
  BlockingClient(const BlockingClient&) = delete;

  template <xdr::Procedure P>
  bool send(const typename P::Args& args) {
    oncrpc::CallHeader header;
    header.xid = ++xid_;
    header.program = P::program;
    header.version = P::version;
    header.procedure = P::number;
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header);
    P::encode_args(encoder, args);
    const Buffer message = std::move(encoder).finish().rope().flatten();
    const auto mark = oncrpc::record_mark(static_cast<std::uint32_t>(message.size()));
    return write(mark) && write(message.bytes());
  }
  // False when the connection ended.
  bool receive_reply() {
    std::array<std::byte, 4> mark;
    if (!read(mark)) return false;
    std::vector<std::byte> record(load_be<std::uint32_t>(mark.data()) & ~oncrpc::kLastFragment);
    return read(record);
  }

 private:
  bool write(Bytes bytes) {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  bool read(MutableBytes bytes) {
    const ssize_t got = recv(fd_, bytes.data(), bytes.size(), MSG_WAITALL);
    EXPECT_FALSE(got < 0 && errno == EAGAIN) << "the server neither answers nor ends it";
    return got == static_cast<ssize_t>(bytes.size());
  }
  const int fd_;
  std::uint32_t xid_ = 0;
};

// Whether every Call was answered, in whatever way.
bool live_a_whole_life(std::uint16_t port) {
  BlockingClient client(port);
  const Rope data = pattern(40'000, 1);
  bool sent = client.send<INCREMENT>(1);
  sent = sent && client.send<PUT>({.slot = 1, .data = data, .checksum = checksum(data)});
  for (std::uint32_t i = 0; sent && i < 4; ++i) {
    sent = client.send<GET>({.slot = 1, .count = 40'000});
    sent = sent && client.send<ADD_ONCE>(i);
  }
  for (int i = 0; sent && i < 10; ++i) sent = client.receive_reply();
  return sent;
}

// True as long as there was an n-th allocation to fail.
bool survive(std::size_t n) {
  FreshServer server;
  BlockingClient other(server.port());
  EXPECT_TRUE(other.send<INCREMENT>(1) && other.receive_reply());
  server.fail_allocation(n);
  if (!live_a_whole_life(server.port())) {
    EXPECT_TRUE(live_a_whole_life(server.port())) << "again, with memory";
  }
  server.fail_allocation(0);
  EXPECT_TRUE(other.send<INCREMENT>(1) && other.receive_reply()) << "another connection";
  return server.fired();
}

TEST(TcpServerWithoutMemory, survives_the_failure_of_any_one_allocation) {
  survive(1'000'000);  // what is allocated once in a process
  std::size_t n = 1;
  for (bool fired = true; fired && !::testing::Test::HasFailure(); ++n) {
    const std::ptrdiff_t before = testing::live_allocations;
    fired = survive(n);
    EXPECT_EQ(testing::live_allocations, before) << "leaked at allocation " << n;
  }
  EXPECT_GT(n, 20u) << "the test is about something";
  RecordProperty("allocations", static_cast<int>(n));
}

}  // namespace
}  // namespace stag::rpc::tcp
