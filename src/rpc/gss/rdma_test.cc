// RPCSEC_GSS over RPC-over-RDMA (RFC 8166 section 8.2.2): what the messages look like on a
// simulated network, with the fake mechanism.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "rpc/gss/authenticator.h"
#include "rpc/gss/rpcsec_gss.h"
#include "testing/fake_mechanism.h"
#include "testing/rdma_pair.h"

namespace stag::rpc::rdma {
namespace {

using stag::testing::FakeAcceptor;
using stag::testing::FakeInitiator;
using stag::testing::FakeRealm;
using ::testing::IsEmpty;

constexpr std::uint32_t kInline = 4096;

Blob blob(std::uint32_t length) {
  return {1, stag::testing::pattern(1, length)};
}

// Client and server on a simulated network, whose thresholds are 4096 bytes both ways.
struct SecurePair {
  explicit SecurePair(gss::Service service, PairSetup setup = {}) : pair(small(std::move(setup))) {
    pair.program_server.add(rpcsec_gss({.acceptor = std::make_shared<FakeAcceptor>(realm)}));
    security =
        rpcsec_gss({.initiator = std::make_shared<FakeInitiator>(realm), .service = service});
    client.emplace(*pair.channel, kPairBinding, Credentials::secured(security));
  }
  static PairSetup small(PairSetup setup) {
    setup.client.transport.inline_size = kInline;
    setup.server.transport.inline_size = kInline;
    return setup;
  }
  template <class P>
  CallResult<typename P::Results> call(const typename P::Args& args, CallOptions options = {}) {
    return pair.loop.run(client->call<P>(args, options));
  }
  // The messages of the last call, the set-up of the context left out.
  template <class P>
  WireMessage call_of(const typename P::Args& args) {
    EXPECT_TRUE(call<FetchWhole>({1, 1}).ok());
    pair.record.clear();
    const auto result = call<P>(args);
    EXPECT_TRUE(result.ok()) << result.error().message();
    const auto calls = pair.calls(End::Active);
    EXPECT_EQ(calls.size(), 1u);
    return calls.front();
  }

  std::shared_ptr<FakeRealm> realm = std::make_shared<FakeRealm>();
  Pair pair;
  std::shared_ptr<ClientSecurity> security;
  std::optional<Client> client;
};

bool has_read_chunk(const WireMessage& message, bool position_zero) {
  for (const rpcrdma::ReadChunk& chunk : message.header.read_list)
    if ((chunk.position == 0) == position_zero) return true;
  return false;
}

TEST(GssOverRdma, leaves_data_items_eligible_with_service_none) {
  PROVES("R8166-8.2.2.2-a");
  SecurePair secure(gss::Service::none);
  const WireMessage store = secure.call_of<Store>(blob(100'000));
  EXPECT_TRUE(has_read_chunk(store, false));
  EXPECT_FALSE(has_read_chunk(store, true));
  const WireMessage fetch = secure.call_of<Fetch>({1, 100'000});
  EXPECT_EQ(fetch.header.write_list.size(), 1u);
  EXPECT_FALSE(fetch.header.reply_chunk.has_value());
}

// Messages around the threshold: with the longer credential and verifier they become Long Messages
// earlier than with AUTH_SYS, and nothing is ever sent that is too long.
TEST(GssOverRdma, counts_credential_and_verifier_where_messages_are_measured) {
  PROVES("R8166-8.2.2.2-b");
  SecurePair secure(gss::Service::none);
  Client sys(*secure.pair.channel, kPairBinding, Credentials::sys("client", 0, 0));
  std::uint32_t long_calls = 0, long_calls_sys = 0, chunks = 0, chunks_sys = 0;
  for (std::uint32_t length = kInline - 300; length < kInline; length += 4) {
    const WireMessage stored = secure.call_of<StoreWhole>(blob(length));
    const WireMessage fetched = secure.call_of<FetchWhole>({1, length});
    long_calls += has_read_chunk(stored, true) ? 1 : 0;
    chunks += fetched.header.reply_chunk.has_value() ? 1 : 0;
    secure.pair.record.clear();
    ASSERT_TRUE(secure.pair.loop.run(sys.call<StoreWhole>(blob(length))).ok());
    ASSERT_TRUE(secure.pair.loop.run(sys.call<FetchWhole>({1, length})).ok());
    const auto calls = secure.pair.calls(End::Active);
    long_calls_sys += has_read_chunk(calls[0], true) ? 1 : 0;
    chunks_sys += calls[1].header.reply_chunk.has_value() ? 1 : 0;
  }
  EXPECT_GT(long_calls, long_calls_sys);
  EXPECT_GT(chunks, chunks_sys);
  for (const End end : {End::Active, End::Passive})
    for (const WireMessage& message : secure.pair.messages(end)) EXPECT_LE(message.size, kInline);
}

TEST(GssOverRdma, reduces_nothing_with_integrity_or_privacy) {
  PROVES("R8166-8.2.2.3-c");
  for (const gss::Service service : {gss::Service::integrity, gss::Service::privacy}) {
    SecurePair secure(service);
    for (const WireMessage& message :
         {secure.call_of<Store>(blob(65'536)), secure.call_of<Fetch>({1, 65'536}),
          secure.call_of<FetchTwo>({20'000, 30'000}), secure.call_of<Store>(blob(10))}) {
      EXPECT_FALSE(has_read_chunk(message, false));
      EXPECT_TRUE(message.header.write_list.empty());
    }
    for (const WireMessage& message : secure.pair.replies(End::Passive))
      EXPECT_TRUE(message.header.write_list.empty());
  }
}

TEST(GssOverRdma, moves_long_transformed_messages_by_Position_Zero_and_Reply_chunk) {
  PROVES("R8166-8.2.2.3-b", "R8166-8.2.2.3-d");
  for (const gss::Service service : {gss::Service::integrity, gss::Service::privacy}) {
    SecurePair secure(service);
    const WireMessage both = secure.call_of<Echo>(blob(65'536));
    EXPECT_TRUE(has_read_chunk(both, true));
    EXPECT_TRUE(both.header.reply_chunk.has_value());
    EXPECT_TRUE(both.header.write_list.empty());
    EXPECT_TRUE(both.payload.empty()) << "RDMA_NOMSG";
    const auto replies = secure.pair.replies(End::Passive);
    ASSERT_EQ(replies.size(), 1u);
    EXPECT_TRUE(replies[0].payload.empty());
    const WireMessage stored = secure.call_of<Store>(blob(65'536));
    EXPECT_TRUE(has_read_chunk(stored, true));
    const WireMessage fetched = secure.call_of<Fetch>({1, 65'536});
    EXPECT_TRUE(fetched.header.reply_chunk.has_value());
  }
}

TEST(GssOverRdma, never_reduces_what_belongs_to_RPCSEC_GSS) {
  PROVES("R8166-8.2.2-a");
  SecurePair secure(gss::Service::none);
  secure.realm->name = std::string(40'000, 'n');
  secure.realm->rounds = 2;
  ASSERT_TRUE(secure.call<Store>(blob(100'000)).ok());
  int control = 0;
  for (const WireMessage& message : secure.pair.calls(End::Active)) {
    const bool data = has_read_chunk(message, false);
    control += data ? 0 : 1;
    EXPECT_TRUE(data || message.header.write_list.empty());
    EXPECT_TRUE(data || has_read_chunk(message, true)) << "40 000 bytes of token";
  }
  EXPECT_EQ(control, 2);
}

// The memory that the caller gave for the data stays as it was.
TEST(GssOverRdma, shows_nothing_to_the_caller_that_does_not_prove_itself) {
  PROVES("R8166-8.2.2.3-a");
  for (const gss::Service service : {gss::Service::integrity, gss::Service::privacy})
    for (const std::uint32_t length : {1'000u, 100'000u}) {
      SecurePair secure(service);
      ASSERT_TRUE(secure.call<FetchWhole>({1, 1}).ok());
      secure.realm->corrupts_replies = true;
      std::vector<std::byte> memory(length, std::byte{0xee});
      const std::vector<std::byte> before = memory;
      const ResultBuffer buffer{kBlobData, memory};
      CallOptions options;
      options.result_buffers = {&buffer, 1};
      const auto result = secure.call<Fetch>({1, length}, options);
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.error().reason, Reason::RpcProtectionFailed);
      EXPECT_EQ(memory, before);
      secure.realm->corrupts_replies = false;
      ASSERT_TRUE(secure.call<Fetch>({1, length}, options).ok());
    }
}

TEST(GssOverRdma, cuts_the_server_off_before_it_looks_at_integrity) {
  PROVES("R8166-8.1.3-c");
  for (const gss::Service service :
       {gss::Service::none, gss::Service::integrity, gss::Service::privacy}) {
    PairSetup setup;
    setup.sim.faults.pending_revocation_permille = 1000;
    setup.client.transport.remote_invalidation = false;
    SecurePair secure(service, setup);
    int looked = 0;
    secure.realm->on_verify = [&](bool server) {
      if (server) return;
      ++looked;
      EXPECT_THAT(secure.pair.record.reachable(End::Active), IsEmpty());
    };
    ASSERT_TRUE(secure.call<Echo>(blob(100'000)).ok());
    EXPECT_GT(looked, 1);
    EXPECT_FALSE(secure.pair.record.exposed(End::Active).empty());
    secure.realm->on_verify = nullptr;
  }
}

}  // namespace
}  // namespace stag::rpc::rdma
