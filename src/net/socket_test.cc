#include "net/socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/task_group.h"
#include "net/listener.h"
#include "net/loop.h"
#include "net/race.h"
#include "net/socket_address.h"
#include "net/udp.h"
#include "testing/scarce.h"
#include "testing/user_timeout.h"

namespace stag::net {
namespace {

using namespace std::chrono_literals;

// Runs `task` on `loop` until it ends.
void run(EpollLoop& loop, Task<> task) {
  const auto body = [](EpollLoop* on, Task<> inner) -> Task<> {
    co_await std::move(inner);
    on->stop();
  };
  loop.post([&] { detach(body(&loop, std::move(task))); });
  loop.run();
}

struct Pair {
  std::optional<TcpSocket> client;
  std::optional<TcpSocket> server;
  int server_fd = -1;
};

Task<> make_pair_at(EpollLoop* loop, std::string host, TcpOptions options, Pair* pair) {
  auto listener = TcpListener::listen(*loop, {host, 0});
  if (!listener) co_return;
  Completion<AcceptedSocket> accepted;
  listener->start([&accepted](AcceptedSocket socket) { accepted.complete(std::move(socket)); });
  ConnectOptions connect_options;
  connect_options.tcp = options;
  const Address at{host, listener->local().port};
  auto connected = co_await connect(*loop, at, connect_options);
  AcceptedSocket socket = co_await accepted;
  if (!connected) co_return;
  pair->client.emplace(*std::move(connected));
  EXPECT_EQ(socket.peer, pair->client->local());
  pair->server_fd = socket.fd.fd();
  auto adopted = TcpSocket::adopt(*loop, std::move(socket), options);
  if (adopted) pair->server.emplace(*std::move(adopted));
}

class TcpSocketTest : public ::testing::Test {
 protected:
  Pair connected_pair(const std::string& host = "127.0.0.1", TcpOptions options = {}) {
    Pair pair;
    run(loop_, make_pair_at(&loop_, host, options, &pair));
    EXPECT_TRUE(pair.client.has_value() && pair.server.has_value());
    return pair;
  }
  EpollLoop loop_;
};

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251);
  return bytes;
}

Task<> read_until_end(TcpSocket* socket, std::size_t step, std::vector<std::byte>* all,
                      Reason* end) {
  std::vector<std::byte> part(step);
  for (;;) {
    const auto size = co_await socket->read_some(part);
    if (!size) {
      *end = size.error();
      co_return;
    }
    all->insert(all->end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(*size));
  }
}

TEST_F(TcpSocketTest, carries_more_than_the_buffers_hold_and_then_the_end) {
  Pair pair = connected_pair();
  const auto sent = pattern(16'000'000);
  std::vector<std::byte> received;
  Reason end = Reason::None;
  bool waited = false;
  const auto writer = [](Pair* sockets, const std::vector<std::byte>* bytes) -> Task<> {
    Rope rope;
    const Buffer whole = Buffer::borrow(*bytes);
    for (std::size_t at = 0; at < bytes->size(); at += 160'000)
      rope.append(whole.slice(at, 160'000));
    const auto written = co_await sockets->client->write_all(std::move(rope));
    EXPECT_TRUE(written.ok());
    sockets->client->shutdown_write();
  };
  const auto both = [&writer](Pair* sockets, const std::vector<std::byte>* bytes, bool* blocked,
                              std::vector<std::byte>* all, Reason* why) -> Task<> {
    TaskGroup group;
    group.add(writer(sockets, bytes));
    // Nothing has been read yet, so the writer must be waiting for room.
    *blocked = group.running() == 1;
    group.add(read_until_end(&*sockets->server, 100'000, all, why));
    co_await group.join();
  };
  run(loop_, both(&pair, &sent, &waited, &received, &end));
  EXPECT_TRUE(waited);
  EXPECT_EQ(end, Reason::ConnectionClosed);
  EXPECT_TRUE(received == sent);
}

// Waits for readiness before every read of up to `step` bytes, until the end or a time limit.
std::string read_when_told(EpollLoop& loop, TcpSocket& socket, std::size_t step) {
  std::string all;
  std::vector<char> part(step);
  const Timer limit = loop.after(10s, [&loop] { loop.stop(); });
  std::function<void()> read = [&] {
    const iovec piece{part.data(), part.size()};
    const Transfer transfer = socket.try_read(std::span(&piece, 1));
    all.append(part.data(), transfer.bytes);
    if (transfer.reason == Reason::None) return socket.when_readable([&read] { read(); });
    all += '.';
    loop.stop();
  };
  socket.when_readable([&read] { read(); });
  loop.run();
  return all;
}

TEST_F(TcpSocketTest, reports_an_end_that_came_together_with_the_last_bytes) {
  for (const std::size_t step : {8u, 3u, 1u}) {
    Pair pair = connected_pair();
    const iovec piece{const_cast<char*>("abc"), 3};
    ASSERT_EQ(pair.client->try_write(std::span(&piece, 1)).bytes, 3u);
    pair.client->shutdown_write();
    EXPECT_EQ(read_when_told(loop_, *pair.server, step), "abc.");
  }
}

// A loop that looks for events reads where it read last; that may be gone by then.
TEST_F(TcpSocketTest, is_not_read_after_it_was_destroyed_in_the_same_turn) {
  Pair pair = connected_pair();
  const auto word = pattern(4);
  std::size_t taken = 0;
  const auto talk = [](EpollLoop* loop, Pair* sockets, Bytes bytes, std::size_t* count) -> Task<> {
    std::vector<std::byte> part(bytes.size());
    for (int i = 0; i < 100; ++i) {
      auto written = co_await sockets->client->write_all(Rope::borrow(bytes));
      EXPECT_TRUE(written.ok());
      const auto size = co_await sockets->server->read_some(part);
      if (size) *count += *size;
    }
    sockets->server.reset();
    sockets->client.reset();
    co_await sleep_for(*loop, 1ms);
  };
  run(loop_, talk(&loop_, &pair, word, &taken));
  EXPECT_EQ(taken, 100 * word.size());
}

TEST_F(TcpSocketTest, speaks_IPv6_and_prints_its_addresses) {
  Pair pair = connected_pair("::1");
  EXPECT_EQ(pair.client->peer().host, "::1");
  EXPECT_EQ(to_string(pair.client->peer()), "[::1]:" + std::to_string(pair.server->local().port));
}

TEST_F(TcpSocketTest, reaches_a_listener_on_every_address_by_IPv4_and_shows_an_IPv4_peer) {
  auto listener = TcpListener::listen(loop_, {"", 0});
  ASSERT_TRUE(listener.ok());
  Address peer;
  const auto body = [](EpollLoop* loop, TcpListener* at, Address* seen) -> Task<> {
    Completion<AcceptedSocket> accepted;
    at->start([&accepted](AcceptedSocket socket) { accepted.complete(std::move(socket)); });
    const Address localhost{"localhost", at->local().port};
    const auto connected = co_await connect(*loop, localhost);
    EXPECT_TRUE(connected.ok());
    const AcceptedSocket socket = co_await accepted;
    *seen = socket.peer;
    EXPECT_EQ(connected->local(), socket.peer);
  };
  run(loop_, body(&loop_, &*listener, &peer));
  EXPECT_TRUE(peer.host == "127.0.0.1" || peer.host == "::1") << peer.host;
}

TEST_F(TcpSocketTest, is_not_paced_where_no_network_is_crossed) {
  const Pair pair = connected_pair();
  char name[16] = {};
  socklen_t size = sizeof name;
  ASSERT_EQ(getsockopt(pair.server_fd, IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
  EXPECT_STREQ(name, "reno");
}

TEST_F(TcpSocketTest, scatters_what_it_reads_and_says_when_there_is_no_more) {
  Pair pair = connected_pair();
  std::string text = "steering tag";
  const iovec whole{text.data(), text.size()};
  EXPECT_EQ(pair.client->try_write(std::span(&whole, 1)).bytes, text.size());
  std::string front(8, '-');
  std::string back(8, '-');
  const iovec pieces[] = {{front.data(), 8}, {back.data(), 8}};
  pair.server->when_readable([&] {
    const Transfer got = pair.server->try_read(pieces);
    EXPECT_EQ(got.bytes, 12u);
    EXPECT_TRUE(got.drained);
    EXPECT_EQ(pair.server->try_read(pieces).bytes, 0u);
    EXPECT_EQ(pair.server->try_read(pieces).reason, Reason::None);
    loop_.stop();
  });
  loop_.run();
  EXPECT_EQ(front + back, "steering tag----");
}

TEST_F(TcpSocketTest, knows_how_much_the_peer_has_not_acknowledged) {
  Pair pair = connected_pair();
  EXPECT_EQ(pair.client->unacknowledged(), 0u);
  std::vector<std::byte> part(1 << 20);
  const iovec piece{part.data(), part.size()};
  std::size_t left = 0;  // more than the peer's system takes before anybody reads
  for (Transfer written; !written.drained; left += written.bytes)
    written = pair.client->try_write(std::span(&piece, 1));
  EXPECT_GT(pair.client->unacknowledged(), 0u);
  std::function<void()> read = [&] {
    left -= pair.server->try_read(std::span(&piece, 1)).bytes;
    if (left == 0 && pair.client->unacknowledged() == 0) return loop_.stop();
    loop_.post([&read] { read(); });
  };
  loop_.post([&read] { read(); });
  loop_.run();
  pair.client->close();
  EXPECT_EQ(pair.client->unacknowledged(), 0u);
}

TEST_F(TcpSocketTest, does_not_wait_for_ever_for_a_peer_that_vanished) {
  const Pair pair = connected_pair();
  for (const int fd : {pair.client->fd(), pair.server->fd()}) {
    int keep_alive = 0;
    socklen_t size = sizeof(int);
    getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &keep_alive, &size);
    EXPECT_NE(keep_alive, 0);
    EXPECT_GT(testing::user_timeout_of(fd), 0);
  }
}

TEST_F(TcpSocketTest, leaves_it_to_its_owner_how_long_bytes_may_be_unacknowledged) {
  Pair pair = connected_pair();
  pair.client->drop_user_timeout();
  EXPECT_EQ(testing::user_timeout_of(pair.client->fd()), 0);
  EXPECT_GT(testing::user_timeout_of(pair.server->fd()), 0);
}

// By the system's own time: the connection was made long ago.
TEST_F(TcpSocketTest, does_not_say_of_a_connection_that_its_host_did_not_answer_the_request) {
  Pair pair = connected_pair();
  const int at_once = 1;
  setsockopt(pair.client->fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &at_once, sizeof at_once);
  const std::vector<std::byte> more_than_fits(64 << 20);
  Reason end = Reason::None;
  const auto body = [](TcpSocket* socket, const std::vector<std::byte>* bytes,
                       Reason* why) -> Task<> {
    const auto written = co_await socket->write_all(Rope::borrow(*bytes));
    if (!written) *why = written.error();
  };
  run(loop_, body(&*pair.client, &more_than_fits, &end));
  EXPECT_EQ(end, Reason::ConnectionLost);
}

TEST_F(TcpSocketTest, wakes_its_waiter_when_it_is_closed) {
  Pair pair = connected_pair();
  Reason end = Reason::None;
  const auto body = [](Pair* sockets, Reason* why) -> Task<> {
    std::vector<std::byte> all;
    TaskGroup group;
    group.add(read_until_end(&*sockets->server, 16, &all, why));
    sockets->server->close();
    co_await group.join();
  };
  run(loop_, body(&pair, &end));
  EXPECT_EQ(end, Reason::SocketClosed);
}

TEST_F(TcpSocketTest, calls_nothing_after_it_was_closed_and_destroyed) {
  Pair pair = connected_pair();
  bool told = false;
  pair.client->when_readable([&told] { told = true; });
  pair.client->close();
  pair.client.reset();
  loop_.post([this] { loop_.post([this] { loop_.stop(); }); });
  loop_.run();
  EXPECT_FALSE(told);
}

TEST_F(TcpSocketTest, reports_a_reset_of_the_peer_without_a_signal) {
  Pair pair = connected_pair();
  const linger now{1, 0};
  setsockopt(pair.client->fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  pair.client->close();
  Reason end = Reason::None;
  Reason write_end = Reason::None;
  const auto body = [](Pair* sockets, Reason* why, Reason* write_why) -> Task<> {
    std::vector<std::byte> all;
    co_await read_until_end(&*sockets->server, 16, &all, why);
    const auto written = co_await sockets->server->write_all(Rope::borrow(bytes_of("too late")));
    if (!written) *write_why = written.error();
  };
  run(loop_, body(&pair, &end, &write_end));
  EXPECT_EQ(end, Reason::ConnectionReset);
  EXPECT_EQ(write_end, Reason::ConnectionReset);
}

Task<> connect_and_say_why(EpollLoop* loop, Address to, Duration timeout, CancelToken token,
                           Reason* why) {
  ConnectOptions options;
  options.timeout = timeout;
  const auto connected = co_await connect(*loop, to, options, token);
  if (!connected) *why = connected.error();
}

TEST(TcpConnect, leaves_from_an_address_that_was_asked_for_where_the_machine_has_it) {
  EpollLoop loop;
  auto listener = TcpListener::listen(loop, {"127.0.0.1", 0});
  ASSERT_TRUE(listener.ok());
  const auto try_from = [](EpollLoop* on, Address to, const char* from,
                           std::string* seen) -> Task<> {
    ConnectOptions options;
    options.from = from;
    auto socket = co_await connect(*on, to, options);
    if (socket.ok()) *seen = socket->local().host;
  };
  for (const auto& [from, expected] :
       {std::pair{"127.0.0.2", "127.0.0.2"}, {"192.0.2.1", "127.0.0.1"}, {"::1", "127.0.0.1"}}) {
    std::string seen;
    run(loop, try_from(&loop, listener->local(), from, &seen));
    EXPECT_EQ(seen, expected) << from;
  }
}

TEST(TcpConnect, says_that_the_connection_was_refused) {
  EpollLoop loop;
  // A port that is bound but not listened on refuses, and nobody else can take it meanwhile.
  const UniqueFd taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto any = numeric_address({"127.0.0.1", 0});
  ASSERT_EQ(::bind(taken.fd(), any->data(), any->size()), 0);
  Reason why = Reason::None;
  run(loop,
      connect_and_say_why(&loop, SocketAddress::local_of(taken.fd()).address(), 5s, {}, &why));
  EXPECT_EQ(why, Reason::ConnectionRefused);
}

TEST(TcpConnect, says_that_there_is_no_such_host) {
  EpollLoop loop;
  Reason why = Reason::None;
  // Longer than a name can be, so no name service is asked.
  const Address nowhere{std::string(300, 'a'), 1};
  run(loop, connect_and_say_why(&loop, nowhere, 60s, {}, &why));
  EXPECT_EQ(why, Reason::HostNotFound);
}

// A listener whose backlog is full answers no further connection request, so connecting to it
// hangs.
class Unanswering {
 public:
  Unanswering() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto any = numeric_address({"127.0.0.1", 0});
    EXPECT_EQ(::bind(listener_.fd(), any->data(), any->size()), 0);
    EXPECT_EQ(::listen(listener_.fd(), 0), 0);
    const auto at = SocketAddress::local_of(listener_.fd());
    for (UniqueFd& fd : fillers_) {
      fd = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      EXPECT_NE(::connect(fd.fd(), at.data(), at.size()), 0);
    }
  }
  Address address() const { return SocketAddress::local_of(listener_.fd()).address(); }

 private:
  UniqueFd listener_;
  UniqueFd fillers_[4];
};

TEST(TcpConnect, gives_up_when_its_time_is_over) {
  EpollLoop loop;
  const Unanswering peer;
  Reason why = Reason::None;
  run(loop, connect_and_say_why(&loop, peer.address(), 10ms, {}, &why));
  EXPECT_EQ(why, Reason::ConnectTimedOut);
}

Task<> connect_to_first(EpollLoop* loop, std::vector<SocketAddress> addresses, Duration timeout,
                        std::string* result) {
  ConnectOptions options;
  options.timeout = timeout;
  const auto connected = co_await connect_to_one_of(*loop, std::move(addresses), options);
  *result = connected ? to_string(connected->peer()) : std::string(to_string(connected.error()));
}

TEST(TcpConnect, has_time_left_for_an_address_behind_one_that_is_silent) {
  EpollLoop loop;
  const Unanswering silent;
  const SocketAddress first = *numeric_address(silent.address());
  const auto listener = TcpListener::listen(loop, {"127.0.0.1", 0});
  ASSERT_TRUE(listener.ok());
  std::string result;
  run(loop, connect_to_first(&loop, {first, *numeric_address(listener->local())}, 4s, &result));
  EXPECT_EQ(result, to_string(listener->local()));
  run(loop, connect_to_first(&loop, {first, first, first}, 30ms, &result));
  EXPECT_EQ(result, to_string(Reason::ConnectTimedOut));
}

TEST(TcpConnect, ends_at_once_when_it_is_cancelled) {
  EpollLoop loop;
  const Unanswering peer;
  Reason why = Reason::None;
  CancelSource source;
  loop.post([&] { loop.post([&] { source.cancel(); }); });
  run(loop, connect_and_say_why(&loop, peer.address(), 1h, source, &why));
  EXPECT_EQ(why, Reason::Cancelled);
  why = Reason::None;
  run(loop, connect_and_say_why(&loop, {"localhost", 1}, 1h, source, &why));
  EXPECT_EQ(why, Reason::Cancelled);
}

TEST(TcpListenerTest, says_that_the_port_is_taken_or_the_address_is_not_ours) {
  EpollLoop loop;
  const auto first = TcpListener::listen(loop, {"127.0.0.1", 0});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(TcpListener::listen(loop, first->local()).error(), Reason::AddressInUse);
  EXPECT_EQ(TcpListener::listen(loop, {"192.0.2.1", 0}).error(), Reason::AddressNotAvailable);
}

TEST(TcpListenerTest, pauses_when_descriptors_run_out_and_accepts_when_one_is_free) {
  EpollLoop loop;
  ListenOptions options;
  options.pause = 1ms;
  auto listener = TcpListener::listen(loop, {"127.0.0.1", 0}, options);
  ASSERT_TRUE(listener.ok());
  const auto at = *numeric_address(listener->local());
  UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.fd(), at.data(), at.size()), 0);

  std::optional<testing::FewFiles> limit(std::in_place, 0);
  const std::uint64_t before = reason_counters().of(Reason::TooManyOpenFiles);
  bool accepted = false;
  listener->start([&](AcceptedSocket) {
    EXPECT_FALSE(limit.has_value());
    accepted = true;
    loop.stop();
  });
  const auto lift_after_two_pauses = [](EpollLoop* on, std::optional<testing::FewFiles>* files,
                                        std::uint64_t start) -> Task<> {
    while (reason_counters().of(Reason::TooManyOpenFiles) < start + 2) co_await sleep_for(*on, 1ms);
    files->reset();
  };
  detach(lift_after_two_pauses(&loop, &limit, before));
  loop.run();
  EXPECT_TRUE(accepted);
}

TEST(TcpListenerTest, does_not_ask_a_socket_that_fails_again_in_every_turn) {
  EpollLoop loop;
  ListenOptions options;
  options.pause = 1h;
  auto listener = TcpListener::listen(loop, {"127.0.0.1", 0}, options);
  ASSERT_TRUE(listener.ok());
  int fd = 0;
  while (SocketAddress::local_of(fd).address() != listener->local()) ++fd;
  // Readable for ever, and accept() is refused.
  ::shutdown(fd, SHUT_RD);
  const std::uint64_t before = reason_counters().of(Reason::SocketFailed);
  listener->start([](AcceptedSocket) {});
  const auto turns = [](EpollLoop* on, std::uint64_t start) -> Task<> {
    while (reason_counters().of(Reason::SocketFailed) == start) co_await resume_on(*on);
    const std::uint64_t then = reason_counters().of(Reason::SocketFailed);
    for (int turn = 0; turn < 100; ++turn) co_await resume_on(*on);
    EXPECT_EQ(reason_counters().of(Reason::SocketFailed), then);
    on->stop();
  };
  detach(turns(&loop, before));
  loop.run();
}

TEST(Listener, takes_few_connections_at_a_time_while_others_of_the_loop_wait) {
  EpollLoop loop;
  auto listener = TcpListener::listen(loop, {"127.0.0.1", 0});
  ASSERT_TRUE(listener.ok());
  const SocketAddress at = *numeric_address(listener->local());
  constexpr std::size_t kStorm = 12;
  std::vector<UniqueFd> storm;
  for (std::size_t i = 0; i < kStorm; ++i) {
    storm.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(storm.back().fd(), at.data(), at.size()), 0);
  }
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const UniqueFd far(ends[1]);
  auto waiting = Descriptor::watch(loop, UniqueFd(ends[0]));
  ASSERT_TRUE(waiting.ok());
  ASSERT_EQ(::write(far.fd(), "x", 1), 1);
  std::size_t accepted = 0;
  std::optional<std::size_t> before_other;
  listener->start([&](AcceptedSocket) {
    if (++accepted == kStorm) loop.stop();
  });
  waiting->when_readable([&] { before_other = accepted; });
  loop.run();
  ASSERT_TRUE(before_other.has_value());
  EXPECT_LE(*before_other, 2u);
}

// What it sent before is still read, and must not be judged as a stranger's.
TEST(TcpListenerTest, reports_the_peer_although_the_connection_was_reset) {
  EpollLoop loop;
  auto listener = TcpListener::listen(loop, {"127.0.0.1", 0});
  ASSERT_TRUE(listener.ok());
  const SocketAddress at = *numeric_address(listener->local());
  UniqueFd client(::socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(::connect(client.fd(), at.data(), at.size()), 0);
  const Address client_address = SocketAddress::local_of(client.fd()).address();
  ASSERT_EQ(::send(client.fd(), "x", 1, 0), 1);
  const linger now{1, 0};
  setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  client = UniqueFd();
  Address seen;
  std::size_t read = 0;
  listener->start([&](AcceptedSocket accepted) {
    auto socket = TcpSocket::adopt(loop, std::move(accepted));
    ASSERT_TRUE(socket.ok());
    seen = socket->peer();
    char byte = 0;
    const iovec piece{&byte, 1};
    read = socket->try_read({&piece, 1}).bytes;
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(seen, client_address);
  EXPECT_EQ(read, 1u);
}

TEST(TcpListenerTest, lets_a_connection_move_to_another_loop) {
  EpollLoop accepting;
  LoopThread serving;
  auto listener = TcpListener::listen(accepting, {"127.0.0.1", 0});
  ASSERT_TRUE(listener.ok());
  const auto serve = [](EpollLoop* loop, AcceptedSocket accepted) -> Task<> {
    auto socket = TcpSocket::adopt(*loop, std::move(accepted));
    EXPECT_TRUE(loop->on_thread());
    const auto written = co_await socket->write_all(Rope::borrow(bytes_of("hello")));
    EXPECT_TRUE(written.ok());
  };
  listener->start([&](AcceptedSocket accepted) {
    serving.loop().post([&serving, &serve, moved = std::move(accepted)]() mutable {
      detach(serve(&serving.loop(), std::move(moved)));
    });
  });
  std::vector<std::byte> received;
  const auto client = [](EpollLoop* loop, Address to, std::vector<std::byte>* all) -> Task<> {
    auto socket = co_await connect(*loop, to);
    Reason end;
    co_await read_until_end(&*socket, 16, all, &end);
  };
  run(accepting, client(&accepting, listener->local(), &received));
  EXPECT_EQ(text_of(received), "hello");
}

TEST(UdpSocketTest, carries_datagrams_whole_and_says_when_one_was_too_long) {
  EpollLoop loop;
  auto one = UdpSocket::open(loop, {"127.0.0.1", 0});
  auto two = UdpSocket::open(loop, {"127.0.0.1", 0});
  ASSERT_TRUE(one.ok() && two.ok());
  const SocketAddress to = *numeric_address(two->local());
  EXPECT_TRUE(one->send_to(bytes_of("a datagram"), to).ok());
  EXPECT_TRUE(one->send_to(bytes_of("another datagram, a longer one"), to).ok());
  std::vector<std::byte> room(16);
  two->when_readable([&] {
    const auto first = two->try_receive(room);
    ASSERT_TRUE(first.ok() && first->has_value());
    EXPECT_EQ((*first)->size, 10u);
    EXPECT_EQ((*first)->from.address(), one->local());
    EXPECT_EQ(two->try_receive(room).error(), Reason::DatagramTooLong);
    const auto none = two->try_receive(room);
    EXPECT_TRUE(none.ok() && !none->has_value());
    loop.stop();
  });
  loop.run();
}

TEST(UdpSocketTest, answers_from_the_address_that_was_asked) {
  EpollLoop loop;
  auto server = UdpSocket::open(loop, {"0.0.0.0", 0});
  ASSERT_TRUE(server.ok());
  // All of 127/8 is this machine; the usual source of an answer to it would be 127.0.0.1.
  const Address asked{"127.0.0.2", server->local().port};
  auto client = UdpSocket::connect(loop, *numeric_address(asked));
  ASSERT_TRUE(client.ok() && client->send(bytes_of("question")).ok());
  std::vector<std::byte> room(16);
  server->when_readable([&] {
    const auto question = server->try_receive(room);
    ASSERT_TRUE(question.ok() && question->has_value());
    EXPECT_EQ((*question)->at.address().host, "127.0.0.2");
    EXPECT_TRUE(server->send_to(bytes_of("answer"), (*question)->from, (*question)->at).ok());
  });
  client->when_readable([&] {
    const auto answer = client->try_receive(room);
    ASSERT_TRUE(answer.ok() && answer->has_value());
    EXPECT_EQ((*answer)->from.address(), asked);
    loop.stop();
  });
  loop.run();
}

TEST(UdpSocketTest, leaves_from_an_address_that_was_asked_for_where_the_machine_has_it) {
  EpollLoop loop;
  auto peer = UdpSocket::open(loop, {"127.0.0.1", 0});
  const SocketAddress to = *numeric_address(peer->local());
  for (const auto& [from, seen] : {std::pair{"127.0.0.2", "127.0.0.2"},
                                   {"192.0.2.1", "127.0.0.1"},
                                   {"::1", "127.0.0.1"},
                                   {"", "127.0.0.1"}}) {
    auto socket = UdpSocket::connect(loop, to, from);
    ASSERT_TRUE(socket.ok()) << from;
    EXPECT_EQ(socket->local().host, seen) << from;
  }
}

TEST(UdpSocketTest, says_when_nobody_listens) {
  EpollLoop loop;
  auto closed = UdpSocket::open(loop, {"127.0.0.1", 0});
  const SocketAddress nobody = *numeric_address(closed->local());
  closed->close();
  auto client = UdpSocket::connect(loop, nobody);
  ASSERT_TRUE(client.ok() && client->send(bytes_of("question")).ok());
  std::vector<std::byte> room(16);
  client->when_readable([&] {
    EXPECT_EQ(client->try_receive(room).error(), Reason::ConnectionRefused);
    loop.stop();
  });
  loop.run();
}

TEST(TcpListenerTest, takes_connections_at_the_path_of_a_Unix_socket) {
  EpollLoop loop;
  std::string folder = ::testing::TempDir() + "stag-net-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const Address at{folder + "/socket", 0};
  auto listener = TcpListener::listen(loop, at);
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(listener->local(), at);
  EXPECT_EQ(to_string(at), folder + "/socket");
  const auto greet = [](EpollLoop* on, AcceptedSocket accepted) -> Task<> {
    auto socket = TcpSocket::adopt(*on, std::move(accepted));
    const auto written = co_await socket->write_all(Rope::borrow(bytes_of("hello")));
    EXPECT_TRUE(written.ok());
  };
  listener->start([&](AcceptedSocket accepted) { detach(greet(&loop, std::move(accepted))); });
  std::vector<std::byte> received;
  const auto client = [](EpollLoop* on, Address to, std::vector<std::byte>* all) -> Task<> {
    auto socket = co_await connect(*on, to);
    EXPECT_TRUE(socket.ok());
    Reason end;
    if (socket.ok()) co_await read_until_end(&*socket, 16, all, &end);
  };
  run(loop, client(&loop, at, &received));
  EXPECT_EQ(text_of(received), "hello");
  unlink(at.host.c_str());
  rmdir(folder.c_str());
  EXPECT_FALSE(numeric_address({"/" + std::string(200, 'x'), 0}).has_value());
}

TEST(SocketAddress, prints_what_it_was_made_of) {
  EXPECT_EQ(to_string(numeric_address({"127.0.0.1", 2049})->address()), "127.0.0.1:2049");
  EXPECT_EQ(to_string(numeric_address({"2001:db8::1", 20049})->address()), "[2001:db8::1]:20049");
  EXPECT_EQ(numeric_address({"::ffff:192.0.2.7", 1})->address().host, "192.0.2.7");
  EXPECT_FALSE(numeric_address({"localhost", 1}).has_value());
}

}  // namespace
}  // namespace stag::net
