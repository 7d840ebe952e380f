// Peers that do what fabric/verbs would never do.
#include <gtest/gtest.h>

#include <new>

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

TEST_F(HostileVerbsTest, loses_its_own_connection_alone_when_it_invalidates_anothers_handle) {
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

TEST_F(HostileSiwVerbsTest, loses_its_own_connection_alone_when_it_invalidates_anothers_handle) {
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

TEST_F(HostileSiwVerbsTest, loses_the_connection_when_it_invalidates_a_handle_of_it_unasked) {
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

TEST_F(HostileSiwVerbsTest, a_peer_without_a_receive_loses_the_connection) {
  ASSERT_TRUE(meet());
  passive->send(Rope::borrow(bytes_of("answer")), std::nullopt, 0, 1);
  ASSERT_TRUE(gone());
  EXPECT_NE(passive.outcome(1), Reason::None);
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

// On iWARP it may be longer than InfiniBand's.
TEST_F(HostileSiwVerbsTest, private_data_of_every_length_arrives) {
  listen();
  for (std::size_t size = 0; size <= 255; ++size) {
    const auto data = pattern(size, 1);
    RawVerbsPeer asking(stub().functions(), run());
    ASSERT_TRUE(asking.connect(listener->local_address().port, 7, data));
    ASSERT_TRUE(run_until([&] { return !acceptor.arrived.empty(); }));
    EXPECT_EQ(acceptor.private_data, text_of(data)) << size;
    acceptor.arrived.clear();
  }
}

// The active side is the provider's, the passive one raw and answers.
template <class Base>
class Answered : public Hostile<Base> {
 protected:
  // What comes of a request that is answered so.
  typename Base::ConnectOutcome ask(bool accepts, Bytes private_data) {
    RawVerbsPeer server(this->stub().functions(), this->run());
    const Address at{"127.0.0.1", server.listen()};
    std::optional<typename Base::ConnectOutcome> outcome;
    detach(this->connect_into(&this->fabric(), at, this->options, {}, &outcome));
    EXPECT_TRUE(this->run_until([&] {
      server.answer(accepts, private_data);
      return outcome.has_value();
    }));
    return *std::move(outcome);
  }
};
using AnsweredVerbsTest = Answered<VerbsTest>;
using AnsweredSiwVerbsTest = Answered<SiwVerbsTest>;

TEST_F(AnsweredVerbsTest, receives_private_data_of_every_length_with_what_follows_it) {
  for (std::size_t size = 0; size <= 196; ++size) {
    const auto data = pattern(size, 1);
    const auto connected = ask(true, data);
    ASSERT_TRUE(connected.ok()) << size;
    EXPECT_TRUE(carries(text_of((*connected)->peer_private_data()), text_of(data))) << size;
  }
}

TEST_F(AnsweredSiwVerbsTest, receives_private_data_of_every_length) {
  for (std::size_t size = 0; size <= 255; ++size) {
    const auto data = pattern(size, 1);
    const auto connected = ask(true, data);
    ASSERT_TRUE(connected.ok()) << size;
    EXPECT_EQ(text_of((*connected)->peer_private_data()), text_of(data)) << size;
  }
}

TEST_F(AnsweredVerbsTest, is_turned_down_by_a_rejection_with_private_data_of_any_length) {
  for (std::size_t size = 1; size <= 148; ++size)
    EXPECT_EQ(ask(false, pattern(size, 1)).error(), Reason::ConnectionRejected) << size;
}

TEST_F(HostileVerbsTest, an_answer_that_is_too_long_turns_the_request_down) {
  acceptor.answer.private_data.resize(57);
  listen();
  EXPECT_EQ(connect_reason(listener->local_address()), Reason::ConnectionRejected);
  acceptor.answer.private_data.resize(56);
  EXPECT_EQ(connect_reason(listener->local_address()), Reason::None);
}

// Finds no memory for its first request.
struct Forgetful final : fabric::Acceptor {
  Result<fabric::ConnectOptions, Reason> on_connect_request(
      const fabric::ConnectRequest& request) override {
    if (++requests == 1) throw std::bad_alloc();
    return then.on_connect_request(request);
  }
  void on_connection(std::unique_ptr<fabric::Connection> connection) override {
    then.on_connection(std::move(connection));
  }
  TestAcceptor then;
  int requests = 0;
};

TEST_F(HostileVerbsTest, a_request_for_which_there_is_no_memory_is_lost_alone) {
  Forgetful forgetful;
  const auto listening = fabric().listen(harness->any_address(), {}, forgetful);
  ASSERT_TRUE(listening.ok());
  EXPECT_EQ(connect_reason((*listening)->local_address()), Reason::None) << "it asks again";
  EXPECT_EQ(forgetful.then.requests, 1);
  EXPECT_EQ(connect_reason((*listening)->local_address()), Reason::None);
  forgetful.then.arrived.clear();
}

TEST_F(HostileVerbsTest, messages_for_which_there_is_no_memory_use_up_no_shared_receives) {
  join_and_greet();
  for (int i = 0; i < 40; ++i) {
    RawVerbsPeer other(stub().functions(), run());
    ASSERT_TRUE(other.connect(listener->local_address().port, 7));
    ASSERT_TRUE(run_until([&] { return !acceptor.arrived.empty(); }));
    Side victim;
    victim.take(std::move(acceptor.arrived.front()));
    acceptor.arrived.clear();
    victim.start();
    victim.when_received = [] { throw std::bad_alloc(); };
    ASSERT_EQ(other.post(IBV_WR_SEND), IBV_WC_SUCCESS) << i;
    ASSERT_TRUE(run_until([&] { return victim.disconnected.has_value(); }));
    victim.destroy();
  }
  active->send(Rope::borrow(bytes_of("alive")), std::nullopt, 0, kNoToken);
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 1; }));
}

TEST_F(HostileVerbsTest, a_message_for_which_there_is_no_memory_costs_its_connection_alone) {
  join_and_greet();
  RawVerbsPeer other(stub().functions(), run());
  ASSERT_TRUE(other.connect(listener->local_address().port, 7));
  ASSERT_TRUE(run_until([&] { return !acceptor.arrived.empty(); }));
  Side victim;
  victim.take(std::move(acceptor.arrived.front()));
  acceptor.arrived.clear();
  victim.start();
  victim.when_received = [] { throw std::bad_alloc(); };
  EXPECT_EQ(other.post(IBV_WR_SEND), IBV_WC_SUCCESS);
  ASSERT_TRUE(run_until([&] { return victim.disconnected.has_value(); }));
  EXPECT_EQ(victim.disconnected, Reason::OutOfMemory);
  active->send(Rope::borrow(bytes_of("alive")), std::nullopt, 0, 1);
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 1; }));
  victim.destroy();
}

}  // namespace
}  // namespace stag::testing
