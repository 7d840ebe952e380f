// The RDMAP Terminate message (RFC 5040 section 4.8) and the error codes of the three layers
// (RFC 5040 Figure 9, RFC 5041 7.2, RFC 5044 section 8, RFC 6581 section 8).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/inline_vector.h"
#include "base/reason.h"
#include "base/result.h"
#include "iwarp/ddp.h"
#include "iwarp/rdmap.h"

namespace stag::iwarp {

struct ErrorCode {
  std::uint8_t layer = 0;  // 4 bits: 0 RDMAP, 1 DDP, 2 LLP (MPA)
  std::uint8_t type = 0;   // 4 bits
  std::uint8_t code = 0;

  friend bool operator==(const ErrorCode&, const ErrorCode&) = default;
};

namespace error {
inline constexpr ErrorCode kLocalCatastrophic{0, 0, 0};
inline constexpr ErrorCode kReadInvalidStag{0, 1, 0x00};
inline constexpr ErrorCode kReadBounds{0, 1, 0x01};
inline constexpr ErrorCode kReadAccess{0, 1, 0x02};
inline constexpr ErrorCode kReadOffsetWrap{0, 1, 0x04};
inline constexpr ErrorCode kRdmapVersion{0, 2, 0x05};
inline constexpr ErrorCode kUnexpectedOpcode{0, 2, 0x06};
inline constexpr ErrorCode kStreamCatastrophic{0, 2, 0x07};
inline constexpr ErrorCode kCannotInvalidate{0, 2, 0x09};
inline constexpr ErrorCode kUnspecified{0, 2, 0xFF};
inline constexpr ErrorCode kTaggedInvalidStag{1, 1, 0x00};
inline constexpr ErrorCode kTaggedBounds{1, 1, 0x01};
inline constexpr ErrorCode kTaggedOffsetWrap{1, 1, 0x03};
inline constexpr ErrorCode kTaggedDdpVersion{1, 1, 0x04};
inline constexpr ErrorCode kInvalidQueue{1, 2, 0x01};
inline constexpr ErrorCode kNoBuffer{1, 2, 0x02};
inline constexpr ErrorCode kInvalidSequence{1, 2, 0x03};
inline constexpr ErrorCode kInvalidOffset{1, 2, 0x04};
inline constexpr ErrorCode kMessageTooLong{1, 2, 0x05};
inline constexpr ErrorCode kUntaggedDdpVersion{1, 2, 0x06};
inline constexpr ErrorCode kCrc{2, 0, 0x02};
inline constexpr ErrorCode kFraming{2, 0, 0x03};
inline constexpr ErrorCode kMpaLocalCatastrophic{2, 0, 0x05};
inline constexpr ErrorCode kInsufficientIrd{2, 0, 0x06};
inline constexpr ErrorCode kNoMatchingRtr{2, 0, 0x07};
}  // namespace error

// The headers of the segment at fault, copied into the Terminate as RFC 5040 Figure 10 says.
struct Terminate {
  ErrorCode error;
  std::optional<std::uint16_t> segment_length;  // M: octets of the DDP segment, its header included
  InlineVector<std::byte, kUntaggedHeaderSize> ddp_header;  // D when not empty
  InlineVector<std::byte, kReadRequestSize> rdmap_header;   // R when not empty

  friend bool operator==(const Terminate&, const Terminate&) = default;
};

inline constexpr std::size_t kMaxTerminateSize = 4 + 2 + kUntaggedHeaderSize + kReadRequestSize;

// `ulpdu` begins with the DDP header of the segment at fault and holds at least that header.
// `segment_length` is the length of the whole ULPDU; a Read Request is copied only if it is there.
Terminate make_terminate(ErrorCode error, Bytes ulpdu, std::size_t segment_length);
// An error that belongs to no segment, or whose layer copies none.
inline Terminate make_terminate(ErrorCode error) {
  return {error, std::nullopt, {}, {}};
}

// `to` holds kMaxTerminateSize bytes; returns the payload's length.
std::size_t encode_terminate(const Terminate& terminate, MutableBytes to);

// Accepts RFC 5040's bit order and that of Linux siw, which reverses nibbles and flags. The content
// is for diagnosis only: whatever it says, the connection is over. Headers that are cut short are
// left out.
Result<Terminate, Reason> decode_terminate(Bytes payload);

// In a reader's words ("DDP: invalid MSN - no buffer available").
const char* to_string(const ErrorCode& error);

// What a peer did wrong: our name for it, and what it is told before the connection closes.
struct Violation {
  Reason reason = Reason::None;
  Terminate terminate;
};

}  // namespace stag::iwarp
