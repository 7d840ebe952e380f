// Arrays of structures and optional data that travel by chunk, in both directions, seen on the wire
// (testdata/parcel.x).
#include <gtest/gtest.h>

#include "rpc/rdma/testdata/parcel.h"
#include "testing/rdma_pair.h"

namespace stag::rpc::rdma::bodies {
namespace {

using namespace testing::parcel;

constexpr std::uint32_t kRoom = 100000;

// Nothing of `three` but its three flags need be inline.
constexpr auto kFetch = bind<PARCEL_FETCH>(
    {}, {item::three_first, item::three_second, item::three_third}, [](const sizes&) {
      return ReplyBound{
          12,
          {{item::three_first, kRoom}, {item::three_second, kRoom}, {item::three_third, kRoom}}};
    });
// Words before, between and after, the count and the flag.
constexpr auto kEcho = bind<PARCEL_ECHO>(
    {item::shelf_rows, item::shelf_note}, {item::shelf_rows, item::shelf_note}, [](const shelf&) {
      return ReplyBound{20, {{item::shelf_rows, kRoom}, {item::shelf_note, kRoom}}};
    });
constexpr std::array kParcelTable{kEcho.paired(Pairing::ByIndex), kFetch.paired(Pairing::ByIndex)};
constexpr std::array kShiftTable{kEcho, kFetch};

std::optional<note> note_of(std::uint32_t seed, std::uint32_t length) {
  if (length == 0) return std::nullopt;
  return note{seed, pattern(seed, length)};
}
Task<shelf> echo(CallContext&, shelf value) {
  co_return value;
}
Task<three> fetch(CallContext&, sizes wanted) {
  co_return three{note_of(1, wanted.first), note_of(2, wanted.second), note_of(3, wanted.third)};
}

constexpr std::uint32_t kRows = 40, kText = 4001;

shelf filled() {
  shelf value;
  value.before = 0xb0b0b0b0;
  for (std::uint32_t row = 0; row < kRows; ++row) value.rows.push_back(numbers(row, 0x1000 + row));
  value.between = 0x3e3e3e3e;
  value.note = note{0x7a67a67a, pattern(5, kText)};
  value.after = 0xaf7e4af7;
  return value;
}
PairSetup parcels() {
  PairSetup setup;
  setup.client.quirks = rpcrdma::PeerQuirks::none();
  setup.client.transport.inline_size = setup.server.transport.inline_size = 1024;
  return setup;
}

struct Parcels : Pair {
  explicit Parcels(Binding binding = kParcelTable, PairSetup setup = parcels())
      : Pair(std::move(setup)) {
    Program program(PARCEL_PROGRAM, PARCEL_V1, binding);
    program.add<PARCEL_ECHO>(echo).add<PARCEL_FETCH>(fetch);
    program_server.add(std::move(program));
    client.emplace(*channel, binding);
  }
  // The words of a chunk: what the active end exposed, or the passive end wrote.
  std::vector<std::uint32_t> words(Act act, const rpcrdma::Segments& segments) const {
    std::vector<std::byte> bytes;
    for (const rpcrdma::Segment& segment : segments)
      for (const Recorded& entry : record.log())
        if (entry.act == act && entry.handle == segment.handle)
          bytes.insert(bytes.end(), entry.bytes.begin(), entry.bytes.end());
    std::vector<std::uint32_t> all;
    for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4)
      all.push_back(load_be<std::uint32_t>(bytes.data() + at));
    return all;
  }
};

std::uint32_t bytes_offered(const rpcrdma::WriteChunk& chunk) {
  return static_cast<std::uint32_t>(rpcrdma::total_length(chunk.segments));
}

// The words of the body of `rows`: each row with its own count.
std::vector<std::uint32_t> row_words() {
  std::vector<std::uint32_t> words;
  for (std::uint32_t row = 0; row < kRows; ++row) {
    words.push_back(row);
    words.insert(words.end(), row, 0x1000 + row);
  }
  return words;
}

TEST(Bodies, leave_only_the_outer_count_of_an_array_of_arrays_behind) {
  PROVES("R8166-3.4.4.1-c", "R8166-3.4.4.1-a");
  Parcels pair;
  const auto back = pair.call<PARCEL_ECHO>(filled());
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(*back, filled());
  const auto call = pair.calls(End::Active).at(0), reply = pair.replies(End::Passive).at(0);
  ASSERT_EQ(call.header.read_list.size(), 2u);
  EXPECT_EQ(pair.words(Act::ExposeSource, call.header.read_list[0].segments), row_words());
  ASSERT_EQ(reply.header.write_list.size(), 2u);
  EXPECT_EQ(bytes_offered(reply.header.write_list[0]), 4 * row_words().size());
  EXPECT_EQ(pair.words(Act::Write, reply.header.write_list[0].segments), row_words());
  // Before, the count, between, the flag, after: the end of either message.
  for (const WireMessage& message : {call, reply}) {
    const std::size_t end = message.payload.size() / 4;
    EXPECT_EQ(message.word(end - 5), 0xb0b0b0b0u);
    EXPECT_EQ(message.word(end - 4), kRows);
    EXPECT_EQ(message.word(end - 3), 0x3e3e3e3eu);
  }
}

TEST(Bodies, leave_the_flag_of_optional_data_behind) {
  PROVES("R8166-3.4.4.2-a", "R8166-3.4.4.2-b");
  Parcels pair;
  ASSERT_TRUE(pair.call<PARCEL_ECHO>(filled()).ok());
  const auto call = pair.calls(End::Active).at(0), reply = pair.replies(End::Passive).at(0);
  ASSERT_EQ(call.header.read_list.size(), 2u);
  ASSERT_EQ(reply.header.write_list.size(), 2u);
  const auto argument = pair.words(Act::ExposeSource, call.header.read_list[1].segments);
  const auto result = pair.words(Act::Write, reply.header.write_list[1].segments);
  ASSERT_EQ(argument.size(), 2 + kText / 4 + 1) << "tag, length, text and its pad";
  EXPECT_EQ(argument[0], 0x7a67a67au);
  EXPECT_EQ(argument[1], kText);
  EXPECT_EQ(result, argument);
  for (const WireMessage& message : {call, reply}) {
    const std::size_t end = message.payload.size() / 4;
    EXPECT_EQ(message.word(end - 3), 0x3e3e3e3eu);
    EXPECT_EQ(message.word(end - 2), 1u) << "it is present";
    EXPECT_EQ(message.word(end - 1), 0xaf7e4af7u);
  }
}

TEST(Bodies, that_are_small_or_absent_stay_in_the_message) {
  Parcels pair;
  shelf value = filled();
  value.rows = {{1, 2, 3}, {}};
  value.note.reset();
  EXPECT_EQ(*pair.call<PARCEL_ECHO>(value), value);
  EXPECT_TRUE(pair.calls(End::Active).at(0).header.read_list.empty());
  value.rows.clear();
  EXPECT_EQ(*pair.call<PARCEL_ECHO>(value), value);
}

TEST(Bodies, meet_the_chunk_of_their_place_when_one_before_them_is_absent) {
  const auto lengths = [](Binding binding, sizes wanted) {
    Parcels pair(binding);
    const auto got = pair.call<PARCEL_FETCH>(wanted);
    EXPECT_TRUE(got.ok()) << got.error().message();
    if (got.ok()) {
      EXPECT_EQ(got->first, note_of(1, 0));
      EXPECT_EQ(got->second, note_of(2, wanted.second));
      EXPECT_EQ(got->third, note_of(3, wanted.third));
    }
    std::vector<std::uint32_t> rooms;
    const WireMessage reply = pair.replies(End::Passive).at(0);
    for (const auto& chunk : reply.header.write_list) rooms.push_back(bytes_offered(chunk));
    return rooms;
  };
  EXPECT_EQ(lengths(Binding(kParcelTable), {0, 2000, 1000}),
            (std::vector<std::uint32_t>{0, 2008, 1008}));
  EXPECT_EQ(lengths(Binding(kParcelTable), {0, 0, 1000}), (std::vector<std::uint32_t>{0, 0, 1008}));
  EXPECT_EQ(lengths(Binding(kShiftTable), {0, 2000, 1000}),
            (std::vector<std::uint32_t>{2008, 1008, 0}));
}

TEST(Bodies, that_do_not_end_where_their_chunk_does_are_refused) {
  Parcels pair;
  const auto whole = static_cast<std::uint32_t>(4 * row_words().size());
  pair.record.tampering.rewrite_send = [&](End from, std::vector<std::byte>& bytes) {
    if (from != End::Active) return;
    // The length of the first read segment: after four words of header, 1, Position, handle.
    ASSERT_EQ(load_be<std::uint32_t>(bytes.data() + 28), whole);
    store_be(bytes.data() + 28, whole - 4);
  };
  const auto back = pair.call<PARCEL_ECHO>(filled());
  ASSERT_FALSE(back.ok());
  const auto replies = pair.replies(End::Passive);
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].word(5), 4u) << "GARBAGE_ARGS";
  EXPECT_EQ(pair.record.count(Act::Disconnect, End::Active), 0u);
}

}  // namespace
}  // namespace stag::rpc::rdma::bodies
