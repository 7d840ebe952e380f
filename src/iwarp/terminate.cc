#include "iwarp/terminate.h"

#include <algorithm>
#include <array>

#include "iwarp/fpdu.h"

namespace stag::iwarp {
namespace {

constexpr std::size_t kControlSize = 4;
constexpr std::uint8_t kLengthBit = 0x80;       // M
constexpr std::uint8_t kDdpHeaderBit = 0x40;    // D
constexpr std::uint8_t kRdmapHeaderBit = 0x20;  // R

struct Named {
  ErrorCode error;
  const char* text;
};

constexpr std::array kErrors = {
    Named{error::kReadInvalidStag, "RDMAP: invalid STag"},
    Named{error::kReadBounds, "RDMAP: base or bounds violation"},
    Named{error::kReadAccess, "RDMAP: access rights violation"},
    Named{{0, 1, 0x03}, "RDMAP: STag not associated with this stream"},
    Named{error::kReadOffsetWrap, "RDMAP: TO wrap"},
    Named{{0, 1, 0x09}, "RDMAP: STag cannot be invalidated"},
    Named{{0, 1, 0xFF}, "RDMAP: unspecified protection error"},
    Named{error::kRdmapVersion, "RDMAP: invalid version"},
    Named{error::kUnexpectedOpcode, "RDMAP: unexpected opcode"},
    Named{error::kStreamCatastrophic, "RDMAP: catastrophic error, localized to the stream"},
    Named{{0, 2, 0x08}, "RDMAP: catastrophic error, global"},
    Named{error::kCannotInvalidate, "RDMAP: STag cannot be invalidated"},
    Named{error::kUnspecified, "RDMAP: unspecified error"},
    Named{error::kTaggedInvalidStag, "DDP: invalid STag"},
    Named{error::kTaggedBounds, "DDP: base or bounds violation"},
    Named{{1, 1, 0x02}, "DDP: STag not associated with this stream"},
    Named{error::kTaggedOffsetWrap, "DDP: TO wrap"},
    Named{error::kTaggedDdpVersion, "DDP: invalid version of a tagged segment"},
    Named{error::kInvalidQueue, "DDP: invalid QN"},
    Named{error::kNoBuffer, "DDP: invalid MSN - no buffer available"},
    Named{error::kInvalidSequence, "DDP: invalid MSN - range is not valid"},
    Named{error::kInvalidOffset, "DDP: invalid MO"},
    Named{error::kMessageTooLong, "DDP: message too long for the buffer"},
    Named{error::kUntaggedDdpVersion, "DDP: invalid version of an untagged segment"},
    Named{{2, 0, 0x01}, "MPA: TCP connection lost"},
    Named{error::kCrc, "MPA: CRC does not match"},
    Named{error::kFraming, "MPA: marker and ULPDU length disagree"},
    Named{{2, 0, 0x04}, "MPA: invalid Request or Reply frame"},
    Named{error::kMpaLocalCatastrophic, "MPA: local catastrophic error"},
    Named{error::kInsufficientIrd, "MPA: insufficient IRD resources"},
    Named{error::kNoMatchingRtr, "MPA: no matching RTR option"},
};

const Named* find(const ErrorCode& error) {
  const auto found = std::find_if(kErrors.begin(), kErrors.end(),
                                  [&](const Named& known) { return known.error == error; });
  return found == kErrors.end() ? nullptr : &*found;
}

// Etype 0 of RDMAP and DDP is "local catastrophic", with any code.
bool is_defined(const ErrorCode& error) {
  return find(error) != nullptr || (error.layer <= 1 && error.type == 0);
}

template <std::size_t N>
void assign(InlineVector<std::byte, N>& to, Bytes bytes) {
  for (const std::byte byte : bytes) to.push_back(byte);
}

struct ControlField {
  ErrorCode error;
  std::uint8_t flags;
};

// RFC 5040 Figure 8; or, as siw writes it on little-endian hosts, with the two nibbles swapped and
// the three flags counted from the other end.
ControlField decode_control_field(Bytes payload) {
  const auto first = std::to_integer<std::uint8_t>(payload[0]);
  const auto code = std::to_integer<std::uint8_t>(payload[1]);
  const auto flags = std::to_integer<std::uint8_t>(payload[2]);
  const ErrorCode straight{static_cast<std::uint8_t>(first >> 4),
                           static_cast<std::uint8_t>(first & 15), code};
  const ErrorCode swapped{straight.type, straight.layer, code};
  const bool reversed = (flags & 0xE0) != 0
                            ? false
                            : (flags & 0x07) != 0 || (!is_defined(straight) && is_defined(swapped));
  if (!reversed) return {straight, flags};
  return {swapped, static_cast<std::uint8_t>(((flags & 1) != 0 ? kLengthBit : 0) |
                                             ((flags & 2) != 0 ? kDdpHeaderBit : 0) |
                                             ((flags & 4) != 0 ? kRdmapHeaderBit : 0))};
}

}  // namespace

Terminate make_terminate(ErrorCode error, Bytes ulpdu, std::size_t segment_length) {
  Terminate terminate = make_terminate(error);
  // RFC 5040 Figure 10: the LLP and a local catastrophe copy nothing, only a protection error found
  // by RDMAP copies an RDMAP header, and only a Read Request has one.
  if (error.layer == 2 || error.type == 0) return terminate;
  const Control control = decode_control(ulpdu.data());
  const std::size_t header = header_size(control.tagged);
  terminate.segment_length = static_cast<std::uint16_t>(segment_length);
  assign(terminate.ddp_header, ulpdu.first(header));
  const bool read_request = control.opcode == static_cast<std::uint8_t>(Opcode::ReadRequest);
  if (error.layer == 0 && error.type == 1 && read_request &&
      ulpdu.size() >= header + kReadRequestSize) {
    assign(terminate.rdmap_header, ulpdu.subspan(header, kReadRequestSize));
  }
  return terminate;
}

std::size_t encode_terminate(const Terminate& terminate, MutableBytes to) {
  STAG_CHECK(to.size() >= kMaxTerminateSize);
  to[0] = static_cast<std::byte>(terminate.error.layer << 4 | terminate.error.type);
  to[1] = static_cast<std::byte>(terminate.error.code);
  to[2] = static_cast<std::byte>((terminate.segment_length.has_value() ? kLengthBit : 0) |
                                 (terminate.ddp_header.empty() ? 0 : kDdpHeaderBit) |
                                 (terminate.rdmap_header.empty() ? 0 : kRdmapHeaderBit));
  to[3] = std::byte{0};
  std::size_t size = kControlSize;
  if (terminate.segment_length.has_value()) {
    store_be(to.data() + size, *terminate.segment_length);
    size += sizeof(std::uint16_t);
  }
  std::copy(terminate.ddp_header.begin(), terminate.ddp_header.end(), to.begin() + size);
  size += terminate.ddp_header.size();
  std::copy(terminate.rdmap_header.begin(), terminate.rdmap_header.end(), to.begin() + size);
  return size + terminate.rdmap_header.size();
}

Result<Terminate, Reason> decode_terminate(Bytes payload) {
  if (payload.size() < kControlSize) return Failure{Reason::TerminateMalformed};
  const ControlField control = decode_control_field(payload);
  Terminate terminate = make_terminate(control.error);
  Bytes rest = payload.subspan(kControlSize);
  if ((control.flags & kLengthBit) == 0 || rest.size() < 2) return terminate;
  terminate.segment_length = load_be<std::uint16_t>(rest.data());
  rest = rest.subspan(2);
  if ((control.flags & kDdpHeaderBit) == 0 || rest.size() < kTaggedHeaderSize) return terminate;
  const std::size_t header = header_size(decode_control(rest.data()).tagged);
  if (rest.size() < header) return terminate;
  assign(terminate.ddp_header, rest.first(header));
  rest = rest.subspan(header);
  if ((control.flags & kRdmapHeaderBit) == 0 || rest.size() < kReadRequestSize) return terminate;
  assign(terminate.rdmap_header, rest.first(kReadRequestSize));
  return terminate;
}

const char* to_string(const ErrorCode& error) {
  if (const Named* known = find(error)) return known->text;
  if (error.type == 0 && error.layer <= 1) return "local catastrophic error";
  return "unknown error";
}

}  // namespace stag::iwarp
