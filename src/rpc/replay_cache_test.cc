#include "rpc/replay_cache.h"

#include <gtest/gtest.h>

#include "rpc/credentials.h"
#include "rpc/server.h"
#include "testing/manual_loop.h"
#include "testing/store_service.h"

namespace stag::rpc {
namespace {

using namespace testing::store;
using testing::ManualLoop;
using Admission = ReplayCache::Admission;

OutgoingReply reply_of(std::uint32_t value, std::uint32_t size = 4) {
  xdr::Encoder encoder;
  encoder.u32(value);
  encoder.fixed_opaque(pattern(size, value).flatten().bytes());
  OutgoingReply reply;
  reply.stream = std::move(encoder).finish();
  return reply;
}

ReplayKey key_of(std::uint32_t n) {
  ReplayKey key;
  store_be(key.digest.data(), n);
  return key;
}

// Admits on its own and keeps the outcome for when it comes.
struct Attempt {
  Attempt(ReplayCache& cache, ManualLoop& loop, std::uint32_t n) : key(key_of(n)) {
    detach(run(this, cache, loop));
  }
  static Task<void> run(Attempt* self, ReplayCache& cache, ManualLoop& loop) {
    ReplayCache::Admitted admitted = co_await cache.admit(self->key, loop);
    self->admission = admitted.admission;
    self->reply = std::move(admitted.reply);
  }
  ReplayKey key;
  std::optional<Admission> admission;
  std::optional<OutgoingReply> reply;
};

TEST(ReplayCache, runs_a_call_once_and_replays_its_reply) {
  ManualLoop loop;
  ReplayCache cache;
  Attempt first(cache, loop, 1);
  EXPECT_EQ(first.admission, Admission::Run);
  cache.finish(first.key, loop, reply_of(7));
  Attempt again(cache, loop, 1);
  EXPECT_EQ(again.admission, Admission::Replay);
  ASSERT_TRUE(again.reply.has_value());
  EXPECT_EQ(again.reply->stream.rope(), reply_of(7).stream.rope());
  EXPECT_EQ(Attempt(cache, loop, 2).admission, Admission::Run);
  cache.finish(key_of(2), loop, std::nullopt);
}

TEST(ReplayCache, lets_the_newest_duplicate_wait_for_the_first_run) {
  ManualLoop loop;
  ReplayCache cache;
  Attempt first(cache, loop, 1);
  Attempt second(cache, loop, 1);
  Attempt third(cache, loop, 1);
  loop.drain();
  EXPECT_EQ(second.admission, Admission::Drop);
  EXPECT_FALSE(third.admission.has_value());
  cache.finish(first.key, loop, reply_of(7));
  loop.drain();
  EXPECT_EQ(third.admission, Admission::Replay);
  ASSERT_TRUE(third.reply.has_value());
}

TEST(ReplayCache, forgets_a_run_that_gave_no_answer) {
  ManualLoop loop;
  ReplayCache cache;
  Attempt first(cache, loop, 1);
  Attempt second(cache, loop, 1);
  cache.finish(first.key, loop, std::nullopt);
  loop.drain();
  EXPECT_EQ(second.admission, Admission::Drop);
  EXPECT_EQ(cache.entries(), 0u);
  Attempt third(cache, loop, 1);
  EXPECT_EQ(third.admission, Admission::Run);
  cache.finish(third.key, loop, std::nullopt);
}

TEST(ReplayCache, stays_within_its_bytes_and_drops_the_oldest_first) {
  ManualLoop loop;
  ReplayCache cache({.max_bytes = 16 * 20'000, .max_age = std::chrono::hours(1)});
  for (std::uint32_t n = 0; n < 100; ++n) {
    Attempt attempt(cache, loop, n);
    cache.finish(attempt.key, loop, reply_of(n, 4000));
    EXPECT_LE(cache.bytes(), 20'000u);
  }
  EXPECT_EQ(Attempt(cache, loop, 99).admission, Admission::Replay);
  EXPECT_EQ(Attempt(cache, loop, 0).admission, Admission::Run);
  cache.finish(key_of(0), loop, std::nullopt);
}

TEST(ReplayCache, forgets_what_is_older_than_its_age) {
  ManualLoop loop;
  ReplayCache cache({.max_bytes = 1 << 20, .max_age = std::chrono::seconds(60)});
  Attempt first(cache, loop, 1);
  cache.finish(first.key, loop, reply_of(7));
  loop.pass(std::chrono::seconds(59));
  EXPECT_EQ(Attempt(cache, loop, 1).admission, Admission::Replay);
  loop.pass(std::chrono::seconds(2));
  EXPECT_EQ(Attempt(cache, loop, 1).admission, Admission::Run);
  cache.finish(first.key, loop, std::nullopt);
}

struct KeyCase {
  std::string host = "192.0.2.7";
  std::uint16_t port = 700;
  std::uint32_t xid = 5;
  std::uint32_t uid = 1000;
  std::uint32_t seed = 1;
};

// Header and arguments as PUT sends them; with `reduced` the data travels apart, with its pad or
// not.
ReplayKey key(const KeyCase& from, bool reduced = false, bool with_pad = false) {
  const Credentials credentials = Credentials::sys("m", from.uid, 1);
  oncrpc::CallHeader header;
  header.xid = from.xid;
  header.program = kProgram;
  header.version = kVersion;
  header.procedure = 2;
  header.credential = credentials.credential();
  const std::array<xdr::ItemId, 1> watched{item::put_data};
  xdr::Encoder encoder(watched);
  oncrpc::encode(encoder, header);
  PUT::encode_args(encoder, {.slot = 1, .data = pattern(1001, from.seed), .checksum = 3});
  const xdr::Stream stream = std::move(encoder).finish();
  Origin origin;
  origin.peer = {from.host, from.port};
  ReducedItems items;
  if (!reduced) return replay_key(origin, header, stream.rope().flatten().bytes(), items);
  Rope data = stream.item_bytes(0);
  const std::array<std::byte, 3> pad{};
  if (with_pad) data.append(Buffer::borrow(pad));
  items.add(stream.items()[0].position, data);
  const std::array<std::uint32_t, 1> moved{0};
  return replay_key(origin, header, stream.without(moved).flatten().bytes(), items);
}

TEST(ReplayKey, is_the_same_for_a_retransmission_whatever_port_or_chunks_it_uses) {
  const ReplayKey original = key({});
  EXPECT_EQ(key({.port = 999}), original);
  EXPECT_EQ(key({}, true), original);
  EXPECT_EQ(key({}, true, true), original);
}

TEST(ReplayKey, differs_for_another_client_xid_credential_or_argument) {
  const ReplayKey original = key({});
  EXPECT_NE(key({.host = "192.0.2.8"}), original);
  EXPECT_NE(key({.xid = 6}), original);
  EXPECT_NE(key({.uid = 0}), original);
  EXPECT_NE(key({.seed = 2}), original);
  EXPECT_NE(key({.seed = 2}, true), key({}, true));
}

TEST(ReplayKey, survives_chunk_positions_that_make_no_sense) {
  oncrpc::CallHeader header;
  Origin origin;
  const Buffer payload = pattern(60, 1).flatten();
  for (std::uint32_t position : {0u, 3u, 40u, 43u, 59u, 60u, 61u, 0xffffffffu}) {
    ReducedItems items;
    items.add(position, pattern(100, 2));
    items.add(position / 2, pattern(3, 2));
    EXPECT_EQ(replay_key(origin, header, payload.bytes(), items),
              replay_key(origin, header, payload.bytes(), items));
  }
}

TEST(Server, runs_a_non_idempotent_procedure_once_for_a_retransmitted_call) {
  ManualLoop loop;
  State state;
  Server server;
  server.add(make_program(state));
  xdr::Encoder encoder;
  oncrpc::CallHeader header;
  header.xid = 12;
  header.program = kProgram;
  header.version = kVersion;
  header.procedure = ADD_ONCE::number;
  oncrpc::encode(encoder, header);
  encoder.u32(5);
  const Buffer message = std::move(encoder).finish().rope().flatten();
  std::optional<Rope> first;
  for (std::uint16_t port : {700, 701}) {
    IncomingCall call;
    auto origin = std::make_shared<Origin>();
    origin->peer = {"192.0.2.7", port};
    origin->loop = &loop;
    call.origin = origin;
    call.payload = message;
    auto reply = *loop.run(server.serve(call));
    ASSERT_TRUE(reply.has_value());
    if (!first) first = reply->stream.rope();
    EXPECT_EQ(reply->stream.rope(), *first);
  }
  EXPECT_EQ(state.executed, 1u);
  EXPECT_EQ(state.total, 5u);
}

}  // namespace
}  // namespace stag::rpc
