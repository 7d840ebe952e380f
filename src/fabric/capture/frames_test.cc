// The frames that stand for RDMA operations.
#include "fabric/capture/frames.h"

#include <gtest/gtest.h>

#include <string>

namespace stag::fabric::capture {
namespace {

using From = Frames::From;

constexpr std::size_t kEthernet = 14, kIp = 20, kUdp = 8;
constexpr std::size_t kTransport = kEthernet + kIp + kUdp;  // where InfiniBand's begins, over IPv4

std::uint64_t number(Bytes bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
  return value;
}

class Kept final : public FrameSink {
 public:
  struct Frame {
    std::vector<std::byte> bytes;
    std::size_t length() const { return bytes.size(); }
    std::uint64_t opcode() const { return number(bytes, kTransport, 1); }
    std::uint64_t pair() const { return number(bytes, kTransport + 4, 4); }
    std::uint64_t packet() const { return number(bytes, kTransport + 8, 4); }
  };
  void take(Bytes frame) override { frames.push_back({{frame.begin(), frame.end()}}); }
  std::vector<std::uint64_t> opcodes() const {
    std::vector<std::uint64_t> all;
    for (const Frame& frame : frames) all.push_back(frame.opcode());
    return all;
  }
  std::vector<Frame> frames;
};

using Codes = std::vector<std::uint64_t>;

class FramesTest : public ::testing::Test {
 protected:
  std::vector<std::byte> message(std::size_t size) { return std::vector<std::byte>(size); }

  Kept kept_;
  Frames frames_{{"192.0.2.1", 20049}, {"192.0.2.2", 40000}, 7, kept_};
};

TEST_F(FramesTest, a_message_of_one_frame_is_whole_in_it) {
  frames_.send(From::Near, bytes_of("message"), std::nullopt);
  ASSERT_EQ(kept_.frames.size(), 1u);
  const Kept::Frame& frame = kept_.frames[0];
  EXPECT_EQ(frame.length(), kTransport + 12 + 8 + 4);
  EXPECT_EQ(frame.opcode(), 4u);
  EXPECT_EQ(number(frame.bytes, kTransport + 1, 1) >> 4 & 3, 1u) << "one byte of padding";
  EXPECT_EQ(number(frame.bytes, kEthernet + 2, 2), frame.length() - kEthernet);
  EXPECT_EQ(number(frame.bytes, kEthernet + 12, 4), 0xc0000201u);
  EXPECT_EQ(number(frame.bytes, kEthernet + 16, 4), 0xc0000202u);
  EXPECT_EQ(number(frame.bytes, kEthernet + kIp + 2, 2), 4791u);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kIp; i += 2) sum += number(frame.bytes, kEthernet + i, 2);
  EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffu) << "checksum of the IP header";
}

TEST_F(FramesTest, a_long_message_has_several_with_numbers_in_order) {
  frames_.send(From::Far, message(10000), std::nullopt);
  frames_.send(From::Far, message(8192), 0x1234);
  frames_.send(From::Far, message(1), 0x1234);
  EXPECT_EQ(kept_.opcodes(), (Codes{0, 1, 2, 0, 22, 23}));
  for (std::size_t i = 0; i < kept_.frames.size(); ++i) {
    EXPECT_EQ(kept_.frames[i].packet(), i);
    EXPECT_EQ(kept_.frames[i].pair(), kept_.frames[0].pair());
  }
  EXPECT_EQ(number(kept_.frames[4].bytes, kTransport + 12, 4), 0x1234u);
  frames_.send(From::Near, message(1), std::nullopt);
  EXPECT_EQ(kept_.frames.back().packet(), 0u);
  EXPECT_NE(kept_.frames.back().pair(), kept_.frames[0].pair());
}

TEST_F(FramesTest, written_data_goes_with_its_place_and_its_size) {
  frames_.write(From::Near, message(12288), {.handle = 0xabc, .length = 16384, .offset = 0x1000});
  EXPECT_EQ(kept_.opcodes(), (Codes{6, 7, 8}));
  const Bytes first = kept_.frames[0].bytes;
  EXPECT_EQ(number(first, kTransport + 12, 8), 0x1000u);
  EXPECT_EQ(number(first, kTransport + 20, 4), 0xabcu);
  EXPECT_EQ(number(first, kTransport + 24, 4), 12288u);
  EXPECT_EQ(kept_.frames[0].length(), kTransport + 28 + 4096 + 4);
  EXPECT_EQ(kept_.frames[1].length(), kTransport + 12 + 4096 + 4);
}

TEST_F(FramesTest, a_read_takes_as_many_numbers_as_its_answer_has_frames) {
  const auto asked = frames_.read(From::Near, {.handle = 1, .length = 9000, .offset = 0}, 9000);
  frames_.send(From::Near, message(1), std::nullopt);
  frames_.answer(From::Near, asked, message(9000));
  EXPECT_EQ(kept_.opcodes(), (Codes{12, 4, 13, 14, 15}));
  EXPECT_EQ(kept_.frames[1].packet(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(kept_.frames[2 + i].packet(), i);
  EXPECT_NE(kept_.frames[2].pair(), kept_.frames[0].pair()) << "it comes from the other end";
}

TEST_F(FramesTest, nothing_is_a_message_too) {
  frames_.send(From::Near, {}, std::nullopt);
  frames_.write(From::Near, {}, {});
  frames_.answer(From::Near, frames_.read(From::Near, {}, 0), {});
  EXPECT_EQ(kept_.opcodes(), (Codes{4, 10, 12, 16}));
}

TEST_F(FramesTest, a_connection_begins_with_private_data) {
  frames_.connect(From::Far, bytes_of("asked"), bytes_of("answered"));
  ASSERT_EQ(kept_.opcodes(), (Codes{100, 100, 100}));
  for (const Kept::Frame& frame : kept_.frames) {
    EXPECT_EQ(frame.pair(), 1u);
    EXPECT_EQ(frame.length(), kTransport + 12 + 8 + 256 + 4);
  }
  const std::size_t body = kTransport + 12 + 8 + 24;
  EXPECT_EQ(number(kept_.frames[0].bytes, body + 8, 8), 0x1060000u + 20049);
  EXPECT_EQ(number(kept_.frames[0].bytes, body + 140 + 36, 5), number(bytes_of("asked"), 0, 5));
  EXPECT_EQ(number(kept_.frames[1].bytes, body + 36, 8), number(bytes_of("answered"), 0, 8));
  frames_.connect(From::Near, message(1000), message(1000));
  EXPECT_EQ(kept_.frames.back().length(), kept_.frames[0].length())
      << "what does not fit is left out";
}

TEST(FramesOverIpv6, have_its_addresses) {
  Kept kept;
  Frames frames({"2001:db8::1", 1}, {"fe80::2%eth0", 2}, 0, kept);
  frames.send(From::Near, bytes_of("message!"), std::nullopt);
  const Kept::Frame& frame = kept.frames.at(0);
  EXPECT_EQ(number(frame.bytes, 12, 2), 0x86ddu);
  EXPECT_EQ(number(frame.bytes, kEthernet + 4, 2), frame.length() - kEthernet - 40);
  EXPECT_EQ(number(frame.bytes, kEthernet + 8, 8), 0x20010db800000000u);
  EXPECT_EQ(number(frame.bytes, kEthernet + 39, 1), 2u);
}

TEST(FramesOfOtherPeers, have_no_addresses) {
  Kept kept;
  Frames frames({"server", 1}, {"", 2}, 0, kept);
  frames.send(From::Near, bytes_of("message"), std::nullopt);
  EXPECT_EQ(kept.frames.size(), 1u);
}

}  // namespace
}  // namespace stag::fabric::capture
