// Memory runs out at any moment of a connection's life: that connection ends, or a Call on it is
// refused, nothing is lost, and the others go on. The whole program's operator new fails when told
// to.
#include <gtest/gtest.h>

#include <thread>

#include "fabric/sim/sim_loop.h"
#include "rpc/rdma/link.h"
#include "rpc/server.h"
#include "testing/failing_new.h"
#include "testing/silent_peer.h"

namespace stag::rpc::rdma {
namespace {

using testing::allocations_until_failure;
using testing::live_allocations;

constexpr std::uint32_t kChunk = 60'000;

class Lives final : private LinkOwner {
 public:
  Lives() { server_.add(testing::blob_program()); }

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
    return failed;
  }

 private:
  static std::vector<Buffer> messages() {
    rpcrdma::Header chunks;
    for (const std::uint32_t position : {40u, 40u + 2 * kChunk, 40u + 4 * kChunk})
      chunks.read_list.push_back({position, {{position, kChunk, 0}, {position + 1, kChunk, 0}}});
    rpcrdma::Header one;
    one.read_list.push_back({40, {{7, kChunk, 0}}});
    rpcrdma::Header reply;
    reply.reply_chunk = rpcrdma::WriteChunk{{{9, 4096, 0}}};
    return {silent_call(1, {}), silent_call(2, one), silent_call(3, chunks), silent_call(4, one),
            silent_call(5, reply)};
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
  rpc::Server server_;
  // Of the Calls with chunks some wait.
  const std::shared_ptr<ByteBudget> budget_ = std::make_shared<ByteBudget>(4 * kChunk);
};

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

}  // namespace
}  // namespace stag::rpc::rdma
