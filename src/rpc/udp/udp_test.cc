#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/late_detail.h"
#include "base/reason.h"
#include "base/task_group.h"
#include "oncrpc/message.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "rpc/udp/channel.h"
#include "rpc/udp/server.h"
#include "testing/failing_program.h"
#include "testing/following_observer.h"
#include "testing/store_service.h"

namespace stag::rpc::udp {
namespace {

using namespace testing::store;
using namespace std::chrono_literals;
using net::EpollLoop;
using net::UdpSocket;

void run(EpollLoop& loop, Task<> task) {
  const auto body = [](EpollLoop* on, Task<> inner) -> Task<> {
    co_await std::move(inner);
    on->stop();
  };
  loop.post([&] { detach(body(&loop, std::move(task))); });
  loop.run();
}

ChannelOptions quick() {
  ChannelOptions options;
  options.retransmit_min = 2ms;
  options.retransmit_max = 10ms;
  options.seed = 7;
  return options;
}

std::uint64_t seen(Reason reason) {
  return reason_counters().of(reason);
}

// A client and the store program over loopback UDP.
struct World {
  explicit World(const char* host = "127.0.0.1", const ServerOptions& options = {}) {
    programs.add(make_program(state));
    server = UdpServer::serve(loop, *UdpSocket::open(loop, {host, 0}), programs, options);
    channel = std::make_unique<UdpChannel>(loop, server->local(), quick());
    client.emplace(*channel, kBinding);
  }
  void run_test(Task<> (*test)(World&)) { run(loop, whole(this, test)); }
  static Task<> whole(World* world, Task<> (*test)(World&)) {
    const auto opened = co_await world->channel->open({});
    EXPECT_TRUE(opened.ok());
    co_await test(*world);
    co_await world->channel->close();
    co_await world->server->close();
  }

  EpollLoop loop;
  State state;
  Server programs;
  std::unique_ptr<UdpServer> server;
  std::unique_ptr<UdpChannel> channel;
  std::optional<Client> client;
};

// A peer with a socket of its own.
struct Stranger {
  explicit Stranger(EpollLoop& loop, const char* host = "127.0.0.1")
      : loop(loop), socket(*UdpSocket::open(loop, {host, 0})) {}
  // The next datagram, and who sent it.
  Task<Buffer> receive() {
    std::vector<std::byte> room(kLongestDatagram);
    for (;;) {
      const auto datagram = socket.try_receive(room);
      EXPECT_TRUE(datagram.ok());
      if (datagram->has_value()) {
        from = (*datagram)->from;
        co_return Buffer::copy_of(Bytes(room).first((*datagram)->size));
      }
      Completion<Ok> readable;
      socket.when_readable([&readable] { readable.complete(Ok{}); });
      co_await readable;
    }
  }
  void send(Bytes datagram, const net::SocketAddress& to) {
    EXPECT_TRUE(socket.send_to(datagram, to).ok());
  }
  EpollLoop& loop;
  UdpSocket socket;
  net::SocketAddress from;
};

Buffer reply_with(std::uint32_t xid, std::uint32_t value) {
  xdr::Encoder encoder;
  oncrpc::ReplyHeader header;
  header.xid = xid;
  oncrpc::encode(encoder, header);
  encoder.u32(value);
  return std::move(encoder).finish().rope().flatten();
}

Buffer call_of(std::uint32_t xid, std::uint32_t procedure) {
  xdr::Encoder encoder;
  oncrpc::CallHeader header;
  header.xid = xid;
  header.program = kProgram;
  header.version = kVersion;
  header.procedure = procedure;
  oncrpc::encode(encoder, header);
  return std::move(encoder).finish().rope().flatten();
}

std::uint32_t xid_of(const Buffer& message) {
  return load_be<std::uint32_t>(message.data());
}

TEST(Udp, carries_calls_and_replies_in_one_datagram_each) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    World world(host);
    world.run_test([](World& w) -> Task<> {
      auto one = co_await w.client->call<INCREMENT>(41u);
      EXPECT_TRUE(one.ok() && *one == 42u);
      const Rope data = pattern(60'000, 5);
      const PutArgs put{.slot = 1, .data = data, .checksum = checksum(data)};
      auto stored = co_await w.client->call<PUT>(put);
      EXPECT_TRUE(stored.ok() && stored->checksum == checksum(data));
      const GetArgs get{.slot = 1, .count = 400};
      auto back = co_await w.client->call<GET>(get);
      EXPECT_TRUE(back.ok() && back->data == pattern(400, 5));
    });
  }
}

TEST(UdpServer, answers_SYSTEM_ERR_for_handlers_that_throw) {
  World world;
  std::uint32_t executed = 0;
  world.programs.add(testing::failing_program(executed));
  world.run_test([](World& w) -> Task<> {
    for (std::uint32_t how = 1; how < static_cast<std::uint32_t>(testing::Failing::Count); ++how) {
      auto failed = co_await w.client->call<testing::FAIL>(how);
      EXPECT_FALSE(failed.ok());
      EXPECT_EQ(failed.error().status,
                oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::SYSTEM_ERR));
    }
    auto pong = co_await w.client->ping(kProgram, kVersion);
    EXPECT_TRUE(pong.ok());
  });
}

TEST(Udp, says_that_a_call_is_longer_than_a_datagram) {
  World world;
  world.run_test([](World& w) -> Task<> {
    const Rope data = pattern(66'000, 5);
    const PutArgs put{.slot = 1, .data = data, .checksum = 0};
    auto stored = co_await w.client->call<PUT>(put);
    EXPECT_FALSE(stored.ok());
    EXPECT_EQ(stored.error().reason, Reason::RpcCallTooLong);
    EXPECT_EQ(w.state.executed, 0u);
  });
}

Task<> expect_no_answer(World& w) {
  const std::uint64_t before = seen(Reason::PeerNotAllowed);
  CallOptions call;
  call.timeout = 20ms;
  const auto answer = co_await w.client->ping(kProgram, kVersion, call);
  EXPECT_FALSE(answer.ok());
  EXPECT_GT(seen(Reason::PeerNotAllowed), before);
}
Task<> expect_answer(World& w) {
  const auto answer = co_await w.client->ping(kProgram, kVersion);
  EXPECT_TRUE(answer.ok());
}

TEST(UdpServer, answers_only_those_it_is_allowed_to) {
  ServerOptions options;
  options.allow = {*IpNetwork::parse("192.0.2.0/24")};
  World strangers("127.0.0.1", options);
  strangers.run_test(expect_no_answer);
  options.allow.push_back(*IpNetwork::parse("127.0.0.1"));
  World friends("127.0.0.1", options);
  friends.run_test(expect_answer);
}

// A forged sender would be flooded with them.
TEST(UdpServer, drops_a_reply_that_is_many_times_longer_than_its_call) {
  World world;
  world.run_test([](World& w) -> Task<> {
    const std::uint64_t before = seen(Reason::RpcReplyTooLong);
    const Rope data = pattern(2000, 5);
    const PutArgs put{.slot = 1, .data = data, .checksum = checksum(data)};
    auto stored = co_await w.client->call<PUT>(put);
    EXPECT_TRUE(stored.ok());
    CallOptions patience;
    patience.timeout = 20ms;
    const GetArgs get{.slot = 1, .count = 2000};
    auto back = co_await w.client->call<GET>(get, patience);
    EXPECT_FALSE(back.ok());
    EXPECT_EQ(back.error().reason, Reason::TimedOut);
    EXPECT_GT(seen(Reason::RpcReplyTooLong), before);
  });
}

// The reply to GET is longer than its call lets it be.
Task<> put_and_get_in_vain(World& w) {
  const Rope data = pattern(2000, 5);
  const PutArgs put{.slot = 1, .data = data, .checksum = checksum(data)};
  EXPECT_TRUE((co_await w.client->call<PUT>(put)).ok());
  CallOptions patience;
  patience.timeout = 20ms;
  const GetArgs get{.slot = 1, .count = 2000};
  EXPECT_FALSE((co_await w.client->call<GET>(get, patience)).ok());
}

TEST(UdpServer, says_by_its_XID_which_call_has_no_reply) {
  static std::string said;
  set_trace_sink([](Reason reason, std::string_view, std::string_view) {
    if (reason == Reason::RpcReplyTooLong) said = late_detail();
  });
  World world;
  world.run_test(put_and_get_in_vain);
  set_trace_sink(nullptr);
  EXPECT_THAT(said, ::testing::MatchesRegex("xid 0x[0-9a-f]{8}"));
}

TEST(UdpServer, tells_who_follows_calls_which_came_and_which_replies_left) {
  testing::FollowingObserver observer;
  World world;
  world.programs.observe(observer);
  world.run_test(put_and_get_in_vain);
  ASSERT_GE(observer.arrived.size(), 2u);
  EXPECT_GT(observer.arrived.front().bytes, 2000u);
  EXPECT_LT(observer.arrived.back().bytes, 100u);
  ASSERT_EQ(observer.answered.size(), observer.arrived.size());
  EXPECT_EQ(observer.answered.front().xid, observer.arrived.front().xid);
  EXPECT_TRUE(observer.answered.front().sent);
  EXPECT_GT(observer.answered.back().bytes, 2000u);
  EXPECT_FALSE(observer.answered.back().sent);
}

Task<> increment_into(Client& client, std::optional<CallResult<std::uint32_t>>& result) {
  result = co_await client.call<INCREMENT>(1u);
}

TEST(UdpChannel, sends_a_call_again_with_the_same_XID_until_it_is_answered) {
  EpollLoop loop;
  Stranger server(loop);
  run(loop, [](EpollLoop* on, Stranger* stranger) -> Task<> {
    UdpChannel channel(*on, stranger->socket.local(), quick());
    const auto opened = co_await channel.open({});
    EXPECT_TRUE(opened.ok());
    Client client(channel, kBinding);
    std::optional<CallResult<std::uint32_t>> result;
    TaskGroup calls;
    calls.add(increment_into(client, result));
    const Buffer first = co_await stranger->receive();
    const Buffer second = co_await stranger->receive();
    const Buffer third = co_await stranger->receive();
    EXPECT_EQ(Rope(first), Rope(second));
    EXPECT_EQ(Rope(first), Rope(third));
    stranger->send(reply_with(xid_of(first), 5).bytes(), stranger->from);
    co_await calls.join();
    EXPECT_TRUE(result->ok() && **result == 5u);
    co_await channel.close();
  }(&loop, &server));
}

TEST(UdpChannel, takes_replies_of_its_server_with_the_right_XID_only) {
  EpollLoop loop;
  Stranger server(loop), other(loop);
  run(loop, [](EpollLoop* on, Stranger* right, Stranger* wrong) -> Task<> {
    ChannelOptions patient = quick();
    patient.retransmit_min = 60s;
    UdpChannel channel(*on, right->socket.local(), patient);
    const auto opened = co_await channel.open({});
    EXPECT_TRUE(opened.ok());
    Client client(channel, kBinding);
    std::optional<CallResult<std::uint32_t>> result;
    TaskGroup calls;
    calls.add(increment_into(client, result));
    const Buffer call = co_await right->receive();
    const std::uint64_t unmatched = seen(Reason::RpcReplyUnmatched);
    const std::uint64_t cut = seen(Reason::RpcMessageTruncated);
    wrong->send(reply_with(xid_of(call), 1).bytes(), right->from);
    right->send(reply_with(xid_of(call) + 1, 2).bytes(), right->from);
    right->send(call.bytes(), right->from);
    right->send(call.bytes().first(3), right->from);
    right->send({}, right->from);
    right->send(reply_with(xid_of(call), 5).bytes(), right->from);
    co_await calls.join();
    EXPECT_TRUE(result->ok() && **result == 5u);
    EXPECT_EQ(seen(Reason::RpcReplyUnmatched), unmatched + 1);
    EXPECT_EQ(seen(Reason::RpcMessageTruncated), cut + 2);
    co_await channel.close();
  }(&loop, &server, &other));
}

TEST(UdpChannel, may_be_closed_and_let_go_by_the_call_that_was_answered) {
  World world;
  world.run_test([](World& w) -> Task<> {
    UdpConnector connector(w.loop, quick());
    const Address at = w.server->local();
    auto channel = co_await connector.connect(at, {});
    EXPECT_TRUE(channel.ok());
    if (!channel) co_return;
    Client client(**channel, kBinding);
    const auto one = co_await client.call<INCREMENT>(41u);
    EXPECT_TRUE(one.ok() && *one == 42u);
    co_await (*channel)->close();
    channel->reset();
  });
}

TEST(UdpChannel, says_that_nobody_listens_when_time_runs_out) {
  EpollLoop loop;
  Address nowhere;
  {
    auto socket = UdpSocket::open(loop, {"127.0.0.1", 0});
    nowhere = socket->local();
  }
  run(loop, [](EpollLoop* on, Address to) -> Task<> {
    UdpConnector connector(*on, quick());
    auto channel = co_await connector.connect(to, {});
    EXPECT_TRUE(channel.ok());
    Client client(**channel, kBinding);
    CallOptions options;
    options.timeout = 30ms;
    auto result = co_await client.call<INCREMENT>(1u, options);
    EXPECT_EQ(result.error().reason, Reason::ConnectionRefused);
    EXPECT_NE(result.error().message().find("udp " + to_string(to)), std::string::npos);
    co_await (*channel)->close();
  }(&loop, nowhere));
}

Task<> cancelled_into(Client& client, CancelToken cancel, Reason& outcome) {
  CallOptions options;
  options.cancel = cancel;
  auto result = co_await client.call<INCREMENT>(1u, options);
  outcome = result.ok() ? Reason::None : result.error().reason;
}

TEST(UdpChannel, ends_calls_that_are_cancelled_or_cut_short_by_its_closing) {
  EpollLoop loop;
  Stranger silent(loop);
  run(loop, [](EpollLoop* on, Stranger* stranger) -> Task<> {
    UdpChannel channel(*on, stranger->socket.local(), quick());
    const auto opened = co_await channel.open({});
    EXPECT_TRUE(opened.ok());
    Client client(channel, kBinding);
    CancelSource source;
    Reason cancelled = Reason::None, closed = Reason::None;
    TaskGroup calls;
    calls.add(cancelled_into(client, source, cancelled));
    calls.add(cancelled_into(client, {}, closed));
    const Buffer sent = co_await stranger->receive();
    EXPECT_FALSE(sent.empty());
    source.cancel();
    co_await calls.at_most(1);
    EXPECT_EQ(cancelled, Reason::Cancelled);
    co_await channel.close();
    co_await calls.join();
    EXPECT_EQ(closed, Reason::Shutdown);
    auto late = co_await client.call<INCREMENT>(1u);
    EXPECT_EQ(late.error().reason, Reason::Shutdown);
  }(&loop, &silent));
}

TEST(UdpServer, drops_what_is_no_call_and_goes_on) {
  World world;
  world.run_test([](World& w) -> Task<> {
    Stranger stranger(w.loop);
    const net::SocketAddress to = *net::numeric_address(w.server->local());
    const std::uint64_t cut = seen(Reason::RpcMessageTruncated);
    const std::uint64_t replies = seen(Reason::RpcReplyUnmatched);
    const Buffer call = call_of(9, 0);
    for (std::size_t size = 0; size < 24; ++size) stranger.send(call.bytes().first(size), to);
    stranger.send(reply_with(9, 5).bytes(), to);
    std::vector<std::byte> noise(5000, std::byte{0xEE});
    stranger.send(noise, to);
    stranger.send(call_of(77, 0).bytes(), to);
    const Buffer answer = co_await stranger.receive();
    EXPECT_EQ(xid_of(answer), 77u) << "nothing before it was answered";
    EXPECT_GE(seen(Reason::RpcMessageTruncated), cut + 8);
    EXPECT_EQ(seen(Reason::RpcReplyUnmatched), replies + 1);
  });
}

// Holds every Call until it is told to let go.
class Holding final : public Service {
 public:
  Task<std::optional<OutgoingReply>> serve(IncomingCall& call) override {
    EXPECT_EQ(call.origin->transport, TransportKind::Udp);
    EXPECT_EQ(call.origin->netid, "udp");
    Completion<Ok> wait;
    waiting.push_back(&wait);
    if (waiting.size() == awaited) all_there.complete(Ok{});
    co_await wait;
    co_return std::nullopt;
  }
  void let_go() {
    for (Completion<Ok>* each : std::exchange(waiting, {})) each->complete(Ok{});
  }
  std::size_t awaited = 0;
  Completion<Ok> all_there;
  std::vector<Completion<Ok>*> waiting;
};

TEST(UdpServer, serves_a_bounded_number_of_calls_and_waits_for_them_when_it_closes) {
  EpollLoop loop;
  run(loop, [](EpollLoop* on) -> Task<> {
    Holding service;
    service.awaited = 3;
    ServerOptions options;
    options.max_calls = 3;
    auto server = UdpServer::serve(*on, *UdpSocket::open(*on, {"127.0.0.1", 0}), service, options);
    const std::uint64_t before = seen(Reason::RpcTooManyCalls);
    static std::vector<std::string> said;
    said.clear();
    set_trace_sink([](Reason reason, std::string_view, std::string_view) {
      if (reason == Reason::RpcTooManyCalls) said.push_back(late_detail());
    });
    const net::SocketAddress to = *net::numeric_address(server->local());
    std::uint32_t xid = 0;
    for (const char* host : {"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"})
      Stranger(*on, host).send(call_of(++xid, 0).bytes(), to);
    co_await service.all_there;
    while (seen(Reason::RpcTooManyCalls) < before + 2) co_await resume_on(*on);
    set_trace_sink(nullptr);
    EXPECT_THAT(said, ::testing::ElementsAre("xid 0x00000004", "xid 0x00000005"));
    EXPECT_EQ(service.waiting.size(), 3u);
    on->post([&service] { service.let_go(); });
    co_await server->close();
    EXPECT_TRUE(service.waiting.empty());
  }(&loop));
}

TEST(UdpServer, leaves_places_for_others_when_one_address_has_many_calls_in_progress) {
  EpollLoop loop;
  run(loop, [](EpollLoop* on) -> Task<> {
    Holding service;
    ServerOptions options;
    options.max_calls = 20;
    // Two of one address, as eight times as many stay free, and one of another.
    service.awaited = 3;
    auto server = UdpServer::serve(*on, *UdpSocket::open(*on, {"127.0.0.1", 0}), service, options);
    const std::uint64_t before = seen(Reason::RpcTooManyCalls);
    const net::SocketAddress to = *net::numeric_address(server->local());
    Stranger greedy(*on, "127.0.0.2");
    for (std::uint32_t xid = 0; xid < 20; ++xid) greedy.send(call_of(xid, 0).bytes(), to);
    while (seen(Reason::RpcTooManyCalls) < before + 18) co_await resume_on(*on);
    EXPECT_EQ(service.waiting.size(), 2u);
    Stranger(*on, "127.0.0.3").send(call_of(1, 0).bytes(), to);
    co_await service.all_there;
    on->post([&service] { service.let_go(); });
    co_await server->close();
  }(&loop));
}

// A socket whose every use fails while the loop goes on seeing that something waits in it.
class Broken {
 public:
  explicit Broken(const Address& local) {
    while (net::SocketAddress::local_of(fd_).address() != local) ++fd_;
    whole_ = UniqueFd(::dup(fd_));
    const UniqueFd useless(::open("/", O_PATH));
    ::dup2(useless.fd(), fd_);
  }
  ~Broken() { ::dup2(whole_.fd(), fd_); }
  Broken(const Broken&) = delete;

 private:
  int fd_ = 0;
  UniqueFd whole_;
};

// Sends the server a Call and returns once its socket has failed so often that it pauses.
Task<> make_it_pause(World& w, Stranger& stranger) {
  const std::uint64_t before = seen(Reason::SocketClosed);
  stranger.send(call_of(77, 0).bytes(), *net::numeric_address(w.server->local()));
  while (seen(Reason::SocketClosed) < before + kFailuresBeforePause) co_await resume_on(w.loop);
}

TEST(UdpServer, does_not_ask_a_socket_that_fails_again_in_every_turn) {
  ServerOptions options;
  options.pause = 1h;
  World world("127.0.0.1", options);
  world.run_test([](World& w) -> Task<> {
    Stranger stranger(w.loop);
    const Broken socket(w.server->local());
    co_await make_it_pause(w, stranger);
    const std::uint64_t then = seen(Reason::SocketClosed);
    for (int turn = 0; turn < 100; ++turn) co_await resume_on(w.loop);
    EXPECT_EQ(seen(Reason::SocketClosed), then);
  });
}

TEST(UdpServer, answers_after_the_pause_what_came_while_its_socket_failed) {
  ServerOptions options;
  options.pause = 1ms;
  World world("127.0.0.1", options);
  world.run_test([](World& w) -> Task<> {
    Stranger stranger(w.loop);
    std::optional<Broken> socket(w.server->local());
    co_await make_it_pause(w, stranger);
    socket.reset();
    const Buffer answer = co_await stranger.receive();
    EXPECT_EQ(xid_of(answer), 77u);
  });
}

TEST(UdpServer, executes_once_what_is_sent_twice) {
  World world;
  world.run_test([](World& w) -> Task<> {
    Stranger stranger(w.loop);
    const net::SocketAddress to = *net::numeric_address(w.server->local());
    xdr::Encoder encoder;
    oncrpc::CallHeader header;
    header.xid = 4711;
    header.program = kProgram;
    header.version = kVersion;
    header.procedure = ADD_ONCE::number;
    oncrpc::encode(encoder, header);
    encoder.u32(10);
    const Buffer call = std::move(encoder).finish().rope().flatten();
    stranger.send(call.bytes(), to);
    stranger.send(call.bytes(), to);
    const Buffer first = co_await stranger.receive();
    stranger.send(call.bytes(), to);
    const Buffer second = co_await stranger.receive();
    EXPECT_EQ(Rope(first), Rope(second));
    EXPECT_EQ(w.state.total, 10u);
  });
}

// As telling of a failure does where there is no memory for the sentence.
TEST(DatagramReceiver, hears_the_next_datagram_when_telling_of_one_that_was_dropped_fails) {
  EpollLoop loop;
  auto socket = net::UdpSocket::open(loop, {"127.0.0.1", 0});
  auto sender = net::UdpSocket::open(loop, {"127.0.0.1", 0});
  ASSERT_TRUE(socket.ok() && sender.ok());
  const net::SocketAddress to = *net::numeric_address(socket->local());
  const std::array<std::byte, 2> flood{};
  int failures = 0;
  bool heard = false;
  Timer next;
  // Again and again, for one that comes while the flood is still read may be dropped with it.
  const std::function<void()> send_one_more = [&] {
    EXPECT_TRUE(sender->send_to(Bytes(flood).first(1), to).ok());
    next = loop.after(10ms, [&] { send_one_more(); });
  };
  const Timer end = loop.after(10s, [&] { loop.stop(); });
  const DatagramReceiver inbox(
      *socket, loop, 1h,
      [&](Bytes bytes, const net::Datagram&) {
        heard = heard || bytes.size() == 1;
        if (heard) loop.stop();
      },
      [&](Reason) {
        if (failures++ == 0) send_one_more();
        throw std::bad_alloc();
      });
  // As many as make the socket count as flooded, and one sender's share of a turn end.
  constexpr int kMany = 5 * DatagramShares::kServedPerTurn + 20;
  for (int i = 0; i < kMany; ++i) ASSERT_TRUE(sender->send_to(flood, to).ok());
  loop.run();
  EXPECT_GT(failures, 0);
  EXPECT_TRUE(heard);
  socket->close();
}

TEST(DatagramReceiver, reads_little_at_a_time_while_others_of_the_loop_wait) {
  EpollLoop loop;
  auto flooded = net::UdpSocket::open(loop, {"127.0.0.1", 0});
  auto quiet = net::UdpSocket::open(loop, {"127.0.0.1", 0});
  auto sender = net::UdpSocket::open(loop, {"127.0.0.1", 0});
  ASSERT_TRUE(flooded.ok() && quiet.ok() && sender.ok());
  const std::array<std::byte, 1> byte{};
  for (int i = 0; i < DatagramShares::kServedPerTurn; ++i)
    ASSERT_TRUE(sender->send_to(byte, *net::numeric_address(flooded->local())).ok());
  ASSERT_TRUE(sender->send_to(byte, *net::numeric_address(quiet->local())).ok());
  int of_flood = 0, before_quiet = -1;
  const auto count = [&](Bytes, const net::Datagram&) {
    if (++of_flood == DatagramShares::kServedPerTurn) loop.stop();
  };
  const auto note = [&](Bytes, const net::Datagram&) { before_quiet = of_flood; };
  const DatagramReceiver first(*flooded, loop, 1h, count, [](Reason) {});
  const DatagramReceiver second(*quiet, loop, 1h, note, [](Reason) {});
  loop.run();
  EXPECT_LE(before_quiet, kReadBeforeOthers);
  EXPECT_GE(before_quiet, 0) << "it was not read at all before the flood was over";
  flooded->close();
  quiet->close();
}

TEST(CallShares, let_each_address_have_one_call_and_further_ones_by_what_stays_free) {
  CallShares shares(64);
  std::vector<CallShares::Place> greedy;
  const auto take_all = [&](const std::string& host) {
    std::size_t count = 0;
    for (; auto place = shares.take(host); ++count) greedy.push_back(std::move(place));
    return count;
  };
  EXPECT_EQ(take_all("one"), 7u);
  greedy.clear();
  EXPECT_EQ(take_all("one"), 7u) << "all were given back";
  std::size_t taken = 7;
  for (int i = 0; i < 15; ++i) taken += take_all("other" + std::to_string(i));
  EXPECT_LE(taken, 56u);
  for (int i = 0; taken < 64; ++i, ++taken)
    greedy.push_back(shares.take("new" + std::to_string(i)));
  EXPECT_TRUE(greedy.back());
  EXPECT_FALSE(shares.take("newest")) << "there is no place at all";
}

TEST(DatagramShares, serve_each_sender_of_a_flooded_socket_once_beyond_a_turns_work) {
  DatagramShares shares;
  const auto served_of_flood = [&] {
    int served = 0;
    for (int i = 0; shares.may_read(); ++i)
      served += shares.serves([&] { return std::string(i == 200 ? "modest" : "flood"); }) ? 1 : 0;
    return served;
  };
  // A burst is served turn by turn, and nothing of it is dropped.
  for (int turn = 0; turn < 4; ++turn) {
    shares.begin_turn();
    EXPECT_FALSE(shares.flooded());
    EXPECT_EQ(served_of_flood(), DatagramShares::kServedPerTurn);
    shares.end_turn(false);
  }
  shares.begin_turn();
  EXPECT_TRUE(shares.flooded());
  EXPECT_EQ(served_of_flood(), DatagramShares::kServedPerTurn + 1) << "the modest one, too";
  shares.end_turn(true);
  EXPECT_FALSE(shares.flooded());
}

}  // namespace
}  // namespace stag::rpc::udp
