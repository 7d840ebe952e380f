// Memory runs out at any moment of a connection's life: that connection ends or goes on, others of
// its loop are told all that is theirs, and nothing is left at the device. The whole program's
// operator new fails when told to; the stub's own allocations do not.
#include <gtest/gtest.h>

#include <thread>

#include "testing/failing_new.h"
#include "testing/verbs_harness.h"

namespace stag::testing {
namespace {

using fabric::kNoToken;
using fabric::stub::StubOptions;

std::size_t kept_until_failure = 0;
void spare(bool begins) {
  if (begins)
    kept_until_failure = std::exchange(allocations_until_failure, 0);
  else
    allocations_until_failure = kept_until_failure;
}

// What happens as long as this lives finds memory.
struct Spared {
  Spared() : left(std::exchange(allocations_until_failure, 0)) {}
  ~Spared() { allocations_until_failure = left; }
  const std::size_t left;
};

// Keeps count, and asks for no memory.
struct Counting final : fabric::Events {
  void on_receive(Buffer, std::optional<std::uint32_t>) override { ++messages; }
  void on_done(fabric::Token, Reason) override { ++done; }
  void on_revoked(std::uint32_t) override { ++revoked; }
  void on_disconnect(Reason why) override { ended = why; }
  // As the owner does that finds no memory for what it is about to post.
  template <class F>
  bool perform(F&& operation) {
    try {
      operation(*connection);
      return true;
    } catch (const std::bad_alloc&) {
      connection->close(Reason::OutOfMemory);
      return false;
    }
  }

  std::unique_ptr<fabric::Connection> connection;
  int messages = 0, done = 0, revoked = 0;
  std::optional<Reason> ended;
};

struct CountingAcceptor final : fabric::Acceptor {
  Result<fabric::ConnectOptions, Reason> on_connect_request(
      const fabric::ConnectRequest&) override {
    return options;
  }
  void on_connection(std::unique_ptr<fabric::Connection> made) override {
    arrived = std::move(made);
  }
  fabric::ConnectOptions options;
  std::unique_ptr<fabric::Connection> arrived;
};

// Pairs of connections on one loop.
class Verbs {
 public:
  Verbs(const StubOptions& device, bool open_regions)
      : harness_(device, "127.0.0.1", {}, open_regions) {
    acceptor_.options.receive = {40, 4096};
    acceptor_.options.receives_max = acceptor_.options.sends_max = 40;
    listener_ = *harness_.fabric().listen({"127.0.0.1", 0}, {}, acceptor_);
  }
  void join(Counting& active, Counting& passive) {
    auto connected =
        harness_.run(harness_.fabric().connect(listener_->local_address(), acceptor_.options, {}));
    STAG_CHECK(connected && connected->ok());
    STAG_CHECK(run_until([this] { return acceptor_.arrived != nullptr; }));
    active.connection = std::move(**connected);
    passive.connection = std::move(acceptor_.arrived);
    active.connection->start(active);
    passive.connection->start(passive);
    say(active);
    STAG_CHECK(run_until([&] { return passive.messages == 1; }));
  }
  static void say(Counting& side) {
    side.connection->send(Rope::borrow(bytes_of("x")), std::nullopt, 0, kNoToken);
  }
  // The harness's own steps find memory.
  template <class F>
  bool run_until(F&& predicate) {
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
  fabric::stub::StubNetwork& stub() { return harness_.stub(); }

 private:
  VerbsHarness harness_;
  CountingAcceptor acceptor_;
  std::unique_ptr<fabric::Listener> listener_;
};

// Everything that a connection does, with its `n`th allocation failing; whether it had so many.
bool live(const StubOptions& device, bool open_regions, std::size_t n) {
  std::vector<std::byte> memory(100'000), other(100'000);
  const Rope large = Rope::borrow(memory);
  Verbs verbs(device, open_regions);
  Counting active, passive, witness, its_peer;
  verbs.join(witness, its_peer);
  verbs.join(active, passive);
  verbs.stub().when_inside(spare);
  allocations_until_failure = n;
  std::optional<fabric::RemoteMemory> sink, source;
  const bool good = active.perform([&](fabric::Connection& on) {
    if (const auto exposed = on.expose_sink(memory)) sink = *exposed;
    if (const auto exposed = on.expose_source(memory)) source = *exposed;
    for (int i = 0; i < 20; ++i) on.send(Rope::borrow(bytes_of("x")), std::nullopt, 0, kNoToken);
    on.send_copy(std::array{bytes_of("head"), Bytes(memory).first(3000)}, std::nullopt, 0, 1);
  });
  verbs.turns(40);
  if (good && sink && source && !passive.ended) {
    passive.perform([&](fabric::Connection& on) {
      on.write(large, *sink, 0, 2);
      on.write(Rope::borrow(Bytes(memory).first(5000)), *sink, 0, 3);
      on.read(*source, other, 0, 4);
      on.read(*source, MutableBytes(other).first(5000), 0, 5);
      for (int i = 0; i < 20; ++i) on.send(Rope::borrow(bytes_of("x")), std::nullopt, 0, kNoToken);
    });
    verbs.turns(40);
    active.perform([&](fabric::Connection& on) {
      on.revoke(sink->handle);
      on.revoke(source->handle);
    });
    verbs.turns(40);
  }
  active.connection->close(Reason::Shutdown);
  verbs.turns(40);
  const bool failed = allocations_until_failure == 0;
  allocations_until_failure = 0;
  verbs.stub().when_inside(nullptr);
  EXPECT_TRUE(verbs.run_until([&] { return active.ended && passive.ended; })) << n;
  verbs.say(witness);
  EXPECT_TRUE(verbs.run_until([&] { return its_peer.messages == 2; })) << n;
  return failed;
}

void live_whatever_fails(const StubOptions& device, bool open_regions = false) {
  // A thread's free lists begin empty.
  const auto in_a_thread = [&](std::size_t n) {
    bool failed = false;
    std::thread([&] { failed = live(device, open_regions, n); }).join();
    return failed;
  };
  EXPECT_FALSE(in_a_thread(1'000'000));
  const std::ptrdiff_t before = live_allocations;
  std::size_t n = 1;
  for (; in_a_thread(n) && !::testing::Test::HasFailure(); ++n) EXPECT_EQ(live_allocations, before);
  EXPECT_GT(n, 5u);
}

TEST(VerbsOutOfMemory, ends_one_connection_at_most_where_the_device_has_windows) {
  live_whatever_fails(fabric::stub::rxe_like());
}

TEST(VerbsOutOfMemory, ends_one_connection_at_most_where_the_device_has_none) {
  live_whatever_fails(fabric::stub::siw_like());
}

TEST(VerbsOutOfMemory, ends_one_connection_at_most_where_operations_wait_for_the_queue) {
  StubOptions device = fabric::stub::rxe_like();
  device.attributes.max_qp_wr = 4;
  device.max_inline = 0;
  live_whatever_fails(device);
}

TEST(VerbsOutOfMemory, ends_one_connection_at_most_where_memory_stays_open) {
  live_whatever_fails(fabric::stub::rxe_like(), true);
}

// Others' completions are in the same queue when a connection goes.
TEST(VerbsOutOfMemory, is_no_matter_of_a_connection_that_goes) {
  for (const StubOptions& device : {fabric::stub::rxe_like(), fabric::stub::siw_like()}) {
    Verbs verbs(device, false);
    Counting active, passive, witness, its_peer;
    verbs.join(witness, its_peer);
    verbs.join(active, passive);
    for (int i = 0; i < 30; ++i) verbs.say(witness);
    verbs.stub().when_inside(spare);
    allocations_until_failure = 1;
    passive.connection.reset();
    EXPECT_EQ(allocations_until_failure, 1u) << "it asked for memory";
    allocations_until_failure = 0;
    verbs.stub().when_inside(nullptr);
    EXPECT_TRUE(verbs.run_until([&] { return its_peer.messages == 31; }));
  }
}

TEST(VerbsOutOfMemory, hides_no_failure_of_a_device_from_its_connections) {
  Verbs verbs(fabric::stub::rxe_like(), false);
  std::array<Counting, 6> sides;
  for (std::size_t i = 0; i < sides.size(); i += 2) verbs.join(sides[i], sides[i + 1]);
  verbs.stub().tell_of_device(IBV_EVENT_CQ_ERR);
  verbs.stub().when_inside(spare);
  allocations_until_failure = 1;
  verbs.turns(40);
  EXPECT_EQ(allocations_until_failure, 1u) << "it asked for memory";
  allocations_until_failure = 0;
  verbs.stub().when_inside(nullptr);
  for (const Counting& side : sides) EXPECT_EQ(side.ended, Reason::VerbsFailed);
}

}  // namespace
}  // namespace stag::testing
