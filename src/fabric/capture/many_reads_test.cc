// A peer chooses how many Reads a Call is of, and a connection has many Calls.
#include <gtest/gtest.h>

#include "fabric/capture/captured_fabric.h"
#include "testing/manual_loop.h"
#include "testing/stuck_connection.h"

namespace stag::testing {
namespace {

class StuckFabric final : public fabric::Fabric {
 public:
  StuckFabric(Loop& loop, Seen& seen) : loop_(loop), seen_(seen) {}

  Loop& loop() override { return loop_; }
  std::vector<Loop*> accepting_loops() override { return {}; }
  std::size_t max_private_data() const override { return 0; }
  Task<Result<std::unique_ptr<fabric::Connection>, Reason>> connect(Address, fabric::ConnectOptions,
                                                                    CancelToken) override {
    auto made = std::make_unique<StuckConnection>(loop_, seen_);
    connection = made.get();
    std::unique_ptr<fabric::Connection> result = std::move(made);
    co_return result;
  }
  Result<std::unique_ptr<fabric::Listener>, Reason> listen(Address, fabric::ListenOptions,
                                                           fabric::Acceptor&) override {
    return Failure{Reason::AddressInUse};
  }

  StuckConnection* connection = nullptr;

 private:
  Loop& loop_;
  Seen& seen_;
};

class Counted final : public fabric::capture::Recorder {
 public:
  void take(Bytes) override { ++frames; }
  void lose() noexcept override { ++lost; }
  std::size_t frames = 0, lost = 0;
};

class Ends final : public fabric::Events {
 public:
  void on_receive(Buffer, std::optional<std::uint32_t>) override {}
  void on_done(fabric::Token token, Reason) override { own += token == 1; }
  void on_revoked(std::uint32_t) override {}
  void on_disconnect(Reason) override {}
  std::size_t own = 0;
};

// Were each Read that ends looked for among all that are open, this would take longer than any test
// may.
TEST(CapturedReadsOfOneToken, are_shown_however_many_they_are) {
  constexpr std::size_t kReads = 1'000'000;
  ManualLoop loop;
  Seen seen;
  const auto tap = std::make_shared<fabric::capture::Tap>();
  const auto counted = std::make_shared<Counted>();
  tap->add(counted);
  auto stuck = std::make_unique<StuckFabric>(loop, seen);
  StuckFabric& inner = *stuck;
  const auto fabric = fabric::capture::captured(std::move(stuck), tap);
  auto made = loop.run(fabric->connect({"peer", 1}, {}, {}));
  ASSERT_TRUE(made && made->ok());
  const std::unique_ptr<fabric::Connection> connection = **std::move(made);
  Ends ends;
  connection->start(ends);
  const std::size_t before = counted->frames;
  std::byte sink{};
  for (std::size_t i = 0; i < kReads; ++i) connection->read({1, 1, 0}, {&sink, 1}, 0, 1);
  for (const fabric::Token token : seen.reads) inner.connection->end(token);
  EXPECT_EQ(ends.own, kReads);
  EXPECT_EQ(counted->frames - before, 2 * kReads);
  EXPECT_EQ(counted->lost, 0u);
}

}  // namespace
}  // namespace stag::testing
