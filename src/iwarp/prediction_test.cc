// What a Receiver predicts of a tagged message under way, and what it does when something else
// comes.
#include <tuple>

#include "iwarp/harness_test.h"

namespace stag::iwarp::test {
namespace {

constexpr std::uint32_t kStag = 0x0B;
constexpr std::uint32_t kOther = 0x0C;
constexpr std::size_t kPart = 64;  // payload of an ordinary FPDU here
constexpr std::size_t kSize = 6 * kPart + 20;
constexpr std::size_t kGuard = 32;
constexpr std::byte kUnwritten{0xEE};

// Without the bytes that mean "unwritten".
Octets data(std::size_t size, std::uint32_t seed) {
  Octets bytes = pattern(size, seed);
  std::replace(bytes.begin(), bytes.end(), kUnwritten, std::byte{0});
  return bytes;
}

std::string hex(std::uint64_t value, std::size_t octets) {
  Octets bytes(8);
  store_be(bytes.data(), value);
  return to_hex(Bytes(bytes).last(octets));
}

// Of the Write that fills the sink, the bytes from `offset` on.
std::string write(std::size_t offset, std::size_t size = kPart, bool last = false,
                  std::uint32_t stag = kStag) {
  return std::string(last ? "c140" : "8140") + hex(stag, 4) + hex(0x7000 + offset, 8) +
         to_hex(data(size, static_cast<std::uint32_t>(offset)));
}
std::string send(std::uint32_t sequence, std::size_t size = 30) {
  return "4143 00000000 00000000" + hex(sequence, 4) + "00000000" + to_hex(data(size, sequence));
}
std::string invalidating_send(std::uint32_t sequence) {
  return "4144" + hex(kStag, 4) + "00000000" + hex(sequence, 4) + "00000000 aabbcc";
}
const char* const kReadRequest =
    "4141 00000000 00000001 00000001 00000000"
    "0000000d 0000000000000000 00000004 0000000e 0000000000000000";

struct Case {
  const char* name;
  std::vector<std::string> ulpdus;
};

const std::vector<Case> kCases{
    {"as predicted",
     {write(0), write(64), write(128), write(192), write(256), write(320), write(384, 20, true),
      send(1), send(2)}},
    {"a message ends and the next goes on",
     {write(0), write(64, 64, true), write(128), write(192, 64, true), send(1)}},
    {"a Send comes between", {write(0, 64, true), send(1), send(2), write(64), write(128)}},
    {"Sends as long as what was predicted",
     {write(0, 64, true), send(1, 60), send(2, 60), send(3, 300), send(4, 1)}},
    {"a Send in the middle of the message", {write(0), write(64), send(1), write(128, 64, true)}},
    {"an FPDU is shorter", {write(0), write(64, 13), write(77, 64, true), send(1)}},
    {"an FPDU is longer", {write(0), write(64, 200), write(264, 64, true), send(1)}},
    {"a Write of nothing", {write(0), write(64, 0), write(64), write(128)}},
    {"the next Write goes elsewhere", {write(0, 64, true), write(192, 64, true), send(1)}},
    {"the next Write goes to another STag",
     {write(0, 64, true), write(0, 64, true, kOther), write(64, 64, true), send(1)}},
    {"a second half that was written first is kept",
     {write(128), write(192, 64, true), write(0), write(64, 64, true), send(1, 100)}},
    {"the end that was written first is kept",
     {write(384, 20, true), write(0), write(64, 64, true), send(1, 100)}},
    {"the STag is taken back", {write(0), write(64, 64, true), invalidating_send(1), send(2, 200)}},
    {"and then written to",
     {write(0), write(64, 64, true), invalidating_send(1), write(128), send(2, 200)}},
    {"a Read Request", {write(0), kReadRequest, write(64), write(128)}},
    {"two messages are mixed", {write(0), write(0, 64, true, kOther), write(64)}},
    {"a wrong version", {write(0), "8240 0000000b 0000000000007040" + to_hex(data(64, 1))}},
    {"beyond the end", {write(320), write(384, 64, true), send(1)}},
};

struct Played {
  std::vector<std::string> log;
  std::vector<Octets> sends;
  Octets memory = Octets(kGuard + kSize + kGuard, kUnwritten);
  Octets other = Octets(kSize, kUnwritten);
};

Octets wire_of(const Case& what, bool crc) {
  Octets wire;
  for (const std::string& ulpdu : what.ulpdus) {
    const Octets one = fpdu(ulpdu, crc);
    wire.insert(wire.end(), one.begin(), one.end());
  }
  return wire;
}

// `first` octets at once, then `then` at a time; 0: all that is left.
Played play(const Octets& wire, bool crc, std::size_t first, std::size_t then) {
  Played played;
  Inlet inlet({crc, 2, 2, 32});
  const MutableBytes sink = MutableBytes(played.memory).subspan(kGuard, kSize);
  inlet.expose_sink(kStag, sink, 0x7000);
  inlet.expose_sink(kOther, played.other, 0x7000);
  inlet.expose_source(0x0E, Bytes(played.other).first(4), 0);
  // What was taken back belongs to its owner, who fills it, and no peer may change that.
  inlet.sink.on_invalidated = [&] { std::fill(sink.begin(), sink.end(), std::byte{0x11}); };
  for (std::size_t at = 0; at < wire.size();) {
    const std::size_t wanted = at == 0 ? first : then;
    const std::size_t count = wanted == 0 ? wire.size() - at : std::min(wanted, wire.size() - at);
    receive(inlet.receiver, Bytes(wire).subspan(at, count));
    at += count;
  }
  played.log = inlet.sink.log;
  played.sends = inlet.sink.sends;
  return played;
}

class Foresight : public ::testing::TestWithParam<std::tuple<std::size_t, bool>> {};

TEST_P(Foresight, changes_nothing_wherever_the_stream_is_cut) {
  const auto [index, crc] = GetParam();
  const Case& what = kCases[index];
  const Octets wire = wire_of(what, crc);
  const Played plain = play(wire, crc, 0, 0);  // nothing is received in its place
  const Octets guard(kGuard, kUnwritten);
  // With CRC the headers are cut the same.
  for (std::size_t first = 1; first < wire.size(); first += crc ? 7 : 1) {
    for (const std::size_t then : {0, 70}) {
      const Played other = play(wire, crc, first, then);
      SCOPED_TRACE(std::string(what.name) + ", cut at " + std::to_string(first) + ", then " +
                   std::to_string(then));
      ASSERT_EQ(other.log, plain.log);
      ASSERT_EQ(other.sends, plain.sends);
      ASSERT_TRUE(holds_all_of(plain.memory, other.memory, kUnwritten));
      ASSERT_TRUE(holds_all_of(plain.other, other.other, kUnwritten));
      ASSERT_EQ(octets(Bytes(other.memory).first(kGuard)), guard);
      ASSERT_EQ(octets(Bytes(other.memory).last(kGuard)), guard);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Foresight,
                         ::testing::Combine(::testing::Range(std::size_t{0}, kCases.size()),
                                            ::testing::Bool()));

TEST(Foresight, names_the_places_of_all_that_is_left_of_the_sink) {
  Octets memory(kSize);
  Inlet inlet({false, 2, 2, 32});
  inlet.expose_sink(kStag, memory, 0x7000);
  inlet.receiver.on_bytes(Bytes(fpdu(write(0))).first(26));
  const auto targets = inlet.receiver.direct_targets();
  ASSERT_EQ(targets.size(), 13u);
  EXPECT_EQ(targets[0].data(), memory.data() + 10);
  for (std::size_t i = 2; i < 12; i += 2) {
    EXPECT_EQ(targets[i].data(), memory.data() + i / 2 * kPart);
    EXPECT_EQ(targets[i].size(), kPart);
  }
  EXPECT_EQ(targets[12].size(), 20u);
}

TEST(Foresight, ends_for_a_Read_Response_where_what_was_asked_for_ends) {
  Octets memory(kSize);
  Inlet inlet({false, 2, 2, 32});
  inlet.register_read_sink(kStag, memory, 0x7000);
  inlet.receiver.expect_read_response({kStag, 0x7000, 3 * kPart, 0xFEED, 0x9999});
  const std::string first = "8142" + hex(kStag, 4) + hex(0x7000, 8) + to_hex(data(kPart, 0));
  inlet.receiver.on_bytes(Bytes(fpdu(first)).first(26));
  const auto targets = inlet.receiver.direct_targets();
  ASSERT_EQ(targets.size(), 5u);
  EXPECT_EQ(targets[4].data(), memory.data() + 2 * kPart);
  EXPECT_EQ(targets[4].size(), kPart);
}

TEST(Foresight, finds_damage_in_any_FPDU_that_was_received_with_others) {
  const Octets good = wire_of(kCases[0], true);
  const std::size_t header = kLengthSize + kTaggedHeaderSize;
  for (std::size_t i = 1; i < 6; ++i) {
    Octets wire = good;
    wire[i * fpdu_size(kTaggedHeaderSize + kPart) + header + 10 * i] ^= std::byte{4};
    EXPECT_EQ(play(wire, true, 30, 0).log, (std::vector<std::string>{"violation FpduCrcWrong"}));
  }
}

}  // namespace
}  // namespace stag::iwarp::test
