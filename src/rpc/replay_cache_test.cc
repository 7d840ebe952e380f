#include "rpc/replay_cache.h"

#include <gtest/gtest.h>

#include <new>

#include "rpc/credentials.h"
#include "rpc/server.h"
#include "testing/manual_loop.h"
#include "testing/store_service.h"

namespace stag::rpc {
namespace {

using namespace testing::store;
using testing::ManualLoop;
using Admission = ReplayCache::Admission;

CallResults results_of(std::uint32_t value, std::uint32_t size = 4) {
  xdr::Encoder encoder;
  encoder.u32(value);
  encoder.fixed_opaque(pattern(size, value).flatten().bytes());
  CallResults made;
  made.results = std::move(encoder).finish();
  return made;
}

ReplayKey key_of(std::uint32_t n) {
  ReplayKey key;
  store_be(key.digest.data(), n);
  return key;
}

// Admits on its own and keeps the outcome for when it comes.
struct Attempt {
  Attempt(ReplayCache& cache, Loop& loop, std::uint32_t n) : key(key_of(n)) {
    detach(run(this, cache, loop));
  }
  static Task<void> run(Attempt* self, ReplayCache& cache, Loop& loop) {
    ReplayCache::Admitted admitted = co_await cache.admit(self->key, loop);
    self->admission = admitted.admission;
    self->results = std::move(admitted.results);
  }
  ReplayKey key;
  std::optional<Admission> admission;
  std::optional<CallResults> results;
};

TEST(ReplayCache, runs_a_call_once_and_replays_its_reply) {
  ManualLoop loop;
  ReplayCache cache;
  Attempt first(cache, loop, 1);
  EXPECT_EQ(first.admission, Admission::Run);
  cache.finish(first.key, loop, results_of(7));
  Attempt again(cache, loop, 1);
  EXPECT_EQ(again.admission, Admission::Replay);
  ASSERT_TRUE(again.results.has_value());
  EXPECT_EQ(again.results->results.rope(), results_of(7).results.rope());
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
  cache.finish(first.key, loop, results_of(7));
  loop.drain();
  EXPECT_EQ(third.admission, Admission::Replay);
  ASSERT_TRUE(third.results.has_value());
}

TEST(ReplayCache, forgets_a_run_that_gave_no_answer) {
  ManualLoop loop;
  ReplayCache cache;
  Attempt first(cache, loop, 1);
  Attempt second(cache, loop, 1);
  cache.finish(first.key, loop, std::nullopt);
  loop.drain();
  ASSERT_EQ(second.admission, Admission::Run) << "it came by a connection that may be there still";
  cache.finish(second.key, loop, std::nullopt);
  EXPECT_EQ(cache.entries(), 0u);
  Attempt third(cache, loop, 1);
  EXPECT_EQ(third.admission, Admission::Run);
  cache.finish(third.key, loop, std::nullopt);
}

// A loop that may have no memory for a function more.
class FullLoop final : public Loop {
 public:
  explicit FullLoop(ManualLoop& loop) : loop_(loop) {}
  TimePoint now() const override { return loop_.now(); }
  void post(Function function) override {
    if (full) throw std::bad_alloc();
    loop_.post(std::move(function));
  }
  [[nodiscard]] Timer after(Duration delay, Function function) override {
    return loop_.after(delay, std::move(function));
  }
  void offload(Function work, Function done) override {
    loop_.offload(std::move(work), std::move(done));
  }
  bool on_thread() const override { return true; }
  bool full = false;

 private:
  // The timers are those of the loop behind.
  void cancel_timer(std::uint64_t) override {}
  ManualLoop& loop_;
};

TEST(ReplayCache, lets_a_duplicate_find_after_ten_seconds_what_its_loop_was_too_full_to_hear) {
  ManualLoop loop;
  FullLoop full(loop);
  ReplayCache cache;
  Attempt first(cache, loop, 1);
  Attempt second(cache, full, 1);
  Attempt third(cache, full, 2);
  EXPECT_EQ(third.admission, Admission::Run);
  Attempt fourth(cache, full, 2);
  loop.pass(std::chrono::seconds(15));
  full.full = true;
  Attempt fifth(cache, full, 2);
  cache.finish(first.key, loop, results_of(7));
  full.full = false;
  loop.drain();
  EXPECT_FALSE(second.admission.has_value());
  EXPECT_FALSE(fourth.admission.has_value());
  loop.pass(std::chrono::seconds(10));
  EXPECT_EQ(second.admission, Admission::Replay);
  ASSERT_TRUE(second.results.has_value());
  EXPECT_EQ(second.results->results.rope(), results_of(7).results.rope());
  EXPECT_EQ(fourth.admission, Admission::Drop);
  EXPECT_FALSE(fifth.admission.has_value());
  cache.finish(third.key, loop, results_of(8));
  loop.drain();
  EXPECT_EQ(fifth.admission, Admission::Replay);
  EXPECT_FALSE(loop.has_timer());
}

TEST(ReplayCache, stays_within_its_bytes_and_drops_the_oldest_first) {
  ManualLoop loop;
  ReplayCache cache({.max_bytes = 16 * 20'000, .max_age = std::chrono::hours(1)});
  for (std::uint32_t n = 0; n < 100; ++n) {
    Attempt attempt(cache, loop, n);
    cache.finish(attempt.key, loop, results_of(n, 2000));
    EXPECT_LE(cache.bytes(), 20'000u);
  }
  EXPECT_EQ(Attempt(cache, loop, 99).admission, Admission::Replay);
  EXPECT_EQ(Attempt(cache, loop, 0).admission, Admission::Run);
  cache.finish(key_of(0), loop, std::nullopt);
}

TEST(ReplayCache, keeps_no_memory_but_that_which_it_counts) {
  ManualLoop loop;
  ReplayCache cache;
  Buffer large = pattern(1 << 20, 1).flatten();
  xdr::Encoder encoder;
  encoder.opaque(xdr::kNoItem, Rope(large.slice(0, 1500)));
  CallResults made{{}, std::move(encoder).finish()};
  const Buffer whole = made.results.rope().flatten();
  Attempt first(cache, loop, 1);
  cache.finish(first.key, loop, made);
  made.results = {};
  EXPECT_FALSE(large.exclusive().empty());
  EXPECT_GE(cache.bytes(), 2048u + 512) << "the Blocks, not the bytes in them";
  const Attempt again(cache, loop, 1);
  ASSERT_EQ(again.admission, Admission::Replay);
  EXPECT_EQ(again.results->results.rope(), Rope(whole));
}

TEST(ReplayCache, forgets_what_is_older_than_its_age) {
  ManualLoop loop;
  ReplayCache cache({.max_bytes = 1 << 20, .max_age = std::chrono::seconds(60)});
  Attempt first(cache, loop, 1);
  cache.finish(first.key, loop, results_of(7));
  loop.pass(std::chrono::seconds(59));
  EXPECT_EQ(Attempt(cache, loop, 1).admission, Admission::Replay);
  loop.pass(std::chrono::seconds(2));
  EXPECT_EQ(Attempt(cache, loop, 1).admission, Admission::Run);
  cache.finish(first.key, loop, std::nullopt);
}

// The n-th result of a client address.
ReplayKey key_of(std::uint32_t address, std::uint32_t n) {
  ReplayKey key = key_of(n);
  // In one shard, whatever n is.
  store_be(key.digest.data() + 16, std::uint64_t{address});
  store_be(key.digest.data() + 24, std::uint64_t{n} * 16);
  return key;
}
bool is_kept(ReplayCache& cache, ManualLoop& loop, const ReplayKey& key) {
  const auto admitted = *loop.run(cache.admit(key, loop));
  if (admitted.admission == Admission::Run) cache.finish(key, loop, std::nullopt);
  return admitted.admission == Admission::Replay;
}
void keep(ReplayCache& cache, ManualLoop& loop, const ReplayKey& key, std::uint32_t size) {
  ASSERT_EQ(loop.run(cache.admit(key, loop))->admission, Admission::Run);
  cache.finish(key, loop, results_of(1, size));
}

TEST(ReplayCache, lets_no_client_address_push_out_what_others_keep) {
  ManualLoop loop;
  ReplayCache cache({.max_bytes = 16 * 100'000, .max_age = std::chrono::hours(1)});
  for (std::uint32_t n = 0; n < 3; ++n) keep(cache, loop, key_of(1, n), 4000);
  for (std::uint32_t n = 0; n < 1000; ++n) {
    keep(cache, loop, key_of(2, n), 4000);
    ASSERT_LE(cache.bytes(), 100'000u);
  }
  for (std::uint32_t n = 0; n < 3; ++n) EXPECT_TRUE(is_kept(cache, loop, key_of(1, n))) << n;
  EXPECT_TRUE(is_kept(cache, loop, key_of(2, 999)));
  EXPECT_TRUE(is_kept(cache, loop, key_of(2, 992))) << "alone with little it has much";
  EXPECT_FALSE(is_kept(cache, loop, key_of(2, 900)));
  for (std::uint32_t address = 3; address < 200; ++address)
    for (std::uint32_t n = 0; n < 3; ++n) keep(cache, loop, key_of(address, n), 4000);
  EXPECT_LE(cache.bytes(), 100'000u) << "however many addresses there are";
  EXPECT_TRUE(is_kept(cache, loop, key_of(199, 2)));
}

TEST(ReplayCache, lets_no_long_results_push_out_what_others_keep) {
  ManualLoop loop;
  ReplayCache cache({.max_bytes = 16 * 100'000, .max_age = std::chrono::hours(1)});
  for (std::uint32_t n = 0; n < 3; ++n) keep(cache, loop, key_of(1, n), 4000);
  for (const std::uint32_t size : {200'000u, 100'000u, 12'500u, 10'000u})
    for (std::uint32_t n = 0; n < 20; ++n) keep(cache, loop, key_of(2, size + n), size);
  for (std::uint32_t n = 0; n < 3; ++n) EXPECT_TRUE(is_kept(cache, loop, key_of(1, n))) << n;
}

TEST(ReplayCache, answers_a_duplicate_whose_results_were_too_long_without_them) {
  ManualLoop loop;
  ReplayCache cache({.max_bytes = 16 * 100'000, .max_age = std::chrono::hours(1)});
  const auto longest = static_cast<std::uint32_t>(cache.longest());
  keep(cache, loop, key_of(1, 1), longest - 4);
  keep(cache, loop, key_of(1, 2), longest);
  const auto whole = *loop.run(cache.admit(key_of(1, 1), loop));
  EXPECT_EQ(whole.results->results.size(), longest);
  const auto again = *loop.run(cache.admit(key_of(1, 2), loop));
  ASSERT_EQ(again.admission, Admission::Replay) << "it is not executed again";
  EXPECT_EQ(again.results->status.accept, oncrpc::AcceptStat::SYSTEM_ERR);
  EXPECT_EQ(again.results->results.size(), 0u);
}

TEST(ReplayCache, gives_long_results_to_a_duplicate_that_waited_for_them) {
  ManualLoop loop;
  ReplayCache cache({.max_bytes = 16 * 1000, .max_age = std::chrono::hours(1)});
  Attempt first(cache, loop, 1);
  Attempt second(cache, loop, 1);
  cache.finish(first.key, loop, results_of(7, 4000));
  loop.drain();
  ASSERT_EQ(second.admission, Admission::Replay);
  EXPECT_EQ(second.results->results.rope(), results_of(7, 4000).results.rope());
}

TEST(ReplayCache, takes_no_bytes_away_from_a_reply_when_it_forgets_its_results) {
  ManualLoop loop;
  ReplayCache cache({.max_bytes = 1 << 20, .max_age = std::chrono::seconds(60)});
  keep(cache, loop, key_of(1, 1), 100'000 / 16);
  const auto replayed = *loop.run(cache.admit(key_of(1, 1), loop));
  ASSERT_EQ(replayed.admission, Admission::Replay);
  loop.pass(std::chrono::hours(1));
  EXPECT_FALSE(is_kept(cache, loop, key_of(1, 1)));
  EXPECT_EQ(cache.entries(), 0u);
  EXPECT_EQ(replayed.results->results.rope(), results_of(1, 100'000 / 16).results.rope());
}

struct KeyCase {
  std::string host = "192.0.2.7";
  std::uint16_t port = 700;
  std::uint32_t xid = 5;
  std::uint32_t uid = 1000;
  std::uint32_t seed = 1;
  std::string_view machine = "m";
  std::uint32_t program = kProgram;
  std::uint32_t version = kVersion;
  std::uint32_t procedure = 2;
};

// Header and arguments as PUT sends them; with `reduced` the data travels apart, with its pad or
// not.
ReplayKey key(const KeyCase& from, bool reduced = false, bool with_pad = false) {
  const Credentials credentials = Credentials::sys(from.machine, from.uid, 1);
  oncrpc::CallHeader header;
  header.xid = from.xid;
  header.program = from.program;
  header.version = from.version;
  header.procedure = from.procedure;
  header.credential = credentials.credential();
  Caller caller;
  caller.flavor = oncrpc::AuthFlavor::AUTH_SYS;
  caller.uid = from.uid;
  const std::array<xdr::ItemId, 1> watched{item::put_data};
  xdr::Encoder encoder(watched);
  oncrpc::encode(encoder, header);
  PUT::encode_args(encoder, {.slot = 1, .data = pattern(1001, from.seed), .checksum = 3});
  const xdr::Stream stream = std::move(encoder).finish();
  Origin origin;
  origin.peer = {from.host, from.port};
  ReducedItems items;
  const std::size_t offset = oncrpc::header_size(header);
  if (!reduced)
    return replay_key(origin, header, caller, {stream.rope().flatten().bytes(), offset, &items});
  Rope data = stream.item_bytes(0);
  const std::array<std::byte, 3> pad{};
  if (with_pad) data.append(Buffer::borrow(pad));
  items.add(stream.items()[0].position, data);
  const std::array<std::uint32_t, 1> moved{0};
  return replay_key(origin, header, caller,
                    {stream.without(moved).flatten().bytes(), offset, &items});
}

TEST(ReplayKey, is_the_same_for_a_retransmission_whatever_port_or_chunks_it_uses) {
  const ReplayKey original = key({});
  EXPECT_EQ(key({.port = 999}), original);
  EXPECT_EQ(key({}, true), original);
  EXPECT_EQ(key({}, true, true), original);
}

TEST(ReplayKey, leaves_out_what_a_credential_says_besides_the_principal) {
  EXPECT_EQ(key({.machine = "another name"}), key({.machine = "m"}));
}

TEST(ReplayKey, uses_the_proven_name_whatever_ids_it_is_mapped_to) {
  const auto key_of_name = [](const char* name, std::uint32_t uid) {
    Caller caller;
    caller.uid = uid;
    caller.name = std::make_shared<const std::string>(name);
    return replay_key(Origin{}, {}, caller, {});
  };
  EXPECT_EQ(key_of_name("alice", 1), key_of_name("alice", 2));
  EXPECT_NE(key_of_name("alice", 1), key_of_name("bob", 1));
}

TEST(ReplayKey, stays_the_same_when_a_name_service_has_other_groups_for_the_user) {
  const auto key_with = [](std::vector<std::uint32_t> groups, bool undecided) {
    Caller caller;
    caller.flavor = oncrpc::AuthFlavor::AUTH_SYS;
    caller.gids.push_back(7);
    caller.groups = std::make_shared<const std::vector<std::uint32_t>>(std::move(groups));
    caller.groups_undecided = undecided;
    return replay_key(Origin{}, {}, caller, {});
  };
  EXPECT_EQ(key_with({1, 2}, false), key_with({3}, false));
  EXPECT_EQ(key_with({}, true), key_with({3}, false));
}

TEST(ReplayKey, differs_for_another_client_xid_procedure_principal_or_argument) {
  const ReplayKey original = key({});
  EXPECT_NE(key({.host = "192.0.2.8"}), original);
  EXPECT_NE(key({.xid = 6}), original);
  EXPECT_NE(key({.program = kProgram + 1}), original);
  EXPECT_NE(key({.version = kVersion + 1}), original);
  EXPECT_NE(key({.procedure = 3}), original);
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
    const PlainArguments arguments{payload.bytes(), 40, &items};
    EXPECT_EQ(replay_key(origin, header, {}, arguments), replay_key(origin, header, {}, arguments));
  }
}

// One ADD_ONCE of 5 with this XID, from a port of the client.
Buffer add_once_call(std::uint32_t xid) {
  xdr::Encoder encoder;
  oncrpc::CallHeader header;
  header.xid = xid;
  header.program = kProgram;
  header.version = kVersion;
  header.procedure = ADD_ONCE::number;
  oncrpc::encode(encoder, header);
  encoder.u32(5);
  return std::move(encoder).finish().rope().flatten();
}
std::optional<OutgoingReply> served(ManualLoop& loop, Server& server, const Buffer& message,
                                    std::uint16_t port) {
  IncomingCall call;
  auto origin = std::make_shared<Origin>();
  origin->peer = {"192.0.2.7", port};
  origin->loop = &loop;
  call.origin = origin;
  call.payload = message;
  return *loop.run(server.serve(call));
}

TEST(RpcServerReplay, runs_a_non_idempotent_procedure_once_for_a_retransmitted_call) {
  ManualLoop loop;
  State state;
  Server server;
  server.add(make_program(state));
  const Buffer message = add_once_call(12);
  const auto first = served(loop, server, message, 700);
  const auto second = served(loop, server, message, 701);
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->stream.rope(), second->stream.rope());
  EXPECT_EQ(state.executed, 1u);
  EXPECT_EQ(state.total, 5u);
}

TEST(RpcServerReplay, runs_every_call_of_a_program_without_replays) {
  ManualLoop loop;
  State state;
  Server server;
  Program program = make_program(state);
  program.replays(ReplayPolicy::None);
  server.add(std::move(program));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(served(loop, server, add_once_call(12), 700).has_value());
  EXPECT_EQ(state.total, 10u);
  EXPECT_EQ(server.replay_cache().entries(), 0u);
}

// A procedure that decides itself which of its Calls are kept, in a cache of its program.
class Choosing final : public Handler {
 public:
  explicit Choosing(ReplayCache& cache) : cache_(cache) {}
  Eventual<HandlerOutcome> run(CallContext& context, xdr::Decoder& arguments, const ReducedItems&,
                               xdr::Encoder& results) override {
    std::uint32_t value = 0;
    const bool decoded = arguments.u32(value);
    EXPECT_TRUE(decoded);
    const ReplayKey key = context.replay_key();
    const ReplayCache::Admitted admitted = co_await cache_.admit(key, context.loop());
    if (admitted.admission == Admission::Replay) {
      results.append(admitted.results->results);
      co_return HandlerOutcome{.status = {}, .drop = false, .encoded = true};
    }
    xdr::Encoder own;
    own.u32(total_ += value);
    CallResults kept{{}, std::move(own).finish()};
    results.append(kept.results);
    cache_.finish(key, context.loop(), std::move(kept));
    co_return HandlerOutcome{.status = {}, .drop = false, .encoded = true};
  }

 private:
  ReplayCache& cache_;
  std::uint32_t total_ = 0;
};

TEST(RpcServerReplay, leaves_replays_to_a_program_that_owns_them) {
  ManualLoop loop;
  ReplayCache cache;
  Server server;
  Program program(kProgram, kVersion, kBinding);
  program.replays(ReplayPolicy::OwnedByProgram)
      .add(ADD_ONCE::number, std::make_unique<Choosing>(cache));
  server.add(std::move(program));
  const auto first = served(loop, server, add_once_call(12), 700);
  const auto again = served(loop, server, add_once_call(12), 701);
  const auto other = served(loop, server, add_once_call(13), 701);
  ASSERT_TRUE(first && again && other);
  EXPECT_EQ(again->stream.rope(), first->stream.rope());
  const Buffer last = other->stream.rope().flatten();
  EXPECT_EQ(load_be<std::uint32_t>(last.data() + 24), 10u);
  EXPECT_EQ(cache.entries(), 2u);
  EXPECT_EQ(server.replay_cache().entries(), 0u);
}

}  // namespace
}  // namespace stag::rpc
