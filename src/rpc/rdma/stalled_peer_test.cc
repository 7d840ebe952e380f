// Peers that send and then neither answer Reads nor take what is sent to them: what they hold is
// bounded in size and time.
#include <gtest/gtest.h>

#include "fabric/sim/sim_loop.h"
#include "rpc/rdma/link.h"
#include "rpc/server.h"
#include "rpcrdma/header.h"
#include "testing/blob_program.h"

namespace stag::rpc::rdma {
namespace {

using namespace std::chrono_literals;

// What a connection was asked to do; outlives it.
struct Seen {
  std::optional<Reason> closed;
  int sends = 0, reads = 0;
};

// A connection on which nothing that is posted ever ends.
class StuckConnection final : public fabric::Connection {
 public:
  StuckConnection(Loop& loop, Seen& seen) : loop_(loop), seen_(seen) {}

  void start(fabric::Events& events) override { events_ = &events; }
  void close(Reason reason) override {
    if (seen_.closed) return;
    seen_.closed = reason;
    loop_.post([this, reason] { events_->on_disconnect(reason); });
  }
  Loop& loop() override { return loop_; }
  const fabric::Parameters& parameters() const override { return parameters_; }
  Bytes peer_private_data() const override { return {}; }
  Address peer_address() const override { return {"peer", 1}; }
  Address local_address() const override { return {"here", 2}; }
  const fabric::Traffic& traffic() const override { return traffic_; }
  std::uint64_t progress_mark() const override { return 0; }
  void add_receive_credit(fabric::ReceiveCredit) override {}
  Result<fabric::RemoteMemory, Reason> expose_source(Bytes) override {
    return Failure{Reason::RegistrationsExhausted};
  }
  Result<fabric::RemoteMemory, Reason> expose_sink(MutableBytes) override {
    return Failure{Reason::RegistrationsExhausted};
  }
  fabric::Revocation revoke(std::uint32_t) override { return fabric::Revocation::Done; }
  fabric::Revocation abandon(std::uint32_t) override { return fabric::Revocation::Done; }
  void send(Rope, std::optional<std::uint32_t>, fabric::Flow, fabric::Token) override {
    ++seen_.sends;
  }
  void write(Rope, fabric::RemoteMemory, fabric::Flow, fabric::Token) override {}
  void read(fabric::RemoteMemory, MutableBytes, fabric::Flow, fabric::Token) override {
    ++seen_.reads;
  }

  void arrive(Buffer message) { events_->on_receive(std::move(message), std::nullopt); }

 private:
  Loop& loop_;
  Seen& seen_;
  fabric::Events* events_ = nullptr;
  fabric::Parameters parameters_{.outbound_reads = 8,
                                 .inbound_reads = 8,
                                 .max_registration = 1 << 20,
                                 .remote_invalidation = true};
  fabric::Traffic traffic_;
};

class StalledPeer : public ::testing::Test, private LinkOwner {
 protected:
  StalledPeer() {
    server_.add(testing::blob_program());
    auto connection = std::make_unique<StuckConnection>(loop, seen);
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
  Seen seen;
  StuckConnection* peer;  // until it is closed

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
  EXPECT_EQ(seen.reads, 16);
}

}  // namespace
}  // namespace stag::rpc::rdma
