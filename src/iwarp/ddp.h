// DDP segment headers as values (RFC 5041 section 4), with the RDMAP control octet and the
// Invalidate STag that RDMAP puts into DDP's ULP fields (RFC 5040 section 4.1), and functions that
// encode and decode them. Sizes and offsets are octets of the ULPDU, which begins with the DDP
// control octet.
//
// Pure functions on the caller's memory, for any thread. They check nothing: the caller has checked
// the length of a ULPDU, and checks versions and opcode of what it decodes (iwarp/receiver.h).
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace stag::iwarp {

inline constexpr std::size_t kTaggedHeaderSize = 14;
inline constexpr std::size_t kUntaggedHeaderSize = 18;

// The DDP control octet and the RDMAP control octet behind it. Decoding drops reserved bits.
struct Control {
  bool tagged = false;
  bool last = false;
  std::uint8_t ddp_version = 1;
  std::uint8_t rdmap_version = 1;
  std::uint8_t opcode = 0;  // 4 bits, see Opcode in rdmap.h

  friend bool operator==(const Control&, const Control&) = default;
};

// The header of a tagged segment: payload for memory that the receiver has registered.
struct TaggedHeader {
  Control control;
  std::uint32_t stag = 0;
  std::uint64_t offset = 0;  // TO, Tagged Offset: where the payload goes

  friend bool operator==(const TaggedHeader&, const TaggedHeader&) = default;
};

// The header of an untagged segment: part of a message for one of the receiver's queues.
struct UntaggedHeader {
  Control control;
  std::uint32_t invalidate = 0;  // the Invalidate STag; used by Send with Invalidate only
  std::uint32_t queue = 0;       // QN, Queue Number
  std::uint32_t sequence = 0;    // MSN, Message Sequence Number
  std::uint32_t offset = 0;      // MO, Message Offset: octets of the message before this segment

  friend bool operator==(const UntaggedHeader&, const UntaggedHeader&) = default;
};

namespace detail {
inline constexpr std::uint16_t kTaggedBit = 0x8000;
inline constexpr std::uint16_t kLastBit = 0x4000;

constexpr std::uint16_t control_word(const Control& control) {
  return static_cast<std::uint16_t>((control.tagged ? kTaggedBit : 0) |
                                    (control.last ? kLastBit : 0) | (control.ddp_version & 3) << 8 |
                                    (control.rdmap_version & 3) << 6 | (control.opcode & 15));
}
}  // namespace detail

// Decode from the first octets of a ULPDU: 2 octets for the control octets, kTaggedHeaderSize or
// kUntaggedHeaderSize for a header.
inline Control decode_control(const std::byte* ulpdu) {
  const auto word = load_be<std::uint16_t>(ulpdu);
  Control control;
  control.tagged = (word & detail::kTaggedBit) != 0;
  control.last = (word & detail::kLastBit) != 0;
  control.ddp_version = (word >> 8) & 3;
  control.rdmap_version = (word >> 6) & 3;
  control.opcode = word & 15;
  return control;
}
inline TaggedHeader decode_tagged(const std::byte* ulpdu) {
  return {decode_control(ulpdu), load_be<std::uint32_t>(ulpdu + 2),
          load_be<std::uint64_t>(ulpdu + 6)};
}
inline UntaggedHeader decode_untagged(const std::byte* ulpdu) {
  return {decode_control(ulpdu), load_be<std::uint32_t>(ulpdu + 2),
          load_be<std::uint32_t>(ulpdu + 6), load_be<std::uint32_t>(ulpdu + 10),
          load_be<std::uint32_t>(ulpdu + 14)};
}

// Encode to `to`, which holds kTaggedHeaderSize or kUntaggedHeaderSize octets.
inline void encode_tagged(const TaggedHeader& header, std::byte* to) {
  store_be(to, detail::control_word(header.control));
  store_be(to + 2, header.stag);
  store_be(to + 6, header.offset);
}
inline void encode_untagged(const UntaggedHeader& header, std::byte* to) {
  store_be(to, detail::control_word(header.control));
  store_be(to + 2, header.invalidate);
  store_be(to + 6, header.queue);
  store_be(to + 10, header.sequence);
  store_be(to + 14, header.offset);
}

// Octets of a header of that kind.
inline constexpr std::size_t header_size(bool tagged) {
  return tagged ? kTaggedHeaderSize : kUntaggedHeaderSize;
}

}  // namespace stag::iwarp
