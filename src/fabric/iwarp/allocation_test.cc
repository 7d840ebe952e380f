// Memory runs out at any moment of a connection's life: that connection ends or goes on, at both
// ends, its owner is told all that is its, others of the loop go on, and the listener takes the
// next one. The whole program's operator new fails when told to.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>
#include <thread>

#include "fabric/iwarp/raw_peer_test.h"
#include "fabric/iwarp/transmit_queue.h"
#include "testing/failing_new.h"
#include "testing/iwarp_harness.h"

namespace stag::fabric::testing {
namespace {

using stag::testing::allocations_until_failure;
using stag::testing::failed_allocations;
using stag::testing::failure_lasts;
using stag::testing::live_allocations;

// What happens as long as this lives finds memory.
struct Spared {
  Spared() : left(std::exchange(allocations_until_failure, 0)) {}
  ~Spared() { allocations_until_failure = left; }
  const std::size_t left;
};

// Keeps count, and asks for no memory.
struct Owner final : Events {
  void on_receive(Buffer, std::optional<std::uint32_t>) override { ++messages; }
  void on_done(Token token, Reason outcome) override {
    EXPECT_FALSE(ended);
    ++done[token];
    last_outcome = outcome;
  }
  void on_revoked(std::uint32_t) override {}
  void on_disconnect(Reason why) override {
    EXPECT_FALSE(ended);
    ended = why;
  }
  // Closes the connection where there is no memory, as the owner does; whether there was.
  template <class F>
  bool perform(F&& operation) {
    if (connection == nullptr || ended) return false;
    try {
      operation(*connection);
      return true;
    } catch (const std::bad_alloc&) {
      connection->close(Reason::OutOfMemory);
      return false;
    }
  }
  template <class F>
  void post(Token token, F&& operation) {
    if (perform(operation)) ++posted[token];
  }
  void say() { connection->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, kNoToken); }

  std::unique_ptr<Connection> connection;
  int messages = 0;
  std::array<int, 16> posted{}, done{};  // by token
  std::optional<Reason> ended, last_outcome;
};

// Gives the next connection to `next`.
struct Accepting final : Acceptor {
  Result<ConnectOptions, Reason> on_connect_request(const ConnectRequest&) override {
    return options;
  }
  void on_connection(std::unique_ptr<Connection> made) override {
    next->connection = std::move(made);
    next->connection->start(*next);
  }
  ConnectOptions options;
  Owner* next = nullptr;
};

IwarpOptions options_of_fabric() {
  IwarpOptions options;
  options.write_message = 16 * 1024;  // Writes are cut into several
  options.max_ulpdu = 4096;           // and messages too
  options.wakeup_write_after = Duration(1);
  return options;
}

// Pairs of connections on one loop.
class World {
 public:
  explicit World(Duration setup_timeout = std::chrono::hours(1))
      : harness_(options_of_fabric(), "127.0.0.1") {
    acceptor_.options.receive = {40, 40'000};
    acceptor_.options.private_data = unhex("f6ab0e18 01010303");
    acceptor_.options.stall_limit = std::chrono::hours(1);
    // A connection that waits for ever fails the test, not this.
    acceptor_.options.timeout = std::chrono::hours(1);
    ListenOptions listening;
    listening.setup_timeout = setup_timeout;
    listener_ = *harness_.fabric().listen({"127.0.0.1", 0}, listening, acceptor_);
  }
  Address address() const { return listener_->local_address(); }
  Loop& loop() { return harness_.loop(); }
  // A connection of a peer that the test speaks for.
  RawPeer accept(Owner& passive) {
    acceptor_.next = &passive;
    RawPeer peer = RawPeer::connected(address());
    peer.send(unhex(kRequest));
    STAG_CHECK(run_until([&] { return passive.connection != nullptr; }));
    return peer;
  }
  // Whether it has found out by the end of `count` turns, in which memory may run out.
  bool connect(Owner& active, Owner& passive, int count) {
    acceptor_.next = &passive;
    bool tried = false;
    {
      const Spared spared;
      auto task = connecting(harness_.fabric(), listener_->local_address(), acceptor_.options,
                             active, tried);
      const Spared beginning;
      detach(std::move(task));
    }
    turns(count);
    const Spared spared;
    return run_until([&] { return tried; });
  }
  void join(Owner& active, Owner& passive) {
    STAG_CHECK(connect(active, passive, 0) && active.connection != nullptr);
    STAG_CHECK(run_until([&] { return passive.connection != nullptr; }));
    active.say();
    STAG_CHECK(run_until([&] { return passive.messages == 1; }));
    // A side that has received something has no more to do of itself.
    passive.say();
    STAG_CHECK(run_until([&] { return active.messages == 1; }));
  }
  // The harness's own steps find memory.
  bool run_until(const std::function<bool()>& predicate) {
    const Spared spared;
    return harness_.run_until(predicate);
  }
  // Some turns, in which memory runs out.
  void turns(int count) {
    std::function<void()> next;
    {
      const Spared spared;
      next = [&] {
        const Spared posting;
        if (--count < 0) return harness_.loop().stop();
        harness_.loop().post([&next] { next(); });
      };
      next();
    }
    harness_.loop().run();
  }

 private:
  static Task<void> connecting(Fabric& fabric, Address to, ConnectOptions options, Owner& active,
                               bool& tried) {
    try {
      auto made = co_await fabric.connect(std::move(to), std::move(options), {});
      if (made) {
        active.connection = *std::move(made);
        active.connection->start(active);
      }
    } catch (const std::bad_alloc&) {
    }
    tried = true;
  }

  stag::testing::IwarpHarness harness_;
  Accepting acceptor_;
  std::unique_ptr<Listener> listener_;
};

constexpr int kTurns = 40;

enum class End : std::uint8_t { Close, PeerGoes };

// What two do with each other, and the memory for that.
class Conversation {
 public:
  Conversation(World& world, Owner& active, Owner& passive)
      : world_(world), active_(active), passive_(passive) {
    for (std::size_t at = 0; at < kLarge; at += kLarge / 6)
      large_.append(Buffer::borrow(data().subspan(at, kLarge / 6)));
    for (std::size_t size = 256; size <= 64 * 1024; size *= 2)
      for (int i = 0; i < 8; ++i) kept_.push_back(Block::allocate(size));
  }
  void run() {
    active_.perform([&](Connection& on) {
      if (const auto exposed = on.expose_sink(*sink_)) to_ = *exposed;
      if (const auto exposed = on.expose_source(*source_)) from_ = *exposed;
    });
    call();
    world_.turns(kTurns);
    if (!to_ || !from_) return;
    answer();
    // Some of it is on its way, and the memory is its owner's again.
    world_.turns(3);
    active_.perform([&](Connection& on) { on.abandon(to_->handle); });
    sink_.reset();
    active_.perform([&](Connection& on) { on.abandon(from_->handle); });
    source_.reset();
    world_.turns(kTurns);
    active_.perform([&](Connection& on) { on.revoke(to_->handle); });
    active_.perform([&](Connection& on) { on.revoke(from_->handle); });
  }

 private:
  static constexpr std::size_t kLarge = 60'000, kSmall = 5000;

  Bytes data() const { return data_; }
  void call() {
    for (int i = 0; i < 12; ++i) say(active_, 1);
    active_.post(2, [&](Connection& on) {
      on.send(Rope::borrow(data().first(20'000)), std::nullopt, 0, 2);
    });
    active_.post(3, [&](Connection& on) {
      on.send_copy(std::array{bytes_of("head"), data().first(3000)}, std::nullopt, 0, 3);
    });
  }
  void answer() {
    passive_.post(4, [&](Connection& on) { on.write(large_, *to_, 1, 4); });
    passive_.post(
        5, [&](Connection& on) { on.write(Rope::borrow(data().first(kSmall)), *to_, 2, 5); });
    passive_.post(6, [&](Connection& on) { on.read(*from_, read_, 3, 6); });
    passive_.post(
        7, [&](Connection& on) { on.read(*from_, MutableBytes(read_too_).first(kSmall), 4, 7); });
    for (int i = 0; i < 12; ++i) say(passive_, 8);
  }
  static void say(Owner& side, Token token) {
    side.post(token, [token](Connection& on) {
      on.send(Rope::borrow(bytes_of("x")), std::nullopt, 0, token);
    });
  }

  World& world_;
  Owner& active_;
  Owner& passive_;
  const std::vector<std::byte> data_ = std::vector<std::byte>(kLarge);
  std::vector<std::byte> read_ = std::vector<std::byte>(kLarge), read_too_ = read_;
  Rope large_;  // in more pieces than a Rope has room for
  std::optional<std::vector<std::byte>> sink_{kLarge}, source_{kLarge};
  std::optional<RemoteMemory> to_, from_;
  std::vector<Block> kept_;  // what the thread's free lists had
};

// Everything that a connection does, with its `n`th allocation failing, or all from there on;
// whether it had so many.
bool live(End end, std::size_t n) {
  World world;
  Owner active, passive, witness, its_peer, late, its_late_peer;
  world.join(witness, its_peer);
  Conversation conversation(world, active, passive);
  allocations_until_failure = n;
  EXPECT_TRUE(world.connect(active, passive, kTurns)) << n;
  if (active.connection != nullptr && passive.connection != nullptr) conversation.run();
  if (end == End::Close)
    active.perform([](Connection& on) { on.close(Reason::Shutdown); });
  else
    passive.connection.reset();
  world.turns(kTurns);
  const bool failed = failed_allocations != 0;
  allocations_until_failure = 0;
  EXPECT_TRUE(world.run_until([&] {
    return (active.connection == nullptr || active.ended) &&
           (passive.connection == nullptr || passive.ended);
  })) << n;
  EXPECT_EQ(active.done, active.posted) << n;
  if (passive.ended) {
    EXPECT_EQ(passive.done, passive.posted) << n;
  }
  witness.say();
  EXPECT_TRUE(world.run_until([&] { return its_peer.messages == 2; })) << n;
  world.join(late, its_late_peer);
  return failed;
}

// A thread's free lists begin empty.
template <class Life>
void live_whatever_fails(Life life) {
  for (const bool lasts : {false, true}) {
    const auto in_a_thread = [&](std::size_t n) {
      bool failed = false;
      std::thread([&] {
        failure_lasts = lasts;
        failed = life(n);
      }).join();
      return failed;
    };
    EXPECT_FALSE(in_a_thread(1'000'000));
    const std::ptrdiff_t before = live_allocations;
    std::size_t n = 1;
    for (; in_a_thread(n) && !::testing::Test::HasFailure(); ++n)
      EXPECT_EQ(live_allocations, before);
    EXPECT_GT(n, 5u);
  }
}

TEST(IwarpOutOfMemory, ends_one_connection_at_most_that_its_owner_closes) {
  live_whatever_fails([](std::size_t n) { return live(End::Close, n); });
}

TEST(IwarpOutOfMemory, ends_one_connection_at_most_whose_peer_goes) {
  live_whatever_fails([](std::size_t n) { return live(End::PeerGoes, n); });
}

// A connection request that stays incomplete, with the `n`th allocation failing.
bool wait_for_request(std::size_t n) {
  World world(std::chrono::milliseconds(1));
  RawPeer silent = RawPeer::connected(world.address());
  silent.send(Bytes(unhex(kRequest)).first(10));
  allocations_until_failure = n;
  world.turns(kTurns);
  allocations_until_failure = 0;
  EXPECT_TRUE(world.run_until([&] { return silent.found_end(); })) << n;
  return failed_allocations != 0;
}

TEST(IwarpOutOfMemory, keeps_no_half_open_connection_beyond_its_time) {
  live_whatever_fails(wait_for_request);
}

TEST(IwarpOutOfMemory, leaves_memory_exposed_that_was_before) {
  World world;
  Owner active, passive;
  world.join(active, passive);
  std::vector<std::byte> memory(1000);
  const RemoteMemory first = *active.connection->expose_sink(memory);
  const auto expose_until_a_failure = [&] {
    for (int i = 0; i < 1000; ++i) {
      allocations_until_failure = 1;
      static_cast<void>(active.connection->expose_sink(memory));
    }
  };
  EXPECT_THROW(expose_until_a_failure(), std::bad_alloc);
  allocations_until_failure = 0;
  passive.connection->write(Rope::borrow(bytes_of("data")), first, 0, 1);
  EXPECT_TRUE(world.run_until([&] { return passive.done[1] == 1; }));
  EXPECT_EQ(passive.last_outcome, Reason::None);
  passive.say();
  EXPECT_TRUE(world.run_until([&] { return active.messages == 2 || active.ended; }));
  EXPECT_EQ(text_of(Bytes(memory).first(4)), "data");
}

// Nothing is left: the loop has room neither for a timer nor for what is to run in a later turn,
// and no block of memory is pooled.
class Exhausted {
 public:
  explicit Exhausted(Loop& loop) {
    timers_.reserve(10'000);
    blocks_.reserve(100'000);
    allocations_until_failure = 1;
    failure_lasts = true;
    STAG_CHECK(::getrlimit(RLIMIT_AS, &limit_) == 0);
    const rlimit none{1, limit_.rlim_max};
    STAG_CHECK(::setrlimit(RLIMIT_AS, &none) == 0);
    for (std::size_t size = 4 << 20; size >= 256; size /= 2)
      fill([&] { blocks_.push_back(Block::allocate(size)); });
    fill([&] { timers_.push_back(loop.after(std::chrono::hours(1), [] {})); });
    fill([&] { loop.post([] {}); });
  }
  ~Exhausted() {
    STAG_CHECK(::setrlimit(RLIMIT_AS, &limit_) == 0);
    allocations_until_failure = 0;
    failure_lasts = false;
  }
  Exhausted(const Exhausted&) = delete;
  Exhausted& operator=(const Exhausted&) = delete;

 private:
  template <class F>
  static void fill(F one_more) {
    try {
      for (int i = 0; i < 1'000'000; ++i) one_more();
      STAG_CHECK(false);
    } catch (const std::bad_alloc&) {
    }
  }
  std::vector<Timer> timers_;
  std::vector<Block> blocks_;
  rlimit limit_{};
};

TEST(IwarpOutOfMemory, does_not_keep_a_connection_from_its_end) {
  World world;
  Owner active, passive, other, its_peer;
  world.join(active, passive);
  // Where the loop looks untold whether more has come.
  world.join(other, its_peer);
  {
    const Exhausted exhausted(world.loop());
    active.perform([](Connection& on) { on.close(Reason::Shutdown); });
  }
  EXPECT_TRUE(world.run_until([&] { return active.ended && passive.ended; }));
  EXPECT_EQ(active.ended, Reason::Shutdown);
}

TEST(IwarpOutOfMemory, does_not_keep_a_connection_that_cannot_go_on_from_its_end) {
  World world;
  Owner server;
  RawPeer peer = world.accept(server);
  std::vector<std::byte> source(64 << 20);
  const RemoteMemory memory = *server.connection->expose_source(source);
  // It takes nothing of the answer.
  peer.send(fpdu(read_request(1, memory)));
  EXPECT_TRUE(world.run_until([&] { return server.connection->traffic().read_bytes_out != 0; }));
  world.turns(kTurns);
  Owner other, its_peer;
  world.join(other, its_peer);
  {
    const Exhausted exhausted(world.loop());
    // What is on its way cannot be copied.
    server.perform([&](Connection& on) { on.revoke(memory.handle); });
  }
  EXPECT_TRUE(world.run_until([&] { return server.ended.has_value(); }));
  EXPECT_EQ(server.ended, Reason::OutOfMemory);
}

// As a peer has it that asks for many tiny segments behind bulk data.
TEST(IwarpTransmitQueue, keeps_no_more_than_a_full_load_of_calls_needs) {
  constexpr std::ptrdiff_t kKept = 2 * 256 + 16;
  for (const bool never_empty : {false, true}) {
    const std::ptrdiff_t before = live_allocations;
    TransmitQueue queue(1000, 1000);
    const auto post = [&](Flow flow, OperationKind kind) {
      queue.post({kind, flow, kNoToken, Rope::borrow(bytes_of("x")), {7, 1, 0}, {}, {}});
    };
    for (int i = 0; i < 30'000; ++i) post(static_cast<Flow>(i % 300), OperationKind::Write);
    EXPECT_GT(live_allocations - before, 30'000);
    for (int i = 0; i < 30'000; ++i) {
      if (never_empty) post(1000, OperationKind::Send);
      ASSERT_TRUE(queue.next(true).has_value());
      if (never_empty) {
        ASSERT_TRUE(queue.next(true).has_value());
      }
    }
    if (never_empty) post(1000, OperationKind::Send);
    EXPECT_EQ(queue.empty(), !never_empty);
    EXPECT_LE(live_allocations - before, kKept) << never_empty;
  }
}

TEST(IwarpTransmitQueue, finds_what_it_needs_where_it_left_it) {
  TransmitQueue queue(1000, 1000);
  const auto batch = [&queue] {
    for (Flow flow = 0; flow < 128; ++flow) {
      for (const OperationKind kind : {OperationKind::Write, OperationKind::Send})
        queue.post({kind, flow, kNoToken, Rope::borrow(bytes_of("x")), {7, 1, 0}, {}, {}});
    }
    while (queue.next(true)) {
    }
  };
  batch();
  allocations_until_failure = 1;
  EXPECT_NO_THROW(batch());
  allocations_until_failure = 0;
}

TEST(IwarpRing, gives_back_what_an_unusual_number_of_elements_took) {
  Ring<std::uint64_t> ring;
  const auto fill = [&ring](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) ring.push(i);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(ring.pop(), i);
  };
  const std::ptrdiff_t before = live_allocations;
  fill(5000);
  EXPECT_EQ(live_allocations, before);
  fill(256);
  allocations_until_failure = 1;
  EXPECT_NO_THROW(fill(256));
  allocations_until_failure = 0;
}

}  // namespace
}  // namespace stag::fabric::testing
