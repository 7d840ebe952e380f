// Peers that send and then neither answer Reads nor take what is sent to them: what they hold is
// bounded in size and time.
#include <gtest/gtest.h>

#include "fabric/sim/sim_loop.h"
#include "rpc/rdma/link.h"
#include "rpc/server.h"
#include "rpcrdma/header.h"
#include "testing/blob_program.h"
#include "testing/stuck_connection.h"

namespace stag::rpc::rdma {
namespace {

using namespace std::chrono_literals;

class StalledPeer : public ::testing::Test, private LinkOwner {
 protected:
  StalledPeer() {
    server_.add(testing::blob_program());
    auto connection = std::make_unique<testing::StuckConnection>(loop, seen);
    peer = connection.get();
    LinkSettings settings;
    settings.credits_granted = 16;
    link_ = std::make_shared<Link>(std::move(connection), settings, static_cast<LinkOwner&>(*this));
    link_->open(&server_, {});
  }
  ~StalledPeer() override {
    link_->close(Reason::Shutdown);
    loop.run_until_idle();
  }
  // A NULL Call of the blob program.
  static Buffer null_call(std::uint32_t xid, rpcrdma::Header header = {}) {
    header.xid = xid;
    header.credits = 16;
    Rope message = Rope::copy_of(rpcrdma::EncodedHeader(header).bytes());
    xdr::Encoder encoder;
    for (const std::uint32_t word :
         {xid, 0u, 2u, testing::kBlobProgram, 1u, 0u, 0u, 0u, 0u, 0u, 0u, 0u})
      encoder.u32(word);
    message.append(std::move(encoder).finish().rope());
    return message.flatten();
  }

  fabric::SimLoop loop;
  testing::Seen seen;
  testing::StuckConnection* peer;  // until it is closed

 private:
  void on_link_down(Link&, Reason) override {}
  rpc::Server server_;
  std::shared_ptr<Link> link_;
};

TEST_F(StalledPeer, that_sends_nonsense_and_takes_no_answer_is_let_go) {
  Block nonsense = Block::allocate(28);
  std::memset(nonsense.data(), 0, 28);
  store_be<std::uint32_t>(nonsense.data() + 4, 1);    // version
  store_be<std::uint32_t>(nonsense.data() + 12, 99);  // no such procedure
  const Buffer message = std::move(nonsense).freeze(28);
  for (int i = 0; i < 1000 && !seen.closed; ++i) peer->arrive(message);
  EXPECT_TRUE(seen.closed.has_value());
  EXPECT_LE(seen.sends, 128);
}

TEST_F(StalledPeer, that_answers_no_Read_is_asked_for_twice_as_many_as_it_takes_at_a_time) {
  rpcrdma::Header header;
  for (const std::uint32_t position : {40u, 104u}) {
    rpcrdma::ReadChunk& chunk = header.read_list.emplace_back();
    chunk.position = position;
    for (std::uint32_t i = 0; i < 64; ++i) chunk.segments.push_back({1, 1, i});
  }
  for (std::uint32_t xid = 1; xid <= 16; ++xid) peer->arrive(null_call(xid, header));
  EXPECT_FALSE(seen.closed.has_value());
  EXPECT_EQ(seen.reads.size(), 16u);
}

}  // namespace
}  // namespace stag::rpc::rdma
