// What a peer says that it has written, and has not: the memory holds what an earlier call left
// there, perhaps another user's, and none of it may be taken for a result.
#include <gtest/gtest.h>

#include "testing/rdma_pair.h"

namespace stag::rpc::rdma {
namespace {

constexpr std::uint32_t kLength = 100'000;

// Its second call finds a peer that does wrong.
struct Wrong : Pair {
  explicit Wrong(bool invalidates = true) : Pair(setup_of(invalidates)) {}

  static PairSetup setup_of(bool invalidates) {
    PairSetup setup;
    setup.client.transport.remote_invalidation = invalidates;
    return setup;
  }
  void lose_writes() {
    record.tampering.lose_write = [](End from) { return from == End::Passive; };
  }
  // Of what the server writes.
  void rewrite(std::function<void(std::vector<std::byte>&)> change) {
    record.tampering.rewrite_write = [change](End from, std::vector<std::byte>& bytes) {
      if (from == End::Passive) change(bytes);
    };
  }
  template <class P>
  void expect_failure(Reason reason) {
    const auto result = call<P>({2, kLength});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().reason, reason);
    EXPECT_TRUE(record.reachable(End::Active).empty());
    record.tampering = {};
    loop.run_for(std::chrono::seconds(1));
    EXPECT_EQ(record.count(Act::Disconnect, End::Active), 1u);
    EXPECT_TRUE(call<P>({3, kLength}).ok()) << "on another connection";
  }
};

TEST(StaleMemory, is_no_result_where_the_peer_has_written_none) {
  for (const bool invalidates : {false, true}) {
    Wrong pair(invalidates);
    ASSERT_TRUE(pair.call<Fetch>({1, kLength}).ok());
    pair.lose_writes();
    pair.expect_failure<Fetch>(Reason::RdmaChunkNotWritten);
  }
}

TEST(StaleMemory, is_no_result_where_the_peer_has_written_less_than_it_says) {
  Wrong pair;
  ASSERT_TRUE(pair.call<Fetch>({1, kLength}).ok());
  pair.rewrite([](std::vector<std::byte>& bytes) { bytes.resize(bytes.size() - 1); });
  pair.expect_failure<Fetch>(Reason::RdmaChunkNotWritten);
}

TEST(StaleMemory, is_no_Reply_where_the_peer_has_written_none) {
  for (const bool invalidates : {false, true}) {
    Wrong pair(invalidates);
    ASSERT_TRUE(pair.call<FetchWhole>({1, kLength}).ok());
    pair.lose_writes();
    pair.expect_failure<FetchWhole>(Reason::RdmaChunkNotWritten);
  }
}

// Where no device says what was written the XID does, which nobody else may have put there.
TEST(StaleMemory, is_no_Reply_where_nobody_knows_what_was_written) {
  Wrong pair;
  pair.record.tampering.fill_unknown = true;
  ASSERT_TRUE(pair.call<FetchWhole>({1, kLength}).ok());
  pair.lose_writes();
  pair.record.tampering.fill_unknown = true;
  pair.expect_failure<FetchWhole>(Reason::RdmaXidMismatch);
}

// A Call that is made again has the XID that an answer to its first attempt had.
TEST(StaleMemory, does_not_begin_like_a_Reply) {
  Pair pair;
  int looked_at = 0;
  pair.record.tampering.sink_exposed = [&looked_at](Bytes memory) {
    ++looked_at;
    EXPECT_EQ(load_be<std::uint64_t>(memory.data()), 0u);
  };
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(pair.call<FetchWhole>({i, kLength}).ok());
  EXPECT_EQ(looked_at, 3);
}

TEST(StaleMemory, is_what_a_Reply_to_another_Call_may_be) {
  for (const std::size_t byte : {0u, 3u, 7u}) {
    Wrong pair;
    ASSERT_TRUE(pair.call<FetchWhole>({1, kLength}).ok());
    pair.rewrite([byte](std::vector<std::byte>& bytes) { bytes[byte] ^= std::byte{1}; });
    pair.expect_failure<FetchWhole>(Reason::RdmaXidMismatch);
  }
}

// On a device that takes back memory in its own time.
TEST(StaleMemory, is_found_out_when_the_memory_is_free) {
  PairSetup setup = Wrong::setup_of(false);
  setup.sim.faults.pending_revocation_permille = 1000;
  Pair pair(setup);
  pair.record.tampering.rewrite_write = [](End, std::vector<std::byte>& bytes) {
    bytes[0] ^= std::byte{1};
  };
  const auto result = pair.call<FetchWhole>({1, kLength});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().reason, Reason::RdmaXidMismatch);
}

// One result goes apart, the other makes the Reply a long one.
constexpr std::array kSecondOnlyTable{
    kPairTable[0],
    kPairTable[1],
    kPairTable[2],
    kPairTable[3],
    kPairTable[4],
    kPairTable[5],
    bind<FetchTwo>({}, {kSecond},
                   [](const Wanted& w) {
                     return ReplyBound{8 + w.seed + 3 + w.length, {{kSecond, w.length}}};
                   }),
    kPairTable[7],
    kPairTable[8]};
constexpr Binding kSecondOnly{kSecondOnlyTable};

// Some count what they put into Write chunks as part of the Reply chunk, too.
TEST(StaleMemory, is_not_what_an_unreduced_count_says) {
  PairSetup setup;
  setup.client_binding = setup.server_binding = kSecondOnly;
  Pair pair(setup);
  bool counted = false;
  pair.record.tampering.rewrite_send = [&counted](End from, std::vector<std::byte>& bytes) {
    if (from != End::Passive || rpcrdma::is_error(bytes)) return;
    auto parsed = rpcrdma::decode_header(bytes);
    if (!parsed || !parsed->header.reply_chunk || parsed->header.write_list.empty()) return;
    const std::uint64_t results = total_length(parsed->header.write_list[0].segments);
    if (results == 0) return;
    parsed->header.reply_chunk->segments[0].length += static_cast<std::uint32_t>(results);
    const rpcrdma::EncodedHeader header(parsed->header);
    bytes.assign(header.bytes().begin(), header.bytes().end());
    counted = true;
  };
  const auto two = pair.call<FetchTwo>({30'000, 5000});
  ASSERT_TRUE(two.ok()) << two.error().message();
  EXPECT_TRUE(counted);
  EXPECT_EQ(two->first, pattern(1, 30'000));
  EXPECT_EQ(two->second, pattern(2, 5000));
}

}  // namespace
}  // namespace stag::rpc::rdma
