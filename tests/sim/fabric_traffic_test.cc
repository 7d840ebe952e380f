// Traffic between two hosts over fabric/sim, with faults, checked against the contract of fabric.h.
#include <gtest/gtest.h>

#include "fabric/sim/sim_fabric.h"
#include "fabric_peer.h"
#include "seeds.h"

namespace stag::testing {
namespace {

using fabric::Random;
using fabric::SimFabric;
using fabric::SimLoop;
using fabric::SimOptions;

// A client that connects again and again, a server that accepts, until each has had its requests
// answered.
class FabricTraffic final : fabric::Acceptor {
 public:
  explicit FabricTraffic(std::uint64_t seed)
      : random_(seed), loop_(random_.next()), fabric_(loop_, options(random_)) {}
  ~FabricTraffic() {
    over_ = true;
    tick_.cancel();
    again_.cancel();
    client_.reset();
    server_.reset();
    old_server_.reset();
    listener_.reset();
    loop_.run_until_idle();
    EXPECT_EQ(fabric_.open_connections(), 0u);
  }

  void run() {
    listener_ = std::move(*fabric_.listen({"server", 20049}, {}, *this));
    connect();
    tick();
    if (loop_.run_until([this] { return finished(); }, std::chrono::seconds(1))) return;
    // In some runs no connection lives long enough; in the end the network gets well.
    fabric_.set_faults({});
    calm_ = true;
    EXPECT_TRUE(loop_.run_until([this] { return finished(); }, std::chrono::minutes(5)))
        << "stuck: " << client_wants_ << " and " << server_wants_ << " requests to go";
  }

 private:
  static SimOptions options(Random& random) {
    SimOptions options;
    options.seed = random.next();
    options.latency = std::chrono::microseconds(1 + random.below(100));
    options.time_per_mib = std::chrono::microseconds(random.below(3000));
    options.max_private_copy = random.chance(500) ? 1000 : 1 << 20;
    options.remote_invalidation = random.chance(700);
    options.discards = random.chance(500);
    options.faults = random_faults(random);
    return options;
  }
  bool finished() const { return client_wants_ <= 0 && server_wants_ <= 0; }

  Result<fabric::ConnectOptions, Reason> on_connect_request(
      const fabric::ConnectRequest&) override {
    return connect_options();
  }
  fabric::ConnectOptions connect_options() {
    fabric::ConnectOptions options;
    options.receive = FabricPeer::kCredit;
    options.receives_max = FabricPeer::kCredit.count;
    options.inbound_reads = options.outbound_reads =
        static_cast<std::uint32_t>(1 + random_.below(8));
    options.timeout = std::chrono::milliseconds(100);
    return options;
  }
  void on_connection(std::unique_ptr<fabric::Connection> connection) override {
    // The old connection's end may not have been noticed on this side yet.
    old_server_ = std::move(server_);
    server_ = std::make_unique<FabricPeer>(
        std::move(connection), random_, [this] { --server_wants_; }, [] {});
  }
  void connect() {
    client_.reset();
    detach(connect_into(this));
  }
  static Task<void> connect_into(FabricTraffic* self) {
    // Two statements: g++ 12 copies class arguments inside a co_await expression bit by bit.
    auto connecting = self->fabric_.connect({"server", 20049}, self->connect_options(), {});
    auto outcome = co_await std::move(connecting);
    if (self->over_) co_return;
    if (!outcome) {
      self->again_ = self->loop_.after(std::chrono::milliseconds(10), [self] { self->connect(); });
      co_return;
    }
    self->client_ = std::make_unique<FabricPeer>(
        std::move(*outcome), self->random_, [self] { --self->client_wants_; },
        [self] {
          self->again_ =
              self->loop_.after(std::chrono::milliseconds(1), [self] { self->connect(); });
        });
  }

  void tick() {
    for (auto* peer : {&client_, &server_}) {
      if (*peer == nullptr) continue;
      if ((*peer)->may_ask() && random_.chance(700)) (*peer)->ask();
      if (random_.chance(100)) (*peer)->give_up_something();
      if (!calm_ && random_.chance(2)) (*peer)->close();
    }
    tick_ = loop_.after(std::chrono::microseconds(random_.below(200)), [this] { tick(); });
  }

  Random random_;
  SimLoop loop_;
  SimFabric fabric_;
  std::unique_ptr<fabric::Listener> listener_;
  std::unique_ptr<FabricPeer> client_, server_, old_server_;
  Timer tick_, again_;
  bool calm_ = false, over_ = false;
  int client_wants_ = 20;
  int server_wants_ = 20;
};

TEST(FabricTraffic, keeps_the_contract_under_faults_whatever_the_seed) {
  for_each_seed([](std::uint64_t seed) { FabricTraffic(seed).run(); });
}

}  // namespace
}  // namespace stag::testing
