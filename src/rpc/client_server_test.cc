#include <gtest/gtest.h>

#include "rpc/client.h"
#include "rpc/server.h"
#include "testing/direct_channel.h"
#include "testing/manual_loop.h"
#include "testing/proves.h"
#include "testing/store_service.h"

namespace stag::rpc {
namespace {

using namespace testing::store;
using oncrpc::AcceptStat;
using oncrpc::AuthStat;
using oncrpc::ReplyStatus;
using testing::DirectChannel;
using testing::ManualLoop;

struct World {
  explicit World(bool reduce = false) : channel(loop, server, reduce) {
    server.add(make_program(state));
  }
  template <xdr::Procedure P>
  CallResult<typename P::Results> call(typename P::Args args, CallOptions options = {}) {
    return *loop.run(client.call<P>(args, options));
  }

  ManualLoop loop;
  State state;
  Server server;
  DirectChannel channel;
  Client client{channel, kBinding};
};

// A procedure of our program that the server does not have, and ones of other programs.
struct Unknown : INCREMENT {
  static constexpr std::uint32_t number = 99;
};
struct OtherVersion : INCREMENT {
  static constexpr std::uint32_t version = 7;
};
struct OtherProgram : INCREMENT {
  static constexpr std::uint32_t program = 5;
};
struct HighNumber : INCREMENT {
  static constexpr std::uint32_t number = kProcedureNumbers;
};
template <class P>
concept Addable = requires(Server& server, Program& program,
                           Task<std::uint32_t> (*handler)(CallContext&, std::uint32_t)) {
  server.add<P>(handler);
  program.add<P>(handler);
};
// Sends one word more than INCREMENT takes.
struct TooMuch : INCREMENT {
  static void encode_args(xdr::Encoder& to, std::uint32_t value) { to.u64(value); }
};
// Expects more than INCREMENT returns.
struct TooLittle : INCREMENT {
  static bool decode_results(xdr::Decoder& from, std::uint32_t& value) {
    std::uint64_t both = 0;
    value = 0;
    return from.u64(both);
  }
};
// Reads less than INCREMENT returns.
struct Leftover : INCREMENT {
  static bool decode_results(xdr::Decoder&, std::uint32_t& value) { return value = 0, true; }
};

TEST(RpcClient, calls_a_procedure_and_gets_its_results) {
  World world;
  auto result = world.call<INCREMENT>(41);
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(*result, 42u);
}

TEST(RpcClient, pings_a_program_by_its_procedure_zero) {
  World world;
  EXPECT_TRUE(world.loop.run(world.client.ping(kProgram, kVersion))->ok());
  EXPECT_FALSE(world.loop.run(world.client.ping(kProgram, 1))->ok());
}

TEST(RpcClient, moves_bulk_both_ways_whether_the_transport_reduces_it_or_not) {
  for (bool reduce : {false, true}) {
    World world(reduce);
    for (std::uint32_t size : {0u, 1u, 5u, 511u, 512u, 70'001u}) {
      const Rope data = pattern(size, size);
      auto stored = world.call<PUT>({.slot = 3, .data = data, .checksum = checksum(data)});
      ASSERT_TRUE(stored.ok()) << stored.error().message();
      EXPECT_EQ(stored->stored, size);
      EXPECT_EQ(stored->checksum, checksum(data));
      auto back = world.call<GET>({.slot = 3, .count = 100'000});
      ASSERT_TRUE(back.ok()) << back.error().message();
      EXPECT_EQ(back->data, data) << size;
      EXPECT_EQ(back->checksum, checksum(data));
    }
  }
}

TEST(RpcClient, marks_eligible_items_in_its_messages_and_no_others) {
  PROVES("R8166-6-a");
  World world;
  const Rope data = pattern(4000, 1);
  ASSERT_TRUE(world.call<PUT>({.slot = 1, .data = data, .checksum = checksum(data)}).ok());
  ASSERT_EQ(world.channel.last_call.items().size(), 1u);
  EXPECT_EQ(world.channel.last_call.items()[0].id, item::put_data);
  EXPECT_EQ(world.channel.last_call.items()[0].position, 40u + 8u);
  Client unbound(world.channel);
  ASSERT_TRUE(world.loop.run(unbound.call<PUT>({.slot = 1, .data = data, .checksum = 0}))->ok());
  for (const xdr::Item& item : world.channel.last_call.items()) EXPECT_EQ(item.id, xdr::kNoItem);
}

TEST(RpcClient, bounds_the_reply_by_the_binding_else_by_the_type_else_by_its_option) {
  World world;
  ASSERT_TRUE(world.call<GET>({.slot = 1, .count = 5000}).ok());
  EXPECT_EQ(world.channel.last_bound.payload_max, 12u + oncrpc::kReplyHeaderSize);
  ASSERT_EQ(world.channel.last_bound.items.size(), 1u);
  EXPECT_EQ(world.channel.last_bound.items[0].max_length, 5000u);
  ASSERT_TRUE(world.call<INCREMENT>(1).ok());
  EXPECT_EQ(world.channel.last_bound.payload_max, oncrpc::kMaxErrorReplySize)
      << "four bytes of results, but a PROG_MISMATCH must fit as well";
  ClientOptions options;
  options.unbounded_results_max = 3000;
  Client unbound(world.channel, {}, {}, options);
  ASSERT_TRUE(world.loop.run(unbound.call<REVERSE>("ab"))->ok());
  EXPECT_EQ(world.channel.last_bound.payload_max, 3000u + oncrpc::kReplyHeaderSize);
}

TEST(RpcClient, reports_every_way_a_server_declines) {
  World world;
  const auto status = [](const auto& result) {
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind, CallError::Kind::Answered);
    return result.error().status;
  };
  EXPECT_EQ(status(world.call<Unknown>(1)), ReplyStatus::accepted(AcceptStat::PROC_UNAVAIL));
  EXPECT_EQ(status(world.call<OtherProgram>(1)), ReplyStatus::accepted(AcceptStat::PROG_UNAVAIL));
  EXPECT_EQ(status(world.call<OtherVersion>(1)),
            ReplyStatus::accepted(AcceptStat::PROG_MISMATCH, {kVersion, kVersion}));
  EXPECT_EQ(status(world.call<TooMuch>(1)), ReplyStatus::accepted(AcceptStat::GARBAGE_ARGS));
}

TEST(RpcClient, reports_results_it_cannot_decode_as_malformed) {
  World world;
  for (const auto& result : {world.call<TooLittle>(1), world.call<Leftover>(1)}) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind, CallError::Kind::Malformed);
    EXPECT_EQ(result.error().reason, Reason::RpcResultsMalformed);
  }
}

TEST(RpcClient, says_where_and_why_a_call_failed) {
  World world;
  EXPECT_EQ(world.call<OtherVersion>(1).error().message(),
            "direct: the server serves versions 2 to 2 of this program only");
}

// What the server says to a REVERSE of eight bytes that came with a chunk at this Position.
ReplyStatus status_of_reverse(bool bytes_are_inline, std::uint32_t chunk_at) {
  World world;
  xdr::Encoder encoder(kTable[0].arguments.ids());
  oncrpc::CallHeader header;
  header.xid = 9;
  header.program = kProgram;
  header.version = kVersion;
  header.procedure = REVERSE::number;
  oncrpc::encode(encoder, header);
  encoder.u32(8);
  if (bytes_are_inline) encoder.u64(0x6162636465666768);
  IncomingCall call;
  auto origin = std::make_shared<Origin>();
  origin->loop = &world.loop;
  call.origin = origin;
  call.payload = std::move(encoder).finish().rope().flatten();
  if (chunk_at != 0) call.items.add(chunk_at, pattern(8, 1));
  auto reply = *world.loop.run(world.server.serve(call));
  STAG_CHECK(reply.has_value());
  xdr::Decoder decoder(reply->stream.rope().flatten());
  return oncrpc::decode_reply(decoder)->status;
}

TEST(RpcServer, does_not_execute_a_call_that_reduced_what_is_not_eligible) {
  PROVES("R8166-6.1-c", "R8166-6.1-d");
  EXPECT_EQ(status_of_reverse(false, 44), ReplyStatus::accepted(AcceptStat::GARBAGE_ARGS));
}

TEST(RpcServer, does_not_execute_a_call_with_a_chunk_that_belongs_to_no_item) {
  PROVES("R8166-6.1-d");
  EXPECT_TRUE(status_of_reverse(true, 0).success());
  for (const std::uint32_t nowhere : {40u, 48u, 52u, 4000u})
    EXPECT_EQ(status_of_reverse(true, nowhere), ReplyStatus::accepted(AcceptStat::GARBAGE_ARGS));
}

class Refusing final : public Authenticator {
 public:
  oncrpc::AuthFlavor flavor() const override { return oncrpc::AuthFlavor::AUTH_NONE; }
  Task<Authentication> authenticate(const oncrpc::CallHeader&, const IncomingCall&) override {
    Authentication made;
    made.refuse(AuthStat::AUTH_TOOWEAK);
    co_return made;
  }
};

TEST(RpcServer, refuses_with_the_auth_stat_its_authenticator_gives) {
  World world;
  world.server.add(std::make_unique<Refusing>());
  auto result = world.call<INCREMENT>(1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().status, ReplyStatus::auth_error(AuthStat::AUTH_TOOWEAK));
}

TEST(RpcServer, takes_no_procedure_whose_number_is_beyond_its_table) {
  static_assert(Addable<INCREMENT> && !Addable<HighNumber>);
  World world;
  auto result = world.call<HighNumber>(1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().status, ReplyStatus::accepted(AcceptStat::PROC_UNAVAIL));
}

struct WhoAmI : INCREMENT {
  static constexpr std::uint32_t program = 0x20000078;
};

TEST(RpcServer, tells_handlers_the_caller) {
  World world;
  world.server.add<WhoAmI>([](CallContext& call, std::uint32_t) -> Task<std::uint32_t> {
    EXPECT_EQ(call.caller().flavor, oncrpc::AuthFlavor::AUTH_SYS);
    EXPECT_EQ(call.caller().gid, 100u);
    EXPECT_EQ(call.caller().gids.size(), 16u) << "AUTH_SYS carries no more";
    EXPECT_EQ(call.origin().peer.host, "192.0.2.7");
    co_return call.caller().uid;
  });
  std::array<std::uint32_t, 20> gids{};
  Client client(world.channel, {}, Credentials::sys("host", 1000, 100, gids));
  auto result = *world.loop.run(client.call<WhoAmI>(0u));
  ASSERT_TRUE(result.ok()) << result.error().message();
  EXPECT_EQ(*result, 1000u);
}

TEST(RpcServer, lets_handlers_refuse_and_drop) {
  World world;
  using Value = Result<std::uint32_t, CallRefusal>;
  world.server.add<WhoAmI>([](CallContext&, std::uint32_t how) -> Task<Value> {
    CallRefusal refusal;
    refusal.drop = how == 1;
    if (how < 2) co_return Failure{refusal};
    co_return how;
  });
  EXPECT_EQ(world.call<WhoAmI>(0).error().status, ReplyStatus::accepted(AcceptStat::SYSTEM_ERR));
  EXPECT_EQ(world.call<WhoAmI>(1).error().kind, CallError::Kind::Transport);
  EXPECT_EQ(*world.call<WhoAmI>(2), 2u);
}

TEST(RpcServer, answers_RPC_MISMATCH_and_drops_what_is_no_call) {
  World world;
  const auto serve = [&](std::initializer_list<std::uint32_t> words) {
    Block block = Block::allocate(64);
    std::size_t size = 0;
    for (std::uint32_t word : words) store_be(block.data() + 4 * size++, word);
    IncomingCall call;
    auto origin = std::make_shared<Origin>();
    origin->loop = &world.loop;
    call.origin = origin;
    call.payload = std::move(block).freeze(4 * size);
    return *world.loop.run(world.server.serve(call));
  };
  auto mismatch = serve({77, 0, 3});
  ASSERT_TRUE(mismatch.has_value());
  xdr::Decoder decoder(mismatch->stream.rope().flatten());
  auto header = oncrpc::decode_reply(decoder);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->xid, 77u);
  EXPECT_EQ(header->status, ReplyStatus::rpc_mismatch());
  EXPECT_FALSE(serve({77, 1, 0, 0, 0, 0}).has_value());
  EXPECT_FALSE(serve({77, 0, 2, kProgram}).has_value());
}

// The status in answer to a Call without arguments (but `trailing` words) that came by `transport`.
ReplyStatus answer_to(World& world, Server& server, TransportKind transport, std::uint32_t version,
                      std::uint32_t procedure, std::size_t trailing = 0) {
  xdr::Encoder encoder;
  oncrpc::CallHeader header;
  header.program = 0x20000099;
  header.version = version;
  header.procedure = procedure;
  oncrpc::encode(encoder, header);
  for (std::size_t i = 0; i < trailing; ++i) encoder.u32(0);
  IncomingCall call;
  auto origin = std::make_shared<Origin>();
  origin->loop = &world.loop;
  origin->transport = transport;
  call.origin = origin;
  call.payload = std::move(encoder).finish().rope().flatten();
  const auto reply = *world.loop.run(server.serve(call));
  EXPECT_TRUE(reply.has_value());
  xdr::Decoder decoder(reply->stream.rope().flatten());
  return oncrpc::decode_reply(decoder)->status;
}

TEST(RpcServer, shows_on_each_transport_only_the_programs_that_are_present_there) {
  World world;
  Server server;
  server.add(std::move(Program(0x20000099, 1).absent_from(TransportKind::Rdma)));
  server.add(std::move(
      Program(0x20000099, 3).absent_from(TransportKind::Udp).absent_from(TransportKind::Rdma)));
  const auto answer = [&](TransportKind transport, std::uint32_t version) {
    return answer_to(world, server, transport, version, 0);
  };
  EXPECT_TRUE(answer(TransportKind::Tcp, 1).success());
  EXPECT_TRUE(answer(TransportKind::Tcp, 3).success());
  EXPECT_TRUE(answer(TransportKind::Udp, 1).success());
  EXPECT_EQ(answer(TransportKind::Udp, 3),
            ReplyStatus::accepted(AcceptStat::PROG_MISMATCH, {1, 1}));
  EXPECT_EQ(answer(TransportKind::Tcp, 0),
            ReplyStatus::accepted(AcceptStat::PROG_MISMATCH, {1, 3}));
  EXPECT_EQ(answer(TransportKind::Rdma, 1), ReplyStatus::accepted(AcceptStat::PROG_UNAVAIL));
  ASSERT_EQ(server.programs().size(), 2u);
  EXPECT_EQ(server.programs()[1]->version(), 3u);
  EXPECT_FALSE(server.programs()[1]->present_on(TransportKind::Udp));
}

TEST(RpcServer, answers_the_NULL_procedure_whatever_follows_its_header) {
  World world;
  Server server;
  server.add(Program(0x20000099, 1));
  EXPECT_TRUE(answer_to(world, server, TransportKind::Tcp, 1, 0).success());
  EXPECT_TRUE(answer_to(world, server, TransportKind::Tcp, 1, 0, 250).success());
}

TEST(CopyInto, copies_only_what_is_not_in_place) {
  std::array<std::byte, 8> memory{};
  memory[0] = std::byte{1};
  Rope rope = Rope::borrow(Bytes(memory).first(4));
  const std::array<std::byte, 4> other{std::byte{9}, std::byte{8}, std::byte{7}, std::byte{6}};
  rope.append(Buffer::borrow(other));
  copy_into(rope, memory);
  EXPECT_EQ(memory[0], std::byte{1});
  EXPECT_EQ(memory[4], std::byte{9});
  EXPECT_EQ(memory[7], std::byte{6});
}

}  // namespace
}  // namespace stag::rpc
