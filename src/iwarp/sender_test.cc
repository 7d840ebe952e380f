#include "iwarp/sender.h"

#include <optional>

#include "iwarp/harness_test.h"

namespace stag::iwarp::test {
namespace {

struct Outlet {
  explicit Outlet(SenderOptions options = {}) : sender(options, table) {}
  // Everything the message becomes.
  Octets drain() {
    Octets wire;
    while (!sender.idle()) {
      const auto filled = sender.fill(batch);
      EXPECT_TRUE(filled.ok());
      const Octets part = joined(batch.unsent());
      wire.insert(wire.end(), part.begin(), part.end());
      batch.sent(batch.bytes_left());
    }
    return wire;
  }
  Octets send(Bytes message) {
    sender.begin_send(Rope::borrow(message));
    return drain();
  }

  TestEntropy entropy;
  StagTable table{entropy};
  Sender sender;
  Batch batch;
};

SenderOptions options_with(bool crc, bool markers, std::size_t max_ulpdu = kLargestMulpdu) {
  SenderOptions options;
  options.crc = crc;
  options.markers = markers;
  options.max_ulpdu = max_ulpdu;
  return options;
}

TEST(Sender, numbers_the_messages_of_each_queue_from_one) {
  Outlet outlet;
  EXPECT_EQ(to_hex(outlet.send(from_hex("cafe"))),
            "0014414300000000000000000000000100000000cafe0000"
            "00000000");
  outlet.sender.begin_send(Rope::borrow(bytes_of("x")), 0xAABB0001, true);
  EXPECT_EQ(to_hex(outlet.drain()),
            "00134146aabb0001000000000000000200000000780000000000"
            "0000");
  outlet.sender.begin_read_request({1, 2, 3, 4, 5});
  EXPECT_EQ(to_hex(outlet.drain()),
            "002e41410000000000000001000000010000000000000001000000000000000200000003000000040000"
            "00000000000500000000");
  outlet.sender.begin_terminate(make_terminate(error::kCrc));
  EXPECT_EQ(to_hex(outlet.drain()),
            "0016414700000000000000020000000100000000200200000000"
            "0000");
}

TEST(Sender, goes_on_with_message_number_zero_after_the_largest) {
  SenderOptions options;
  options.first_sequence = 0xFFFFFFFF;
  Outlet outlet(options);
  EXPECT_EQ(decode_untagged(outlet.send({}).data() + kLengthSize).sequence, 0xFFFFFFFFu);
  EXPECT_EQ(decode_untagged(outlet.send({}).data() + kLengthSize).sequence, 0u);
}

TEST(Sender, cuts_a_send_into_segments_of_one_message) {
  Outlet outlet(options_with(false, false, 128));
  const Octets message = pattern(230, 1);
  const Octets wire = outlet.send(message);
  // 128 less 18 of header, in whole words: 108 octets a segment.
  ASSERT_EQ(wire.size(), fpdu_size(18 + 108) * 2 + fpdu_size(18 + 14));
  const std::byte* second = wire.data() + fpdu_size(18 + 108) + kLengthSize;
  EXPECT_EQ(decode_untagged(second), (UntaggedHeader{{false, false, 1, 1, 3}, 0, 0, 1, 108}));
  const std::byte* third = second + fpdu_size(18 + 108);
  EXPECT_EQ(decode_untagged(third), (UntaggedHeader{{false, true, 1, 1, 3}, 0, 0, 1, 216}));
}

TEST(Sender, gives_a_short_send_the_same_bytes_at_once_as_by_and_by) {
  for (const std::size_t size : {0u, 1u, 106u, 8192u}) {
    Outlet at_once(options_with(true, false));
    Outlet by_and_by(options_with(true, false));
    const Octets message = pattern(size, 3);
    ASSERT_TRUE(at_once.sender.is_short(size));
    for (const std::optional<std::uint32_t> invalidate : {std::optional<std::uint32_t>(), {7u}}) {
      const Bytes whole(message);
      const std::array parts{whole.first(size / 3), whole.subspan(size / 3)};
      at_once.sender.add_send(at_once.batch, parts, size, invalidate);
      by_and_by.sender.begin_send(Rope::borrow(message), invalidate);
      EXPECT_EQ(to_hex(joined(at_once.batch.unsent())), to_hex(by_and_by.drain()));
      at_once.batch.sent(at_once.batch.bytes_left());
    }
  }
  EXPECT_FALSE(Outlet().sender.is_short(8193));
  EXPECT_FALSE(Outlet(options_with(false, false, 128)).sender.is_short(111)) << "two segments";
  EXPECT_FALSE(Outlet(options_with(false, true)).sender.is_short(1)) << "markers";
}

TEST(Sender, sends_empty_messages) {
  Outlet outlet;
  EXPECT_EQ(outlet.send({}).size(), fpdu_size(kUntaggedHeaderSize));
  outlet.sender.begin_write(0, 0, Rope());
  EXPECT_EQ(to_hex(outlet.drain()),
            "000ec140000000000000000000000000"
            "00000000");
  outlet.sender.begin_read_response({7, 8, 0, 0xDEAD, 9});
  EXPECT_EQ(to_hex(outlet.drain()),
            "000ec142000000070000000000000008"
            "00000000");
}

TEST(Sender, reproduces_the_example_frames_of_RFC_5044) {
  Outlet outlet(options_with(true, true));
  const Octets first = outlet.send(Octets(24));
  EXPECT_EQ(to_hex(first),
            "00000000"
            "002a414300000000000000000000000100000000"
            "000000000000000000000000000000000000000000000000"
            "52239983");
  // Figure 6: the second FPDU of a stream whose first had 492 octets, its marker included.
  Outlet other(options_with(true, true));
  ASSERT_EQ(other.send(Octets(492 - 4 - 24)).size(), 492u);
  EXPECT_EQ(to_hex(other.send(Octets(24))),
            "002a4143000000000000000000000002"
            "00000000"
            "00000014"
            "000000000000000000000000000000000000000000000000"
            "84925898");
}

// Reads a stream with markers as RFC 5044 4.3 describes it, and gives it back without them.
Octets without_markers(Bytes wire, bool crc) {
  Octets plain;
  std::size_t length_field = 0;  // stream position of the current FPDU's
  std::size_t left = 0;          // octets of it still to come, without markers
  Crc32c sum;
  for (std::size_t at = 0; at < wire.size();) {
    if (at % kMarkerInterval == 0) {
      if (left == 0) sum = Crc32c();
      const auto pointer = load_be<std::uint32_t>(wire.data() + at);
      EXPECT_EQ(pointer, left == 0 ? 0 : at - length_field);
      sum.add(wire.subspan(at, kMarkerSize));
      at += kMarkerSize;
      if (left == 0) {
        length_field = at;
        left = fpdu_size(load_be<std::uint16_t>(wire.data() + at));
      }
    } else if (left == 0) {
      sum = Crc32c();
      length_field = at;
      left = fpdu_size(load_be<std::uint16_t>(wire.data() + at));
    }
    const Bytes word = wire.subspan(at, 4);
    if (left > kCrcSize) sum.add(word);
    if (left == kCrcSize && crc) {
      EXPECT_TRUE(sum.matches(word.data()));
    }
    plain.insert(plain.end(), word.begin(), word.end());
    at += 4;
    left -= 4;
  }
  EXPECT_EQ(left, 0u);
  return plain;
}

std::size_t length_field(Bytes fpdu) {
  return load_be<std::uint16_t>(fpdu.data());
}

TEST(Sender, puts_a_marker_at_every_512th_octet_that_points_to_its_FPDU) {
  Outlet marked(options_with(true, true));
  Outlet plain(options_with(false, false, kLargestMulpdu));
  Octets with;
  Octets without;
  std::mt19937 random(4);
  for (int i = 0; i < 200; ++i) {
    const Octets message = pattern(random() % (i % 50 == 0 ? 100000 : 1500), i);
    const Octets a = marked.send(message);
    with.insert(with.end(), a.begin(), a.end());
    const Octets b = plain.send(message);
    without.insert(without.end(), b.begin(), b.end());
  }
  Octets stripped = without_markers(with, true);
  ASSERT_EQ(stripped.size(), without.size());
  // Equal but for the CRC, which covers the markers too.
  Inlet inlet({}, 1000, 1 << 20);
  inlet.receiver.on_bytes(stripped);
  EXPECT_EQ(inlet.sink.sends.size(), 200u);
  EXPECT_TRUE(inlet.sink.violations.empty());
}

// RFC 5044 section 3: MULPDU is 128 to 64768 octets, and no longer ULPDU may be posted.
TEST(Sender, posts_no_ULPDU_above_64768_octets_whatever_it_is_told) {
  const Octets data = pattern(70001, 5);
  for (const std::size_t wish : {0, 1, 127, 128, 131, 1440, 64767, 64768, 64769, 65535, 1 << 20}) {
    for (const bool markers : {false, true}) {
      Outlet outlet(options_with(true, markers, wish));
      outlet.sender.begin_write(1, 0, Rope::borrow(data));
      Octets wire = outlet.drain();
      const Octets send = outlet.send(data);
      wire.insert(wire.end(), send.begin(), send.end());
      if (markers) wire = without_markers(wire, true);
      std::size_t longest = 0;
      for (Bytes rest(wire); !rest.empty(); rest = rest.subspan(fpdu_size(length_field(rest))))
        longest = std::max(longest, length_field(rest));
      const std::size_t most = std::clamp<std::size_t>(wish, 128, 64768);
      EXPECT_LE(longest, most) << wish << (markers ? " with markers" : "");
      EXPECT_GT(longest + 4, most) << wish << (markers ? " with markers" : "");
    }
  }
}

TEST(Sender, points_to_payload_instead_of_copying_it) {
  Outlet outlet(options_with(true, false));
  const Octets data = pattern(200000, 1);
  outlet.sender.begin_write(1, 0, Rope::borrow(data));
  ASSERT_TRUE(outlet.sender.fill(outlet.batch).ok());
  std::size_t inside = 0;
  for (const Bytes range : outlet.batch.unsent()) {
    if (range.data() >= data.data() && range.data() < data.data() + data.size()) {
      inside += range.size();
    }
  }
  EXPECT_EQ(inside, data.size());
  EXPECT_EQ(outlet.batch.unsent().size(), 9u) << "four FPDUs; trailers and headers share ranges";
}

TEST(Sender, gathers_small_messages_into_one_range) {
  Outlet outlet(options_with(true, false));
  const Octets message(100, std::byte{7});
  for (int i = 0; i < 3; ++i) {
    Rope pieces = Rope::borrow(Bytes(message).first(28));
    pieces.append(Buffer::borrow(Bytes(message).subspan(28)));
    outlet.sender.begin_send(std::move(pieces));
    ASSERT_TRUE(outlet.sender.fill(outlet.batch).ok());
    EXPECT_TRUE(outlet.sender.idle());
  }
  ASSERT_EQ(outlet.batch.unsent().size(), 1u);
  Outlet plain(options_with(true, false));
  Octets apart;
  for (int i = 0; i < 3; ++i) {
    const Octets one = plain.send(message);
    apart.insert(apart.end(), one.begin(), one.end());
  }
  EXPECT_EQ(to_hex(joined(outlet.batch.unsent())), to_hex(apart));
}

TEST(Sender, stops_at_a_full_batch_and_goes_on_with_the_next) {
  SenderOptions options = options_with(false, false, 1000);
  options.batch_bytes = 5000;
  Outlet outlet(options);
  const Octets data = pattern(20000, 2);
  outlet.sender.begin_write(0x0B, 0x1000, Rope::borrow(data));
  ASSERT_TRUE(outlet.sender.fill(outlet.batch).ok());
  EXPECT_FALSE(outlet.sender.idle());
  EXPECT_TRUE(outlet.sender.full(outlet.batch));
  EXPECT_LT(outlet.batch.bytes_left(), 6100u);
  Octets memory(20000);
  Inlet inlet;
  inlet.expose_sink(0x0B, memory, 0x1000);
  inlet.receiver.on_bytes(joined(outlet.batch.unsent()));
  outlet.batch.sent(outlet.batch.bytes_left());
  inlet.receiver.on_bytes(outlet.drain());
  EXPECT_EQ(memory, data);
}

TEST(Sender, looks_the_source_of_a_read_up_for_every_FPDU) {
  SenderOptions options = options_with(false, false, 1000);
  options.batch_bytes = 900;
  Outlet outlet(options);
  const Octets source = pattern(3000, 3);
  outlet.entropy.script(0x0A);
  const std::uint32_t stag = outlet.table.expose_source(source, 0x100).value();
  outlet.sender.begin_read_response({0x0C, 0x2000, 3000, stag, 0x100});
  ASSERT_TRUE(outlet.sender.fill(outlet.batch).ok());
  ASSERT_EQ(outlet.batch.bytes_left(), fpdu_size(14 + 984));
  outlet.batch.sent(outlet.batch.bytes_left());
  outlet.table.revoke(stag);
  const auto filled = outlet.sender.fill(outlet.batch);
  ASSERT_FALSE(filled.ok());
  EXPECT_EQ(filled.error().reason, Reason::StagRevoked);
  EXPECT_TRUE(outlet.sender.idle());
  // RFC 5040 4.8: the header says where the Read stood.
  Octets bytes(kMaxTerminateSize);
  bytes.resize(encode_terminate(filled.error().terminate, bytes));
  EXPECT_EQ(to_hex(bytes),
            "0100e000002e414100000000000000010000000100000000"
            "0000000c00000000000023d8000007e00000000a00000000000004d8");
}

TEST(Batch, gives_up_borrowed_memory_for_private_copies) {
  Outlet outlet;
  Octets data = pattern(5000, 4);
  outlet.sender.begin_write(0x0B, 0, Rope::borrow(data));
  ASSERT_TRUE(outlet.sender.fill(outlet.batch).ok());
  const Octets before = joined(outlet.batch.unsent());
  outlet.batch.sent(1000);
  outlet.batch.take_private_copies();
  data.assign(data.size(), std::byte{0});
  EXPECT_EQ(joined(outlet.batch.unsent()), octets(Bytes(before).subspan(1000)));
}

TEST(Batch, keeps_owners_alive_until_their_bytes_have_left) {
  struct Watched final : Storage {
    explicit Watched(bool& gone_flag) : gone(gone_flag) {}
    void release() noexcept override { gone = true; }
    bool& gone;
  };
  bool gone = false;
  Watched storage(gone);
  const Octets data = pattern(9000, 4);
  Outlet outlet;
  outlet.sender.begin_write(0x0B, 0, Rope(Buffer(&storage, data)));
  ASSERT_TRUE(outlet.sender.fill(outlet.batch).ok());
  EXPECT_TRUE(outlet.sender.idle());
  const std::size_t all = outlet.batch.bytes_left();
  outlet.batch.sent(9000);
  EXPECT_FALSE(gone);
  outlet.batch.sent(all - 9000 - 1);
  EXPECT_TRUE(gone) << "only a byte of the CRC is left";
  EXPECT_EQ(outlet.batch.written(), all - 1);
  outlet.batch.sent(1);
  EXPECT_TRUE(outlet.batch.empty());
  EXPECT_EQ(outlet.batch.appended(), outlet.batch.written());
}

TEST(Batch, takes_short_messages_into_several_blocks) {
  Outlet outlet;
  Octets expected;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const Octets message = pattern(4300, i);
    outlet.sender.add_send(outlet.batch, std::array{Bytes(message)}, message.size(), std::nullopt);
    expected.insert(expected.end(), message.begin(), message.end());
  }
  Inlet inlet({false, 2, 2, 32}, 20, 5000);
  inlet.receiver.on_bytes(joined(outlet.batch.unsent()));
  Octets received;
  for (const Octets& message : inlet.sink.sends)
    received.insert(received.end(), message.begin(), message.end());
  EXPECT_TRUE(received == expected);
  EXPECT_LE(outlet.batch.ranges(), 3u) << "few pieces for the kernel";
}

TEST(Batch, keeps_the_place_of_short_messages_when_they_have_left) {
  Outlet outlet;
  const Octets message = pattern(200, 1);
  const auto send = [&] {
    outlet.sender.add_send(outlet.batch, std::array{Bytes(message)}, message.size(), std::nullopt);
    return outlet.batch.unsent().front().data();
  };
  const std::byte* const place = send();
  outlet.batch.sent(outlet.batch.bytes_left());
  // Whatever it had given back would serve these.
  const std::array others{Block::allocate(1024), Block::allocate(16 * 1024)};
  EXPECT_EQ(send(), place);
}

TEST(Batch, can_be_written_in_portions_of_any_size) {
  const Octets data = pattern(3000, 9);
  for (const std::size_t portion : {1, 3, 20, 999}) {
    Outlet outlet(options_with(true, false, 512));
    outlet.sender.begin_send(Rope::borrow(data));
    Octets wire;
    while (!outlet.sender.idle() || !outlet.batch.empty()) {
      ASSERT_TRUE(outlet.sender.fill(outlet.batch).ok());
      const std::size_t count = std::min(portion, outlet.batch.bytes_left());
      const Octets bytes = joined(outlet.batch.unsent());
      wire.insert(wire.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
      outlet.batch.sent(count);
    }
    EXPECT_EQ(wire, Outlet(options_with(true, false, 512)).send(data)) << portion;
  }
}

}  // namespace
}  // namespace stag::iwarp::test
