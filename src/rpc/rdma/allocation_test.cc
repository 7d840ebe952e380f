// Memory runs out at any moment of a connection's life: that connection ends, or a Call on it is
// refused, nothing is lost, and the others go on. The whole program's operator new fails when told
// to.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>

#include "fabric/sim/sim_loop.h"
#include "rpc/rdma/channel.h"
#include "rpc/rdma/link.h"
#include "rpc/server.h"
#include "testing/failing_new.h"
#include "testing/silent_peer.h"

namespace stag::rpc::rdma {
namespace {

using testing::allocations_until_failure;
using testing::live_allocations;

constexpr std::uint32_t kChunk = 60'000;

// Memory of the program's, as many times as it is asked for.
struct LentMemory final : Storage {
  LentMemory() : Storage(kChunk) {}
  void release() noexcept override { revive(), --out; }
  std::array<std::byte, kChunk> bytes{};
  int out = 0, asked = 0;
};

// Its memory is lent to one Call at a time.
class Lending final : public Handler {
 public:
  explicit Lending(LentMemory& memory) : memory_(memory) {}
  bool places() const override { return true; }
  Buffer place(xdr::Decoder&, std::uint32_t, std::uint32_t length) override {
    ++memory_.asked;
    if (memory_.out != 0) return {};
    ++memory_.out;
    return Buffer(&memory_, Bytes(memory_.bytes).first(length));
  }
  Eventual<HandlerOutcome> run(CallContext&, xdr::Decoder&, const ReducedItems&,
                               xdr::Encoder&) override {
    return HandlerOutcome{.status = {}, .drop = false, .encoded = true};
  }

 private:
  LentMemory& memory_;
};

constexpr std::uint32_t kPlacing = testing::kBlobProgram + 1;

class Lives final : private LinkOwner {
 public:
  Lives() {
    server_.add(testing::blob_program());
    rpc::Program placing(kPlacing, 1);
    placing.add(0, std::make_unique<Lending>(lent_));
    server_.add(std::move(placing));
  }

  std::shared_ptr<Link> connect(SilentPeer& peer, const std::string& address) {
    peer.address = {address, 1};
    LinkSettings settings;
    settings.credits_granted = 16;
    settings.budget = budget_;
    auto link = std::make_shared<Link>(std::make_unique<SilentConnection>(loop, peer), settings,
                                       static_cast<LinkOwner&>(*this));
    link->open(&server_, {});
    return link;
  }
  // The life of a connection whose `n`th allocation fails; whether it had so many.
  bool fail(long n) {
    SilentPeer other, victim;
    const std::shared_ptr<Link> witness = connect(other, "witness");
    const std::vector<Buffer> calls = messages();
    std::shared_ptr<Link> link;
    allocations_until_failure = n;
    try {
      link = connect(victim, "victim");
      converse(victim, calls);
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(victim.events, nullptr) << "only the set-up may throw";
    }
    const bool failed = allocations_until_failure == 0;
    allocations_until_failure = 0;
    EXPECT_EQ(victim.closed.value_or(Reason::OutOfMemory), Reason::OutOfMemory);
    other.arrive(calls[0]);
    loop.run_until([&] { return other.sends != 0; }, Duration::zero());
    EXPECT_EQ(other.sends, 1) << n;
    EXPECT_FALSE(other.closed);
    other.lose_connection();
    if (victim.events != nullptr && !victim.closed) victim.lose_connection();
    loop.run_until_idle();
    link.reset();
    EXPECT_EQ(budget_->used(), 0u) << n;
    EXPECT_EQ(lent_.out, 0) << n;
    EXPECT_TRUE(failed || lent_.asked == 2) << "of a life without a failure";
    return failed;
  }
  // Calls that come at once, and are answered a turn later.
  void burst(SilentPeer& peer, std::uint32_t calls) {
    for (std::uint32_t i = 0; i < calls; ++i) {
      ++peer.traffic.sends_in;
      peer.arrive(silent_call(++xid_, {}));
    }
  }
  void run_for(Duration time) { loop.run_for(time); }

 private:
  static std::vector<Buffer> messages() {
    rpcrdma::Header chunks;
    for (const std::uint32_t position : {40u, 40u + 2 * kChunk, 40u + 4 * kChunk})
      chunks.read_list.push_back({position, {{position, kChunk, 0}, {position + 1, kChunk, 0}}});
    rpcrdma::Header one;
    one.read_list.push_back({40, {{7, kChunk, 0}}});
    rpcrdma::Header reply;
    reply.reply_chunk = rpcrdma::WriteChunk{{{9, 4096, 0}}};
    return {silent_call(1, {}),           silent_call(2, one),   silent_call(3, chunks),
            silent_call(4, one),          silent_call(5, reply), silent_call(6, one, kPlacing),
            silent_call(7, one, kPlacing)};
  }
  void converse(SilentPeer& peer, const std::vector<Buffer>& calls) {
    for (const Buffer& call : calls)
      if (!peer.closed) peer.arrive(call);
    while (!peer.closed && !peer.reads.empty()) {
      peer.end_read();
      loop.run_until([] { return false; }, Duration::zero());
    }
  }
  void on_link_down(Link&, Reason) override {}

  fabric::SimLoop loop;
  std::uint32_t xid_ = 0;
  LentMemory lent_;
  rpc::Server server_;
  // Of the Calls with chunks some wait.
  const std::shared_ptr<ByteBudget> budget_ = std::make_shared<ByteBudget>(4 * kChunk);
};

TEST(IdleMemory, is_that_of_a_few_calls_however_many_there_were_at_a_time) {
  Lives lives;
  SilentPeer peer;
  const std::shared_ptr<Link> link = lives.connect(peer, "peer");
  lives.burst(peer, 32);
  lives.run_for(std::chrono::seconds(1));
  const std::ptrdiff_t full = live_allocations;
  // The connection keeps in between what the next burst takes again.
  for (int i = 0; i < 10; ++i) {
    lives.burst(peer, 20);
    lives.run_for(std::chrono::seconds(4));
    EXPECT_GE(live_allocations, full);
  }
  lives.run_for(std::chrono::seconds(11));
  EXPECT_LE(live_allocations, full - 16);
  lives.burst(peer, 32);
  lives.run_for(std::chrono::seconds(1));
  EXPECT_GE(live_allocations, full - 1);
  EXPECT_EQ(peer.sends, 32 + 10 * 20 + 32);
  peer.lose_connection();
  lives.run_for(std::chrono::seconds(1));
}

TEST(OutOfMemory, ends_one_connection_whichever_allocation_of_its_life_fails) {
  // A thread's free lists begin empty.
  const auto life = [](long n) {
    bool failed = false;
    std::thread([&] { failed = Lives().fail(n); }).join();
    return failed;
  };
  EXPECT_FALSE(life(1'000'000));
  const long before = live_allocations;
  long n = 1;
  while (life(n)) {
    EXPECT_EQ(live_allocations, before) << n;
    ++n;
  }
  EXPECT_GT(n, 30);
}

// Posting asks for no memory, as with any loop (decision 0014); a timer may.
class RoomyLoop final : public Loop {
 public:
  TimePoint now() const override { return sim_.now(); }
  void post(Function function) override {
    const std::size_t left = std::exchange(allocations_until_failure, 0);
    sim_.post(std::move(function));
    allocations_until_failure = left;
  }
  [[nodiscard]] Timer after(Duration delay, Function function) override {
    static_cast<void>(std::make_unique<int>());
    const std::size_t left = std::exchange(allocations_until_failure, 0);
    Timer timer = sim_.after(delay, std::move(function));
    allocations_until_failure = left;
    return timer;
  }
  void offload(Function work, Function done) override {
    sim_.offload(std::move(work), std::move(done));
  }
  bool on_thread() const override { return true; }
  void run_until_idle() { sim_.run_until_idle(); }
  // What a function throws is its end, and nothing else's.
  void run_for(Duration duration) {
    for (const TimePoint end = sim_.now() + duration;;) try {
        return sim_.run_for(end - sim_.now());
      } catch (const std::bad_alloc&) {
      }
  }

 private:
  void cancel_timer(std::uint64_t) override { STAG_CHECK(false); }  // they are the other loop's

  fabric::SimLoop sim_;
};

// Every connection of it is to a peer that says what the test makes it say.
class SilentFabric final : public fabric::Fabric {
 public:
  Loop& loop() override { return loop_; }
  std::vector<Loop*> accepting_loops() override { return {&loop_}; }
  std::size_t max_private_data() const override { return 0; }
  Task<Result<std::unique_ptr<fabric::Connection>, Reason>> connect(Address, fabric::ConnectOptions,
                                                                    CancelToken) override {
    peers.push_back(std::make_unique<SilentPeer>(like));
    co_return std::unique_ptr<fabric::Connection>(
        std::make_unique<SilentConnection>(loop_, *peers.back()));
  }
  Result<std::unique_ptr<fabric::Listener>, Reason> listen(Address, fabric::ListenOptions,
                                                           fabric::Acceptor&) override {
    return Failure{Reason::AddressInUse};
  }
  void run_until_idle() { loop_.run_until_idle(); }
  void run_for(Duration duration) { loop_.run_for(duration); }

  SilentPeer like;  // that peers are, in the beginning
  std::vector<std::unique_ptr<SilentPeer>> peers;

 private:
  RoomyLoop loop_;
};

Buffer silent_reply(std::uint32_t xid) {
  rpcrdma::Header header;
  header.xid = xid;
  header.credits = 2;
  Rope message = Rope::copy_of(rpcrdma::EncodedHeader(header).bytes());
  xdr::Encoder encoder;
  for (const std::uint32_t word : {xid, 1u, 0u, 0u, 0u, 0u}) encoder.u32(word);
  message.append(std::move(encoder).finish().rope());
  return message.flatten();
}

// Calls of one Channel, of which more are made at a time than there are credits.
class LivesOfCalls {
 public:
  // The calls of a Channel of which the `n`th allocation fails, with that of the first connection
  // or without; whether there were so many.
  bool fail(long n, bool connected) {
    ChannelOptions options;
    options.seed = 7;
    options.probe_after = Duration::zero();
    Channel channel(fabric_, {"server", 1}, options);
    fabric_.peers.reserve(8);
    if (connected) {
      begin(channel, calls_.back());
      answer_all();
      EXPECT_TRUE(calls_.back().good);
    }
    const std::size_t before = fabric_.peers.size();
    allocations_until_failure = n;
    for (Made& made : calls_)
      if (!made.begun) begin(channel, made);
    for (Made& made : calls_)
      if (!fabric_.peers.empty()) answer(*fabric_.peers.back(), made);
    const bool failed = allocations_until_failure == 0;
    allocations_until_failure = 0;
    answer_all();
    for (const Made& made : calls_) EXPECT_TRUE(made.ended) << n;
    calls_.back() = {};
    begin(channel, calls_.back());
    answer_all();
    EXPECT_TRUE(calls_.back().good) << n;
    EXPECT_LE(fabric_.peers.size(), before + 2) << n;
    detach(close(channel));
    fabric_.run_until_idle();
    EXPECT_TRUE(closed_) << n;
    return failed;
  }

 private:
  struct Made {
    CallMessage message;
    bool begun = false, ended = false, good = false;
  };

  static Task<> make(Channel& channel, Made& made) {
    made.begun = true;
    try {
      made.good = (co_await channel.call(made.message)).ok();
    } catch (const std::bad_alloc&) {
    }
    made.ended = true;
  }
  Task<> close(Channel& channel) {
    co_await channel.close();
    closed_ = true;
  }
  void begin(Channel& channel, Made& made) {
    const std::size_t left = std::exchange(allocations_until_failure, 0);
    made.message.xid = channel.next_xid();
    xdr::Encoder encoder;
    for (const std::uint32_t word : {made.message.xid, 0u, 2u, testing::kBlobProgram, 1u, 0u})
      encoder.u32(word);
    for (int i = 0; i < 4; ++i) encoder.u32(0);
    made.message.stream = std::move(encoder).finish();
    made.message.reply.payload_max = 24;
    auto task = make(channel, made);
    allocations_until_failure = left;
    detach(std::move(task));
  }
  static void answer(SilentPeer& peer, const Made& made) {
    if (peer.closed || peer.events == nullptr) return;
    const std::size_t left = std::exchange(allocations_until_failure, 0);
    Buffer reply = silent_reply(made.message.xid);
    allocations_until_failure = left;
    peer.arrive(std::move(reply));
  }
  // On whichever connection they are by now.
  void answer_all() {
    for (int i = 0; i < 4; ++i) {
      fabric_.run_until_idle();
      for (const Made& made : calls_)
        if (made.begun && !made.ended && !fabric_.peers.empty())
          answer(*fabric_.peers.back(), made);
    }
    fabric_.run_until_idle();
  }

  SilentFabric fabric_;
  std::array<Made, 6> calls_;
  bool closed_ = false;
};

// Calls with chunks, of which some are given up at their deadline and the others lose their
// connection.
class LivesOfExposure {
 public:
  explicit LivesOfExposure(bool revokes_later) {
    fabric_.like.exposes = true;
    fabric_.like.revokes_later = revokes_later;
    ChannelOptions options;
    options.seed = 7;
    channel_.emplace(fabric_, Address{"server", 1}, options);
    fabric_.peers.reserve(8);
  }
  void fail(long n) {
    begin(calls_[0], false);
    answer_all();
    EXPECT_TRUE(calls_[0].good);
    fabric_.run_for(std::chrono::minutes(1));  // no timer watches the server's health
    for (std::size_t i = 1; i < calls_.size(); ++i) prepare(calls_[i], i % 2 != 0);
    allocations_until_failure = n;
    for (std::size_t i = 1; i < calls_.size(); ++i) start(calls_[i]);
    fabric_.run_for(kDeadline);
    if (SilentPeer& peer = *fabric_.peers.back(); !peer.closed) {
      answer(peer, calls_[2].message.xid);
      if (!peer.closed) peer.lose_connection();
    }
    fabric_.run_for(Duration(1));
    allocations_until_failure = 0;
    answer_all();
    for (const Made& made : calls_) EXPECT_TRUE(made.ended) << n;
    begin(late_, false);
    answer_all();
    EXPECT_TRUE(late_.good) << n;
    detach(close());
    fabric_.run_until_idle();
    EXPECT_TRUE(closed_) << n;
  }
  // Whether there were so many allocations when the server was looked after for the first time.
  bool find_out_silence(long n) {
    const Duration look = ChannelOptions().probe_after;
    begin(calls_[0], false);
    answer_all();
    fabric_.run_for(look);
    begin(calls_[1], false);
    allocations_until_failure = n;
    fabric_.run_for(look);
    const bool failed = allocations_until_failure == 0;
    allocations_until_failure = 0;
    fabric_.run_for(3 * look);
    EXPECT_TRUE(fabric_.peers.front()->closed) << n;
    answer_all();
    EXPECT_TRUE(calls_[1].good) << n;
    detach(close());
    fabric_.run_until_idle();
    EXPECT_TRUE(closed_) << n;
    return failed;
  }

 private:
  static constexpr Duration kDeadline = std::chrono::milliseconds(1);
  // For another connection; without asking a server that is silent whether it lives.
  static constexpr Duration kPatience = std::chrono::seconds(1);
  struct Made {
    CallMessage message;
    std::vector<std::byte> argument = std::vector<std::byte>(kChunk);
    std::vector<std::byte> result = std::vector<std::byte>(kChunk);
    ResultBuffer result_buffer;
    Task<> task;
    bool begun = false, ended = false, good = false;
  };

  Task<> make(Made& made) {
    try {
      made.good = (co_await channel_->call(made.message)).ok();
    } catch (const std::bad_alloc&) {
    }
    made.ended = true;
    for (const auto& peer : fabric_.peers) {
      EXPECT_FALSE(peer->reaches(made.argument));
      EXPECT_FALSE(peer->reaches(made.result));
    }
  }
  Task<> close() {
    co_await channel_->close();
    closed_ = true;
  }
  void prepare(Made& made, bool limited) {
    static constexpr xdr::ItemId kEligible[] = {testing::kBlobData};
    made.message.xid = channel_->next_xid();
    xdr::Encoder encoder(kEligible);
    for (const std::uint32_t word : {made.message.xid, 0u, 2u, testing::kBlobProgram, 1u, 0u})
      encoder.u32(word);
    for (int i = 0; i < 4; ++i) encoder.u32(0);
    encoder.opaque(testing::kBlobData, Rope::borrow(made.argument));
    made.message.stream = std::move(encoder).finish();
    made.message.eligible_arguments = made.message.eligible_results = kEligible;
    made.message.reply = ReplyBound{100, {{testing::kBlobData, kChunk}}};
    made.result_buffer = {testing::kBlobData, made.result};
    made.message.result_buffers = {&made.result_buffer, 1};
    if (limited) made.message.deadline = fabric_.loop().now() + kDeadline;
    made.task = make(made);
  }
  void start(Made& made) {
    made.begun = true;
    detach(std::move(made.task));
  }
  void begin(Made& made, bool limited) {
    prepare(made, limited);
    start(made);
  }
  static void answer(SilentPeer& peer, std::uint32_t xid) {
    const std::size_t left = std::exchange(allocations_until_failure, 0);
    Buffer reply = silent_reply(xid);
    allocations_until_failure = left;
    peer.arrive(std::move(reply));
  }
  void answer_all() {
    for (int i = 0; i < 4; ++i) {
      fabric_.run_for(kPatience);
      // A new connection begins with a NULL call.
      SilentPeer& peer = *fabric_.peers.back();
      if (peer.sends != 0 && !peer.closed) answer(peer, peer.last_xid);
      for (const Made* made : {&calls_[0], &calls_[1], &calls_[2], &calls_[3], &calls_[4], &late_})
        if (made->begun && !made->ended && !fabric_.peers.back()->closed)
          answer(*fabric_.peers.back(), made->message.xid);
    }
    fabric_.run_for(kPatience);
  }

  SilentFabric fabric_;
  std::optional<Channel> channel_;
  std::array<Made, 5> calls_;
  Made late_;
  bool closed_ = false;
};

TEST(OutOfMemory, exposes_nothing_of_a_call_that_has_ended_whichever_allocation_fails) {
  for (const bool revokes_later : {false, true}) {
    const auto life = [revokes_later](long n, bool lasts) {
      bool failed = false;
      std::thread([&] {
        testing::failure_lasts = lasts;
        LivesOfExposure(revokes_later).fail(n);
        failed = testing::failed_allocations != 0;
      }).join();
      return failed;
    };
    for (const bool lasts : {false, true}) {
      EXPECT_FALSE(life(1'000'000, lasts));
      const long before = live_allocations;
      long n = 1;
      while (life(n, lasts) && !HasFailure()) {
        EXPECT_EQ(live_allocations, before) << n;
        ++n;
      }
      EXPECT_GT(n, 5);
    }
  }
}

// In more pieces than there is room for without asking.
TEST(OutOfMemory, revokes_all_that_was_exposed_whichever_allocation_fails) {
  fabric::SimLoop loop;
  SilentPeer peer;
  peer.exposes = true;
  peer.max_registration = 1000;
  SilentConnection connection(loop, peer);
  std::vector<std::byte> memory(20 * peer.max_registration);
  const auto failed = [&](std::size_t n) {
    Registrations registrations;
    bool fails = false;
    allocations_until_failure = n;
    try {
      EXPECT_TRUE(registrations.expose_sink(connection, memory).ok());
    } catch (const std::bad_alloc&) {
      fails = true;
    }
    allocations_until_failure = 0;
    registrations.revoke(connection);
    EXPECT_FALSE(registrations.held() || peer.reaches(memory)) << n;
    return fails;
  };
  std::size_t n = 1;
  while (failed(n) && !HasFailure()) ++n;
  EXPECT_GT(n, 3u);
}

TEST(OutOfMemory, lets_no_server_be_silent_for_ever_whichever_allocation_fails) {
  const auto life = [](long n) {
    bool failed = false;
    std::thread([&] { failed = LivesOfExposure(false).find_out_silence(n); }).join();
    return failed;
  };
  long n = 1;
  while (life(n) && !HasFailure()) ++n;
  EXPECT_GT(n, 2);
}

TEST(OutOfMemory, ends_a_call_whichever_allocation_fails_and_the_Channel_goes_on) {
  for (const bool connected : {true, false}) {
    const auto life = [connected](long n) {
      bool failed = false;
      std::thread([&] { failed = LivesOfCalls().fail(n, connected); }).join();
      return failed;
    };
    EXPECT_FALSE(life(1'000'000));
    const long before = live_allocations;
    long n = 1;
    while (life(n)) {
      EXPECT_EQ(live_allocations, before) << n;
      ++n;
    }
    EXPECT_GT(n, connected ? 5 : 20);
  }
}

}  // namespace
}  // namespace stag::rpc::rdma
