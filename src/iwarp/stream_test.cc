// Whole byte streams: what Linux siw sent, and what our Sender sends, cut in every way.
#include "iwarp/harness_test.h"
#include "iwarp/sender.h"

namespace stag::iwarp::test {
namespace {

// What a captured stream touches is registered first, so that a Receiver accepts it.

// Calls `visit` with each ULPDU.
template <class Visit>
void for_each_ulpdu(const Octets& wire, Visit visit) {
  for (std::size_t at = 0; at < wire.size();) {
    const auto length = load_be<std::uint16_t>(wire.data() + at);
    visit(Bytes(wire).subspan(at + kLengthSize, length));
    at += fpdu_size(length);
  }
}

// A server's Writes, Read Requests and invalidations: the first Write to an STag names its offset.
void prepare_server(Inlet& inlet, Octets& memory, const Octets& wire) {
  std::map<std::uint32_t, bool> known;
  std::size_t used = 0;
  for_each_ulpdu(wire, [&](Bytes ulpdu) {
    const Control control = decode_control(ulpdu.data());
    std::uint32_t stag = 0;
    if (control.tagged) {
      const TaggedHeader header = decode_tagged(ulpdu.data());
      stag = header.stag;
      if (known[stag]) return;
      inlet.expose_sink(stag, MutableBytes(memory).subspan(used, 21000), header.offset);
      used += 21000;
    } else if (control.opcode == static_cast<std::uint8_t>(Opcode::ReadRequest)) {
      const ReadRequest read = decode_read_request(ulpdu.data() + kUntaggedHeaderSize);
      stag = read.source_stag;
      inlet.expose_source(stag, Bytes(memory).first(read.size), read.source_offset);
    } else if (invalidates(static_cast<Opcode>(control.opcode))) {
      stag = decode_untagged(ulpdu.data()).invalidate;
      if (!known[stag]) inlet.expose_sink(stag, MutableBytes(memory).first(1), 0);
    }
    known[stag] = true;
  });
}

// A client's Read Responses: the first, whole or cut off by the capture's end.
void prepare_client(Inlet& inlet, Octets& memory, const Octets& wire) {
  ReadRequest read;
  bool ended = false;
  for_each_ulpdu(wire, [&](Bytes ulpdu) {
    if (!decode_control(ulpdu.data()).tagged) return;
    const TaggedHeader header = decode_tagged(ulpdu.data());
    if (read.size == 0) {
      read.sink_stag = header.stag;
      read.sink_offset = header.offset;
    }
    read.size += static_cast<std::uint32_t>(ulpdu.size() - kTaggedHeaderSize);
    ended = header.control.last;
  });
  if (!ended) read.size = 65536;
  inlet.register_read_sink(read.sink_stag, MutableBytes(memory).first(read.size), read.sink_offset);
  inlet.receiver.expect_read_response(read);
}

constexpr std::byte kFiller{0xEE};

struct Outcome {
  std::vector<std::string> log;
  std::vector<Octets> sends;
  Octets memory;

  // Of `whole`, which came in one piece, so that all of its memory is known.
  bool same_as(const Outcome& whole) const {
    return log == whole.log && sends == whole.sends && holds_all_of(whole.memory, memory, kFiller);
  }
};

// `next` gives the size of the next portion.
template <class Portions>
Outcome play(const std::string& file, const Octets& wire, bool crc, Portions next) {
  Inlet inlet({crc, 16, 16, 512});
  Octets memory(200000, kFiller);
  file.starts_with("siw_server") ? prepare_server(inlet, memory, wire)
                                 : prepare_client(inlet, memory, wire);
  for (std::size_t at = 0; at < wire.size();) {
    const std::size_t count = std::min<std::size_t>(next(), wire.size() - at);
    receive(inlet.receiver, Bytes(wire).subspan(at, count));
    at += count;
  }
  EXPECT_TRUE(inlet.sink.violations.empty())
      << file << ": " << to_string(inlet.sink.violations[0].reason);
  return {inlet.sink.log, inlet.sink.sends, std::move(memory)};
}

class Captured : public ::testing::TestWithParam<const char*> {
 protected:
  std::string file() const { return GetParam(); }
  bool crc() const { return file().find("crc") != std::string::npos; }
  Octets wire = golden(GetParam()).at("fpdus");
  const Outcome whole = play(file(), wire, crc(), [this] { return wire.size(); });
};

TEST_P(Captured, streams_are_received_without_complaint) {
  EXPECT_GE(whole.sends.size(), 10u);
  EXPECT_TRUE(whole.memory != Octets(whole.memory.size(), kFiller)) << "some payload was placed";
}

TEST_P(Captured, streams_give_the_same_cut_at_every_byte) {
  EXPECT_TRUE(play(file(), wire, crc(), [] { return 1; }).same_as(whole));
  for (std::size_t cut = 1; cut < std::min<std::size_t>(wire.size(), 1500); ++cut) {
    std::size_t portion = cut;
    const Outcome two = play(file(), wire, crc(), [&] { return std::exchange(portion, 1 << 20); });
    ASSERT_EQ(two.log, whole.log) << "cut at " << cut;
    ASSERT_TRUE(two.same_as(whole)) << "cut at " << cut;
  }
}

TEST_P(Captured, streams_give_the_same_in_random_portions) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const std::size_t most = std::size_t{1} << random() % 13;
    ASSERT_TRUE(play(file(), wire, crc(), [&] { return 1 + random() % most; }).same_as(whole))
        << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(FromLinux, Captured,
                         ::testing::Values("siw_client_small_io.hex", "siw_server_small_io.hex",
                                           "siw_client_crc.hex", "siw_server_crc.hex"),
                         [](const auto& instance) {
                           const std::string name = instance.param;
                           return name.substr(0, name.find('.'));
                         });

TEST(CapturedCauses, that_made_linux_terminate_are_violations_here_too) {
  const auto frames = golden("siw_terminates.hex");
  int causes = 0;
  for (const auto& [name, bytes] : frames) {
    if (!name.starts_with("cause_")) continue;
    // The CRC is wrong in the second message of its stream, which cannot stand alone.
    if (name == "cause_mpa_crc_ok_then_badcrc") continue;
    Inlet inlet({false, static_cast<std::uint16_t>(name == "cause_rreq_no_ird" ? 0 : 4), 0, 4096});
    inlet.receiver.on_bytes(bytes);
    ASSERT_EQ(inlet.sink.violations.size(), 1u) << name;
    ++causes;
    // Linux's answers to these two have no headers, so nothing tells that the nibbles are reversed.
    if (name == "cause_bad_rdmap_version" || name == "cause_bad_opcode") continue;
    const auto theirs = decode_terminate(frames.at("terminate_" + name.substr(6)));
    const ErrorCode ours = inlet.sink.violations[0].terminate.error;
    EXPECT_EQ(ours, theirs->error) << name << ": " << to_string(ours);
  }
  EXPECT_GE(causes, 9);
}

// Random messages of all kinds through a Sender and, in random portions, into a Receiver.
class RoundTrip : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  static constexpr std::size_t kMemory = 300000;

  RoundTrip() {
    options_.crc = random_() % 2 == 0;
    options_.max_ulpdu = 128 + random_() % (random_() % 2 == 0 ? 2000 : 64641);
    options_.batch_bytes = 1 + random_() % 100000;
    source_entropy_.script(0x50);
    source_.expose_source(data_, kBase);
  }

  void begin(Sender& sender, Inlet& inlet) {
    const std::size_t size = random_() % (random_() % 4 == 0 ? 100000 : 500);
    const std::size_t at = random_() % (kMemory - size);
    const Bytes part = Bytes(data_).subspan(at, size);
    Rope rope = Rope::borrow(part.first(size / 3));
    rope.append(Rope::copy_of(part.subspan(size / 3)));
    switch (random_() % 4) {
      case 0:
        sends_.push_back(octets(part));
        return sender.begin_send(std::move(rope));
      case 1:
        std::copy(part.begin(), part.end(), expected_.begin() + static_cast<std::ptrdiff_t>(at));
        return sender.begin_write(0x60, kBase + at, std::move(rope));
      case 2: {
        const ReadRequest read{0x70, kBase + at, static_cast<std::uint32_t>(size), 0x50,
                               kBase + at};
        inlet.receiver.expect_read_response(read);
        std::copy(part.begin(), part.end(),
                  read_expected_.begin() + static_cast<std::ptrdiff_t>(at));
        return sender.begin_read_response(read);
      }
      default:
        requests_.push_back({1, 2, 0, static_cast<std::uint32_t>(random_()), random_()});
        return sender.begin_read_request(requests_.back());
    }
  }

  // One sendmsg's worth, in pieces as a socket gives them.
  void carry(Batch& batch, Inlet& inlet) {
    Octets wire = joined(batch.unsent());
    wire.resize(1 + random_() % wire.size());
    batch.sent(wire.size());
    for (std::size_t at = 0; at < wire.size();) {
      const std::size_t count = std::min<std::size_t>(1 + random_() % 70000, wire.size() - at);
      receive(inlet.receiver, Bytes(wire).subspan(at, count));
      at += count;
    }
  }

  static constexpr std::uint64_t kBase = 0xFFFFFFFF00000000;
  std::mt19937 random_{GetParam()};
  SenderOptions options_;
  Octets data_ = pattern(kMemory, GetParam());
  TestEntropy source_entropy_;
  StagTable source_{source_entropy_};
  std::vector<Octets> sends_;
  std::vector<ReadRequest> requests_;
  Octets expected_ = Octets(kMemory);
  Octets read_expected_ = Octets(kMemory);
};

TEST_P(RoundTrip, delivers_every_message_once_and_places_every_byte) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  Inlet inlet({options_.crc, 200, 200, 1 + random_() % 8192}, 1000, 100000);
  Octets memory(kMemory);
  Octets read_memory(kMemory);
  inlet.expose_sink(0x60, memory, kBase);
  inlet.register_read_sink(0x70, read_memory, kBase);
  Sender sender(options_, source_);
  Batch batch;
  for (int messages = 0; messages < 60 || !sender.idle() || !batch.empty();) {
    if (sender.idle() && messages < 60) {
      begin(sender, inlet);
      ++messages;
    }
    ASSERT_TRUE(sender.fill(batch).ok());
    if (random_() % 2 == 0 && !batch.empty()) carry(batch, inlet);
  }
  ASSERT_TRUE(inlet.sink.violations.empty()) << to_string(inlet.sink.violations[0].reason);
  EXPECT_EQ(inlet.sink.sends, sends_);
  EXPECT_EQ(inlet.sink.read_requests, requests_);
  EXPECT_EQ(inlet.receiver.reads_outstanding(), 0u);
  EXPECT_TRUE(holds_all_of(expected_, memory, std::byte{0}));
  EXPECT_TRUE(holds_all_of(read_expected_, read_memory, std::byte{0}));
  EXPECT_TRUE(inlet.receiver.at_boundary());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RoundTrip, ::testing::Range(0u, 60u));

// Whatever a peer sends: no crash, no byte outside what it may write, at most one last word.
TEST(Garbage, never_reaches_memory_that_was_not_exposed) {
  const Octets good = golden("siw_server_small_io.hex").at("fpdus");
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    Inlet inlet({false, 2, 2, 64}, 8, 256);
    Octets memory(64);
    inlet.expose_sink(0x0B, MutableBytes(memory).subspan(16, 32), 0);
    Octets wire(good.begin(), good.begin() + 700);
    for (int i = 0; i < 8; ++i) wire[random() % 140] = static_cast<std::byte>(random());
    for (std::size_t at = 0; at < wire.size();) {
      const std::size_t count = std::min<std::size_t>(1 + random() % 300, wire.size() - at);
      receive(inlet.receiver, Bytes(wire).subspan(at, count));
      at += count;
    }
    EXPECT_EQ(octets(Bytes(memory).first(16)), Octets(16));
    EXPECT_EQ(octets(Bytes(memory).subspan(48)), Octets(16));
    EXPECT_LE(inlet.sink.violations.size() + inlet.sink.terminates.size(), 1u) << seed;
  }
}

}  // namespace
}  // namespace stag::iwarp::test
