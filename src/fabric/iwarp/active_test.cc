// The active side, against services that are nothing but bytes, and against our own.
#include <gtest/gtest.h>

#include <optional>

#include "fabric/iwarp/service_test.h"
#include "net/listener.h"

namespace stag::fabric::testing {
namespace {

using Outcome = Result<std::unique_ptr<Connection>, Reason>;

// A port where the test answers by hand.
class RawService {
 public:
  RawService() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto any = *net::numeric_address({"127.0.0.1", 0});
    EXPECT_EQ(::bind(fd_.fd(), any.data(), any.size()), 0);
    EXPECT_EQ(::listen(fd_.fd(), 8), 0);
  }
  Address address() const { return net::SocketAddress::local_of(fd_.fd()).address(); }
  RawPeer accept() { return RawPeer(UniqueFd(::accept(fd_.fd(), nullptr, nullptr))); }

 private:
  UniqueFd fd_;
};

// Connects on a loop of its own and keeps what comes of it. A caller of connect() awaits
// connected().
class Client final : public Events {
 public:
  explicit Client(IwarpOptions options = {}) : fabric_(thread_.loop(), options) {}
  ~Client() {
    on_loop(loop(), [this] {
      connection_.reset();
      return true;
    });
  }

  Loop& loop() { return thread_.loop(); }
  void connect(const Address& to, ConnectOptions options = {}) {
    loop().post([this, to, options] { detach(run(this, to, options)); });
  }
  // None: it is up, and started.
  Reason connected() { return connected_.get_future().get(); }
  template <class Function>
  auto with_connection(Function function) {
    return on_loop(loop(), [&] { return function(*connection_); });
  }
  void send(std::string_view text) {
    with_connection([&](Connection& connection) {
      connection.send(Rope::copy_of(bytes_of(text)), std::nullopt, 0, kNoToken);
      return true;
    });
  }
  std::string received() { return received_.get_future().get(); }
  Reason done() { return done_.get_future().get(); }

  void on_receive(Buffer message, std::optional<std::uint32_t>) override {
    received_.set_value(std::string(text_of(message.bytes())));
  }
  void on_done(Token, Reason reason) override { done_.set_value(reason); }
  void on_revoked(std::uint32_t) override {}
  void on_disconnect(Reason) override {}

 private:
  static Task<void> run(Client* self, Address to, ConnectOptions options) {
    Outcome outcome = co_await self->fabric_.connect(to, options, {});
    if (!outcome) {
      self->connected_.set_value(outcome.error());
      co_return;
    }
    self->connection_ = *std::move(outcome);
    self->connection_->start(*self);
    self->connected_.set_value(Reason::None);
  }

  net::LoopThread thread_;
  IwarpFabric fabric_;
  std::unique_ptr<Connection> connection_;
  std::promise<Reason> connected_;
  std::promise<std::string> received_;
  std::promise<Reason> done_;
};

constexpr std::string_view kReply = "4d504120494420526570204672616d65 10 02 0004 0010 0010";

TEST(Active, asks_in_the_enhanced_form_without_markers_and_CRC) {
  RawService service;
  Client client;
  ConnectOptions options;
  options.private_data = unhex("f6ab0e18 01010303");
  client.connect(service.address(), options);
  RawPeer peer = service.accept();
  EXPECT_EQ(hex(peer.receive(32)),
            "4d 50 41 20 49 44 20 52 65 71 20 46 72 61 6d 65 10 02 00 0c 00 20 00 20 "
            "f6 ab 0e 18 01 01 03 03");
  peer.close();
  EXPECT_NE(client.connected(), Reason::None);
}

TEST(Active, takes_a_reply_byte_by_byte_with_the_first_FPDU_behind_it) {
  RawService service;
  Client client;
  client.connect(service.address());
  RawPeer peer = service.accept();
  peer.receive(24);
  std::vector<std::byte> stream = unhex(kReply);
  const auto first = fpdu(untagged(iwarp::Opcode::Send, 1, bytes_of("hello")));
  stream.insert(stream.end(), first.begin(), first.end());
  for (const std::byte byte : stream) peer.send(Bytes(&byte, 1));
  EXPECT_EQ(client.connected(), Reason::None);
  EXPECT_EQ(client.received(), "hello");
}

TEST(Active, says_why_a_reply_is_not_acceptable) {
  const std::pair<const char*, Reason> replies[] = {
      {"4d504120494420526570204672616d65 30 02 0004 0010 0010", Reason::ConnectionRejected},
      {"4d504120494420526570204672616d65 00 01 0000", Reason::MpaNotEnhanced},
      {"485454502f312e3120343030206e6f206e6f206e6f0d0a", Reason::MpaKeyWrong},
      {"4d504120494420526570204672616d65 10 02 0004 0010 3000", Reason::MpaIrdInsufficient},
      {"4d504120494420526570204672616d65", Reason::ConnectionClosed},
      {"", Reason::MpaUnanswered},
  };
  for (const auto& [bytes, reason] : replies) {
    RawService service;
    Client client;
    client.connect(service.address());
    RawPeer peer = service.accept();
    peer.receive(24);
    peer.send(unhex(bytes));
    peer.finish();
    EXPECT_EQ(client.connected(), reason) << bytes;
  }
}

TEST(Active, gives_up_on_a_service_that_does_not_answer) {
  RawService service;
  Client client;
  ConnectOptions options;
  options.timeout = std::chrono::milliseconds(20);
  client.connect(service.address(), options);
  EXPECT_EQ(client.connected(), Reason::TimedOut);
}

TEST(Active, kicks_a_peer_that_leaves_the_first_FPDU_unanswered_with_an_empty_Write) {
  RawService service;
  IwarpOptions options;
  options.wakeup_write_after = std::chrono::milliseconds(5);
  Client client(options);
  client.connect(service.address());
  RawPeer peer = service.accept();
  peer.receive(24);
  peer.send(unhex(kReply));
  ASSERT_EQ(client.connected(), Reason::None);
  client.send("hello");
  EXPECT_EQ(peer.receive_ulpdu(), untagged(iwarp::Opcode::Send, 1, bytes_of("hello")));
  for (int kick = 0; kick < 2; ++kick) EXPECT_EQ(peer.receive_ulpdu(), tagged_write({}, {}));
}

TEST(Active, holds_its_first_FPDU_back_as_long_as_it_was_told) {
  RawService service;
  IwarpOptions options;
  options.first_fpdu_delay = std::chrono::milliseconds(50);
  Client client(options);
  // A turn's time may be from before the peer answered.
  const TimePoint start = client.loop().now();
  client.connect(service.address());
  RawPeer peer = service.accept();
  peer.receive(24);
  peer.send(unhex(kReply));
  ASSERT_EQ(client.connected(), Reason::None);
  client.send("patience");
  EXPECT_EQ(peer.receive_ulpdu(), untagged(iwarp::Opcode::Send, 1, bytes_of("patience")));
  EXPECT_GE(client.loop().now() - start, options.first_fpdu_delay);
}

TEST(Active, fails_a_read_at_once_where_the_peer_accepts_none) {
  RawService service;
  Client client;
  client.connect(service.address());
  RawPeer peer = service.accept();
  peer.receive(24);
  peer.send(unhex("4d504120494420526570204672616d65 10 02 0004 0000 0000"));
  ASSERT_EQ(client.connected(), Reason::None);
  std::vector<std::byte> sink(8);
  client.with_connection([&](Connection& connection) {
    EXPECT_EQ(connection.parameters().outbound_reads, 0u);
    connection.read({1, 8, 1}, sink, 0, 1);
    return true;
  });
  EXPECT_EQ(client.done(), Reason::ReadsUnavailable);
}

TEST(Active, sends_markers_to_a_peer_that_requires_them) {
  RawService service;
  Client client;
  client.connect(service.address());
  RawPeer peer = service.accept();
  peer.receive(24);
  peer.send(unhex("4d504120494420526570204672616d65 90 02 0004 0010 0010"));
  ASSERT_EQ(client.connected(), Reason::None);
  client.send("hi");
  // RFC 5044 4.3: the stream begins with a marker that points to itself.
  EXPECT_EQ(hex(Bytes(peer.receive(8))), "00 00 00 00 00 14 41 43");
}

class Megabyte : public ::testing::TestWithParam<bool> {};

// Payload goes from the socket to its place; what came with smaller messages is copied out of the
// read-ahead buffer once.
TEST_P(Megabyte, moves_without_copying_more_than_one_read_ahead_buffer) {
  constexpr std::size_t kSize = 1 << 20;
  // Per RDMA Write message of 256 KiB.
  constexpr std::uint64_t kReadAhead = 4 * 16 * 1024;
  // Outlive the loops, which use them.
  std::vector<std::byte> memory(kSize), bytes(kSize);
  Service service;
  service.answer.crc = GetParam();
  Client client;
  client.connect(service.address());
  ASSERT_EQ(client.connected(), Reason::None);
  client.send("hello");
  ASSERT_EQ(client.received(), "hello");
  for (std::size_t i = 0; i < kSize; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  const auto copied = [](Connection& connection) {
    return connection.traffic().payload_bytes_copied;
  };

  // A READ's data: the service writes it.
  const RemoteMemory sink = client.with_connection(
      [&](Connection& connection) { return *connection.expose_sink(memory); });
  service.with_connection([&](Connection& connection) {
    connection.write(Rope::borrow(bytes), sink, 1, kNoToken);
    return true;
  });
  while (client.with_connection(
             [&](Connection& connection) { return connection.traffic().write_bytes_in; }) < kSize) {
  }
  EXPECT_TRUE(memory == bytes);
  EXPECT_LE(client.with_connection(copied), kReadAhead);

  // A WRITE's data: here the client reads it.
  const RemoteMemory source = service.with_connection(
      [&](Connection& connection) { return *connection.expose_source(bytes); });
  const std::uint64_t before = client.with_connection(copied);
  std::vector<std::byte> fetched(kSize);
  client.with_connection([&](Connection& connection) {
    connection.read(source, fetched, 1, 1);
    return true;
  });
  EXPECT_EQ(client.done(), Reason::None);
  EXPECT_TRUE(fetched == bytes);
  EXPECT_LE(client.with_connection(copied) - before, kReadAhead);
}

INSTANTIATE_TEST_SUITE_P(Crc, Megabyte, ::testing::Bool());

TEST(Loops, share_the_connections_of_a_listener_and_each_is_told_on_its_own) {
  net::LoopThread first, second;
  struct Counting final : Acceptor {
    Result<ConnectOptions, Reason> on_connect_request(const ConnectRequest&) override {
      return ConnectOptions{};
    }
    void on_connection(std::unique_ptr<Connection> connection) override {
      Loop& loop = connection->loop();
      EXPECT_TRUE(loop.on_thread());
      ++(&loop == one ? on_first : on_second);
      connection.reset();
      if (on_first + on_second == 4) all.set_value();
    }
    Loop* one = nullptr;
    std::atomic<int> on_first = 0, on_second = 0;
    std::promise<void> all;
  } acceptor;
  acceptor.one = &first.loop();
  net::LoopThread listening;
  IwarpFabric fabric(listening.loop(), {}, {&first.loop(), &second.loop()});
  std::unique_ptr<Listener> listener = on_loop(listening.loop(), [&] {
    return *fabric.listen({"127.0.0.1", 0}, {}, acceptor);
  });
  std::vector<RawPeer> peers;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(RawPeer::connected(listener->local_address()));
    peers.back().send(unhex(kRequest));
  }
  acceptor.all.get_future().wait();
  EXPECT_EQ(acceptor.on_first, 2);
  EXPECT_EQ(acceptor.on_second, 2);
  on_loop(listening.loop(), [&] {
    listener.reset();
    return true;
  });
}

}  // namespace
}  // namespace stag::fabric::testing
