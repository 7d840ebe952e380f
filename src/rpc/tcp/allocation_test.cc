// A TCP server of which any one allocation fails, at any point of a connection's life: it goes on,
// other connections notice nothing, and nothing leaks. One of which one fails while it ends. A
// client of which one fails when it loses its connection, and a stream of which one fails while it
// delivers what it had to keep. The whole program's operator new fails.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "oncrpc/message.h"
#include "oncrpc/record.h"
#include "rpc/server.h"
#include "rpc/tcp/channel.h"
#include "rpc/tcp/server.h"
#include "testing/failing_new.h"
#include "testing/sim_wire.h"
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

// Goes on once release() was called.
class Gate {
 public:
  auto opened(Loop& loop) {
    struct Awaiter {
      Gate& gate;
      Loop& loop;
      bool await_ready() const { return false; }
      void await_suspend(std::coroutine_handle<> by) {
        gate.waiting_.set_value([at = &loop, by] { at->post([by] { by.resume(); }); });
      }
      void await_resume() const {}
    };
    return Awaiter{*this, loop};
  }
  // Waits for the one Call that waits.
  void await_waiter() { open_ = waiting_.get_future().get(); }
  void open() { open_(); }

 private:
  std::promise<std::function<void()>> waiting_;
  std::function<void()> open_;
};

constexpr std::uint32_t kWaits = 77;

Task<std::uint32_t> increment_in_time(Gate& gate, rpc::CallContext& call, std::uint32_t value) {
  if (value == kWaits) co_await gate.opened(call.loop());
  co_return value + 1;
}

// A server on threads of its own that ends while a client is idle on each loop and a Call waits.
class EndingServer {
 public:
  explicit EndingServer(std::size_t loops) {
    for (std::size_t i = 0; i < loops; ++i) {
      threads_.push_back(std::make_unique<net::LoopThread>());
      loops_.push_back(&threads_.back()->loop());
    }
    rpc::Program program(kProgram, kVersion, kBinding);
    program.add<INCREMENT>([this](rpc::CallContext& call, std::uint32_t value) {
      return increment_in_time(gate_, call, value);
    });
    programs_.add(std::move(program));
    on(*loops_[0], [this] {
      server_ = *TcpServer::listen(*loops_[0], {"127.0.0.1", 0}, programs_, loops_);
    });
  }

  // On each loop the `n`th allocation fails from then on. Whether there was one.
  bool end(std::size_t n) {
    const std::uint16_t port = server_->local().port;
    std::vector<std::unique_ptr<BlockingClient>> idle;
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      idle.push_back(std::make_unique<BlockingClient>(port));
      EXPECT_TRUE(idle.back()->send<INCREMENT>(1) && idle.back()->receive_reply());
    }
    {
      BlockingClient waits(port);
      EXPECT_TRUE(waits.send<INCREMENT>(kWaits));
      gate_.await_waiter();
      for (net::EpollLoop* const each : loops_) on(*each, [n] { fail_allocation(n); });
      loops_[0]->post([this] { begin_close(); });
      EXPECT_FALSE(waits.receive_reply()) << "the connections end though the Call does not";
    }
    idle.clear();
    gate_.open();
    closed_.get_future().wait();
    bool failed = false;
    for (net::EpollLoop* const each : loops_)
      on(*each, [&failed] {
        fail_allocation(0);
        failed |= testing::failed_allocations != 0;
      });
    on(*loops_[0], [this] { server_ = nullptr; });
    return failed;
  }

 private:
  static void fail_allocation(std::size_t n) { testing::allocations_until_failure = n; }
  template <class Function>
  static void on(net::EpollLoop& loop, Function function) {
    std::promise<void> done;
    loop.post([&] {
      function();
      done.set_value();
    });
    done.get_future().wait();
  }
  // Again where there was no memory, as endpoint::Listener does.
  void begin_close() {
    try {
      detach(close());
    } catch (const std::bad_alloc&) {
      loops_[0]->post([this] { begin_close(); });
    }
  }
  Task<> close() {
    try {
      co_await server_->close();
    } catch (const std::bad_alloc&) {
      EXPECT_TRUE(loops_[0]->on_thread());
      loops_[0]->post([this] { begin_close(); });
      co_return;
    }
    closed_.set_value();
  }

  Gate gate_;
  Server programs_;
  std::promise<void> closed_;
  std::vector<net::EpollLoop*> loops_;
  std::unique_ptr<TcpServer> server_;
  std::vector<std::unique_ptr<net::LoopThread>> threads_;
};

class TcpServerEnd : public ::testing::TestWithParam<std::size_t> {};

TEST_P(TcpServerEnd, survives_the_failure_of_any_one_allocation) {
  static_cast<void>(EndingServer(GetParam()).end(1'000'000));  // what is allocated once
  std::size_t n = 1;
  for (bool failed = true; failed && !::testing::Test::HasFailure(); ++n) {
    const std::ptrdiff_t before = testing::live_allocations;
    failed = EndingServer(GetParam()).end(n);
    EXPECT_EQ(testing::live_allocations, before) << "leaked at allocation " << n;
  }
  EXPECT_GT(n, 3u) << "the test is about something";
}

INSTANTIATE_TEST_SUITE_P(Loops, TcpServerEnd, ::testing::Values(1, 2),
                         [](const auto& test) { return std::to_string(test.param); });

// Takes a Call and loses its connection, or is silent on it; on later ones it answers.
class LosingServer {
 public:
  explicit LosingServer(bool silent) : silent_(silent), fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(fd_, 8), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    port_ = ntohs(at.sin_port);
  }
  ~LosingServer() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  LosingServer(const LosingServer&) = delete;
  std::uint16_t port() const { return port_; }
  // `on_call` runs before the first connection is lost.
  void start(std::function<void()> on_call) {
    thread_ = std::thread([this, on_call = std::move(on_call)] {
      for (bool first = true;; first = false) {
        const int connection = ::accept(fd_, nullptr, nullptr);
        if (connection < 0) return;
        if (first) {
          take_call(connection);
          on_call();
          while (silent_ && recv(connection, &first, 1, 0) > 0) {
          }
        } else {
          while (const auto xid = take_call(connection)) answer(connection, *xid);
        }
        ::close(connection);
      }
    });
  }

 private:
  // Its xid, as it is on the wire.
  static std::optional<std::uint32_t> take_call(int connection) {
    std::array<std::uint32_t, 2> begin;
    if (recv(connection, begin.data(), sizeof begin, MSG_WAITALL) != sizeof begin) return {};
    std::vector<std::byte> rest((ntohl(begin[0]) & ~oncrpc::kLastFragment) - 4);
    recv(connection, rest.data(), rest.size(), MSG_WAITALL);
    return begin[1];
  }
  static void answer(int connection, std::uint32_t xid) {
    const std::array<std::uint32_t, 7> reply{
        htonl(24 | oncrpc::kLastFragment), xid, htonl(1), 0, 0, 0, 0};
    ::send(connection, reply.data(), sizeof reply, MSG_NOSIGNAL);
  }

  const bool silent_;
  const int fd_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

// Makes one Call after the other.
class LosingClient {
 public:
  explicit LosingClient(bool silent) : server_(silent) {}
  // Whether there was an `n`th allocation to fail from the loss of the connection on.
  bool live(std::size_t n) {
    server_.start([this, n] {
      std::promise<void> done;
      loop_.post([&] {
        testing::failed_allocations = 0;
        testing::allocations_until_failure = n;
        done.set_value();
      });
      done.get_future().wait();
    });
    loop_.post([this, n] { detach(converse(n)); });
    loop_.run();
    return failed_;
  }

 private:
  static ChannelOptions quick() {
    ChannelOptions options;
    options.backoff_min = options.backoff_max = std::chrono::milliseconds(1);
    options.probe_after = std::chrono::milliseconds(5);
    options.seed = 7;
    return options;
  }
  // Only a failing test waits for its end.
  CallMessage call(CancelSource& patience) {
    CallMessage message;
    message.xid = channel_.next_xid();
    oncrpc::CallHeader header;
    header.xid = message.xid;
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header);
    message.stream = std::move(encoder).finish();
    message.reply.payload_max = 400;
    message.cancel = CancelToken(patience);
    return message;
  }
  Task<> converse(std::size_t n) {
    CancelSource patience;
    const Timer end = loop_.after(std::chrono::seconds(20), [&] { patience.cancel(); });
    CallMessage first = call(patience), second = call(patience);
    try {
      static_cast<void>(co_await channel_.call(first));
    } catch (const std::bad_alloc&) {
    }
    testing::allocations_until_failure = 0;
    failed_ = testing::failed_allocations != 0;
    EXPECT_FALSE(patience.cancelled()) << "no answer, and no end, at allocation " << n;
    EXPECT_TRUE((co_await channel_.call(second)).ok()) << "after allocation " << n;
    co_await channel_.close();
    loop_.stop();
  }

  LosingServer server_;
  net::EpollLoop loop_;
  TcpChannel channel_{loop_, {"127.0.0.1", server_.port()}, quick()};
  bool failed_ = false;
};

class TcpChannelWithoutMemory : public ::testing::TestWithParam<bool> {};

TEST_P(TcpChannelWithoutMemory, ends_or_makes_again_the_Calls_of_a_lost_connection_and_goes_on) {
  const auto life = [](std::size_t n) {
    bool failed = false;
    std::thread([&] { failed = LosingClient(GetParam()).live(n); }).join();
    return failed;
  };
  life(1'000'000);  // what is allocated once in a process
  std::size_t n = 1;
  // One run is no end: where the machine is slow, the connection may be there again before failing
  // begins.
  for (int without = 0; without < 3 && !::testing::Test::HasFailure(); ++n) {
    const std::ptrdiff_t before = testing::live_allocations;
    without = life(n) ? 0 : without + 1;
    EXPECT_EQ(testing::live_allocations, before) << "leaked at allocation " << n;
  }
  EXPECT_GT(n, 10u) << "the test is about something";
}

INSTANTIATE_TEST_SUITE_P(Connection, TcpChannelWithoutMemory, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "silent" : "closed"; });

// Keeps its records; waits after the first one, until it is told to go on.
class WaitingOwner final : public RecordStream::Events {
 public:
  static constexpr std::size_t kRecords = 20, kSize = 2000;

  WaitingOwner() { records_.reserve(kRecords); }

  // Whether there was an `n`th allocation to fail from the moment when it goes on.
  bool receive(std::size_t n) {
    stream_->start(*this);
    Rope all;
    for (std::size_t i = 0; i < kRecords; ++i) {
      all.append(Rope::copy_of(oncrpc::record_mark(kSize)));
      all.append(pattern(kSize, 1));
    }
    wire_.arrive(all);
    failing_ = n;
    loop_.run();
    EXPECT_EQ(account_->left(), kMost) << "not given back after allocation " << n;
    return testing::failed_allocations != 0;
  }

 private:
  static constexpr std::uint64_t kMost = 1 << 20;

  void on_record(Buffer record) override {
    account_->give(record.size());
    records_.push_back(std::move(record));
    if (records_.size() == 1) {
      stream_->pause();
      loop_.post([this] { go_on(); });
    } else if (records_.size() == kRecords) {
      testing::allocations_until_failure = 0;
      loop_.post([this] { stream_->close(Reason::Shutdown); });
    }
  }
  void go_on() {
    EXPECT_EQ(account_->left(), kMost - (kRecords - 1) * (kSize + oncrpc::kRecordMarkSize));
    testing::allocations_until_failure = failing_;
    stream_->resume();
  }
  void on_room() override {}
  void on_stream_closed(Reason) override { loop_.stop(); }

  net::EpollLoop loop_;
  testing::SimWire wire_{loop_, 1 << 20};
  const std::shared_ptr<Account> account_ =
      std::make_shared<Account>(std::make_shared<ByteBudget>(kMost), "192.0.2.7", loop_, kMost);
  const std::shared_ptr<RecordStream> stream_ =
      std::make_shared<RecordStream>(wire_.end(), StreamLimits{}, account_);
  std::vector<Buffer> records_;
  std::size_t failing_ = 0;
};

TEST(RecordStreamWithoutMemory, gives_back_what_is_left_of_a_read_that_it_cannot_deliver) {
  std::size_t n = 1;
  for (bool failed = true; failed && !::testing::Test::HasFailure(); ++n)
    std::thread([&] { failed = WaitingOwner().receive(n); }).join();
  EXPECT_GT(n, WaitingOwner::kRecords / 2) << "the test is about something";
}

}  // namespace
}  // namespace stag::rpc::tcp
