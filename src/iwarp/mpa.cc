#include "iwarp/mpa.h"

#include <algorithm>
#include <string_view>

namespace stag::iwarp {
namespace {

constexpr std::size_t kKeySize = 16;
constexpr std::string_view kRequestKey = "MPA ID Req Frame";
constexpr std::string_view kReplyKey = "MPA ID Rep Frame";

constexpr std::uint8_t kMarkersBit = 0x80;
constexpr std::uint8_t kCrcBit = 0x40;
constexpr std::uint8_t kRejectedBit = 0x20;
constexpr std::uint8_t kEnhancedBit = 0x10;

constexpr std::uint16_t kHighFlag = 0x8000;  // A in the IRD word, C in the ORD word
constexpr std::uint16_t kLowFlag = 0x4000;   // B in the IRD word, D in the ORD word
constexpr std::uint16_t kDepthMask = 0x3FFF;

std::string_view key_of(MpaFrameKind kind) {
  return kind == MpaFrameKind::Request ? kRequestKey : kReplyKey;
}

std::uint8_t flags_of(Bytes frame) {
  return std::to_integer<std::uint8_t>(frame[16]);
}
std::uint8_t revision_of(Bytes frame) {
  return std::to_integer<std::uint8_t>(frame[17]);
}

// RFC 6581 section 6: the S bit means something from revision 2 on; before, it is a reserved bit
// that must not be looked at.
bool is_enhanced(Bytes frame) {
  return revision_of(frame) >= 2 && (flags_of(frame) & kEnhancedBit) != 0;
}

Depths decode_depths(const std::byte* from) {
  const auto inbound = load_be<std::uint16_t>(from);
  const auto outbound = load_be<std::uint16_t>(from + 2);
  Depths depths;
  depths.ird = inbound & kDepthMask;
  depths.ord = outbound & kDepthMask;
  depths.peer_to_peer = (inbound & kHighFlag) != 0;
  // RFC 6581 9.2: without A, the flags B, C and D are ignored.
  depths.send_rtr = depths.peer_to_peer && (inbound & kLowFlag) != 0;
  depths.write_rtr = depths.peer_to_peer && (outbound & kHighFlag) != 0;
  depths.read_rtr = depths.peer_to_peer && (outbound & kLowFlag) != 0;
  return depths;
}

void encode_depths(const Depths& depths, std::byte* to) {
  const auto word = [](std::uint16_t depth, bool high, bool low) {
    return static_cast<std::uint16_t>((depth & kDepthMask) | (high ? kHighFlag : 0) |
                                      (low ? kLowFlag : 0));
  };
  store_be(to, word(depths.ird, depths.peer_to_peer, depths.send_rtr));
  store_be(to + 2, word(depths.ord, depths.write_rtr, depths.read_rtr));
}

}  // namespace

Result<std::size_t, Reason> bytes_missing(MpaFrameKind expected, Bytes so_far) {
  // A stranger is recognised by its first wrong byte, not after twenty.
  const std::size_t seen = std::min(so_far.size(), kKeySize);
  if (text_of(so_far.first(seen)) != key_of(expected).substr(0, seen)) {
    return Failure{Reason::MpaKeyWrong};
  }
  if (so_far.size() < kMpaHeaderSize) return kMpaHeaderSize - so_far.size();
  if (revision_of(so_far) < 1 || revision_of(so_far) > 2) {
    return Failure{Reason::MpaRevisionUnknown};
  }
  const std::size_t private_data = load_be<std::uint16_t>(so_far.data() + 18);
  if (private_data > kMaxPrivateData) return Failure{Reason::MpaFrameMalformed};
  if (is_enhanced(so_far) && private_data < kDepthsSize) {
    return Failure{Reason::MpaFrameMalformed};
  }
  const std::size_t whole = kMpaHeaderSize + private_data;
  return so_far.size() >= whole ? 0 : whole - so_far.size();
}

Result<MpaFrame, Reason> decode_mpa_frame(MpaFrameKind expected, Bytes frame) {
  const Result<std::size_t, Reason> missing = bytes_missing(expected, frame);
  if (!missing.ok()) return Failure{missing.error()};
  if (*missing != 0) return Failure{Reason::MpaFrameMalformed};
  MpaFrame result;
  result.kind = expected;
  result.markers = (flags_of(frame) & kMarkersBit) != 0;
  result.crc = (flags_of(frame) & kCrcBit) != 0;
  // RFC 5044 7.1.1: R is not looked at in a Request.
  result.rejected = expected == MpaFrameKind::Reply && (flags_of(frame) & kRejectedBit) != 0;
  result.revision = revision_of(frame);
  result.private_data = frame.subspan(kMpaHeaderSize, load_be<std::uint16_t>(frame.data() + 18));
  if (is_enhanced(frame)) {
    result.depths = decode_depths(result.private_data.data());
    result.private_data = result.private_data.subspan(kDepthsSize);
  }
  return result;
}

std::size_t encode_mpa_frame(const MpaFrame& frame, MutableBytes to) {
  const std::size_t depths = frame.depths.has_value() ? kDepthsSize : 0;
  const std::size_t private_data = depths + frame.private_data.size();
  STAG_CHECK(private_data <= kMaxPrivateData && to.size() >= kMpaHeaderSize + private_data);
  STAG_CHECK(depths == 0 || frame.revision >= 2);
  std::memcpy(to.data(), key_of(frame.kind).data(), kKeySize);
  to[16] = static_cast<std::byte>((frame.markers ? kMarkersBit : 0) | (frame.crc ? kCrcBit : 0) |
                                  (frame.rejected ? kRejectedBit : 0) |
                                  (depths != 0 ? kEnhancedBit : 0));
  to[17] = static_cast<std::byte>(frame.revision);
  // RFC 6581 section 6: PD_Length counts the IRD and ORD words too.
  store_be(to.data() + 18, static_cast<std::uint16_t>(private_data));
  if (depths != 0) encode_depths(*frame.depths, to.data() + kMpaHeaderSize);
  std::copy(frame.private_data.begin(), frame.private_data.end(),
            to.begin() + kMpaHeaderSize + depths);
  return kMpaHeaderSize + private_data;
}

}  // namespace stag::iwarp
