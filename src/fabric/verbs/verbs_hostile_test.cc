// Peers that do what fabric/verbs would never do.
#include <gtest/gtest.h>

#include "testing/raw_verbs_peer.h"
#include "testing/verbs_fixture.h"

namespace stag::testing {
namespace {

using fabric::kNoToken;

// The passive side is the provider's, the active one raw.
template <class Base>
class Hostile : public Base {
 protected:
  // Connected, started, and spoken to.
  bool meet(std::uint8_t rnr_retries = 7) {
    this->listen();
    peer = std::make_unique<RawVerbsPeer>(this->stub().functions(), run());
    if (!peer->connect(this->listener->local_address().port, rnr_retries)) return false;
    if (!this->run_until([this] { return !this->acceptor.arrived.empty(); })) return false;
    this->passive.take(std::move(this->acceptor.arrived.front()));
    this->acceptor.arrived.clear();
    this->passive.start();
    return peer->post(IBV_WR_SEND) == IBV_WC_SUCCESS &&
           this->run_until([this] { return this->passive.messages.size() == 1; });
  }
  RawVerbsPeer::RunUntil run() {
    return [this](const std::function<bool()>& predicate) { return this->run_until(predicate); };
  }
  bool gone() {
    return this->run_until([this] { return this->passive.disconnected.has_value(); });
  }
  void expose_both(std::vector<std::byte>& memory) {
    sink = *this->passive->expose_sink(memory);
    source = *this->passive->expose_source(memory);
  }

  std::unique_ptr<RawVerbsPeer> peer;
  fabric::RemoteMemory sink, source;
};
using HostileVerbsTest = Hostile<VerbsTest>;
using HostileSiwVerbsTest = Hostile<SiwVerbsTest>;

TEST_F(HostileVerbsTest, memory_that_was_taken_back_can_neither_be_written_nor_read) {
  for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    ASSERT_TRUE(meet());
    std::vector<std::byte> memory(64, std::byte{7});
    expose_both(memory);
    const fabric::RemoteMemory open = opcode == IBV_WR_RDMA_WRITE ? sink : source;
    EXPECT_EQ(peer->post(opcode, open), IBV_WC_SUCCESS) << "while it is exposed";
    passive->revoke(open.handle);
    ASSERT_TRUE(run_until([&] { return passive.revoked.size() == 1; }));
    memory.assign(64, std::byte{9});
    peer->memory.fill(std::byte{1});
    EXPECT_EQ(peer->post(opcode, open), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(memory, std::vector<std::byte>(64, std::byte{9}));
    EXPECT_EQ(peer->memory[0], std::byte{1});
    ASSERT_TRUE(gone());
    EXPECT_EQ(passive.disconnected, Reason::RemoteAccessDenied);
    peer.reset();
    passive.destroy();
    passive = Side();
    listener.reset();
  }
}

TEST_F(HostileSiwVerbsTest, memory_that_was_taken_back_can_neither_be_written_nor_read) {
  ASSERT_TRUE(meet());
  std::vector<std::byte> memory(64, std::byte{7});
  expose_both(memory);
  EXPECT_EQ(passive->revoke(sink.handle), fabric::Revocation::Done);
  EXPECT_NE(peer->post(IBV_WR_RDMA_WRITE, sink), IBV_WC_SUCCESS);
  EXPECT_EQ(memory[0], std::byte{7});
  ASSERT_TRUE(gone());
}

TEST_F(HostileVerbsTest, a_source_cannot_be_written_nor_a_sink_read) {
  ASSERT_TRUE(meet());
  std::vector<std::byte> memory(64, std::byte{7});
  expose_both(memory);
  EXPECT_EQ(peer->post(IBV_WR_RDMA_WRITE, source), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(memory[0], std::byte{7});
  ASSERT_TRUE(gone());
}

TEST_F(HostileVerbsTest, who_invalidates_what_is_not_his_loses_his_own_connection_alone) {
  join_and_greet();
  std::vector<std::byte> memory(64);
  const auto of_another = active->expose_sink(memory);
  RawVerbsPeer hostile(stub().functions(), run());
  ASSERT_TRUE(hostile.connect(listener->local_address().port, 7));
  ASSERT_TRUE(run_until([&] { return !acceptor.arrived.empty(); }));
  Side victim;
  victim.take(std::move(acceptor.arrived.front()));
  acceptor.arrived.clear();
  victim.start();
  hostile.post(IBV_WR_SEND_WITH_INV, *of_another);
  ASSERT_TRUE(run_until([&] { return victim.disconnected.has_value(); }));
  EXPECT_EQ(stub().remote_handles(), 1u);
  passive->write(Rope::borrow(bytes_of("alive")), *of_another, 0, 1);
  ASSERT_TRUE(done(passive, 1));
  EXPECT_EQ(passive.outcome(1), Reason::None);
  victim.destroy();
}

TEST_F(HostileSiwVerbsTest, who_invalidates_what_is_not_his_loses_his_own_connection_alone) {
  join_and_greet();
  std::vector<std::byte> memory(64);
  const auto of_another = active->expose_sink(memory);
  RawVerbsPeer hostile(stub().functions(), run());
  ASSERT_TRUE(hostile.connect(listener->local_address().port, 7));
  ASSERT_TRUE(run_until([&] { return !acceptor.arrived.empty(); }));
  Side victim;
  victim.take(std::move(acceptor.arrived.front()));
  acceptor.arrived.clear();
  victim.start();
  hostile.post(IBV_WR_SEND_WITH_INV, *of_another);
  ASSERT_TRUE(run_until([&] { return victim.disconnected.has_value(); }));
  EXPECT_EQ(stub().remote_handles(), 1u);
  passive->write(Rope::borrow(bytes_of("alive")), *of_another, 0, 1);
  ASSERT_TRUE(done(passive, 1));
  EXPECT_EQ(passive.outcome(1), Reason::None);
  victim.destroy();
}

TEST_F(HostileSiwVerbsTest, whose_handle_on_his_own_connection_is_invalidated_unasked_loses_it) {
  ASSERT_TRUE(meet());
  std::vector<std::byte> memory(64);
  expose_both(memory);
  peer->post(IBV_WR_SEND_WITH_INV, sink);
  ASSERT_TRUE(gone());
  EXPECT_EQ(passive.disconnected, Reason::RemoteAccessDenied);
  EXPECT_EQ(stub().remote_handles(), 0u);
}

TEST_F(HostileVerbsTest, a_peer_without_a_receive_that_allows_no_retries_loses_the_connection) {
  ASSERT_TRUE(meet(0));
  passive->send(Rope::borrow(bytes_of("answer")), std::nullopt, 0, 1);
  ASSERT_TRUE(gone());
  EXPECT_EQ(passive.outcome(1), Reason::VerbsReceiverNotReady);
  EXPECT_EQ(passive.disconnected, Reason::VerbsReceiverNotReady);
}

TEST_F(HostileVerbsTest, private_data_of_every_length_arrives_with_what_follows_it) {
  listen();
  for (std::size_t size = 0; size <= 56; ++size) {
    const auto data = pattern(size, 1);
    RawVerbsPeer asking(stub().functions(), run());
    ASSERT_TRUE(asking.connect(listener->local_address().port, 7, data));
    ASSERT_TRUE(run_until([&] { return !acceptor.arrived.empty(); }));
    EXPECT_TRUE(carries(acceptor.private_data, text_of(data))) << size;
    acceptor.arrived.clear();
  }
}

}  // namespace
}  // namespace stag::testing
