// DDP segment headers as values (RFC 5041 section 4), with the RDMAP control octet and the
// Invalidate STag that RDMAP puts in DDP's ULP fields (RFC 5040 section 4.1). Sizes and offsets are
// octets of the ULPDU, which begins with the DDP control octet.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace stag::iwarp {

inline constexpr std::size_t kTaggedHeaderSize = 14;
inline constexpr std::size_t kUntaggedHeaderSize = 18;

// DDP control octet, then RDMAP control octet. Reserved bits are dropped on receive.
struct Control {
  bool tagged = false;
  bool last = false;
  std::uint8_t ddp_version = 1;
  std::uint8_t rdmap_version = 1;
  std::uint8_t opcode = 0;  // 4 bits, see Opcode in rdmap.h

  friend bool operator==(const Control&, const Control&) = default;
};

struct TaggedHeader {
  Control control;
  std::uint32_t stag = 0;
  std::uint64_t offset = 0;  // TO

  friend bool operator==(const TaggedHeader&, const TaggedHeader&) = default;
};

struct UntaggedHeader {
  Control control;
  std::uint32_t invalidate = 0;  // meaningful in the Send with Invalidate forms only
  std::uint32_t queue = 0;       // QN
  std::uint32_t sequence = 0;    // MSN
  std::uint32_t offset = 0;      // MO

  friend bool operator==(const UntaggedHeader&, const UntaggedHeader&) = default;
};

// The caller has checked the length: 2 octets for the control, k...HeaderSize for a header.
Control decode_control(const std::byte* ulpdu);
TaggedHeader decode_tagged(const std::byte* ulpdu);
UntaggedHeader decode_untagged(const std::byte* ulpdu);

void encode_tagged(const TaggedHeader& header, std::byte* to);
void encode_untagged(const UntaggedHeader& header, std::byte* to);

inline constexpr std::size_t header_size(bool tagged) {
  return tagged ? kTaggedHeaderSize : kUntaggedHeaderSize;
}

}  // namespace stag::iwarp
