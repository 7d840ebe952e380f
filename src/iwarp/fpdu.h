// FPDU framing (RFC 5044 section 4): length, ULPDU, pad, CRC32C; and markers where a peer wants
// them from us.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace stag::iwarp {

inline constexpr std::size_t kLengthSize = 2;
inline constexpr std::size_t kCrcSize = 4;
// RFC 5044 section 3: the bounds of MULPDU, the largest ULPDU that DDP may post. A received one is
// bounded by its length field only.
inline constexpr std::size_t kLeastMulpdu = 128;
inline constexpr std::size_t kLargestMulpdu = 64768;
inline constexpr std::size_t kMarkerInterval = 512;
inline constexpr std::size_t kMarkerSize = 4;

// Pad octets behind a ULPDU, so that length field, ULPDU and pad are a multiple of four.
constexpr std::size_t fpdu_pad(std::size_t ulpdu) {
  return (4 - (kLengthSize + ulpdu) % 4) % 4;
}
// The whole FPDU on the wire, without markers.
constexpr std::size_t fpdu_size(std::size_t ulpdu) {
  return kLengthSize + ulpdu + fpdu_pad(ulpdu) + kCrcSize;
}

// RFC 5044 4.5: the largest ULPDU for a TCP segment of `emss` bytes, within the bounds above.
std::size_t mulpdu(std::size_t emss, bool markers);

// CRC32C over bytes that come in parts (RFC 5044 4.4: as in iSCSI).
class Crc32c {
 public:
  void add(Bytes bytes);
  std::uint32_t value() const { return ~state_; }
  // The four octets on the wire are the value's little-endian form.
  void store(std::byte* to) const;
  bool matches(const std::byte* received) const;

 private:
  std::uint32_t state_ = 0xFFFFFFFF;
};

}  // namespace stag::iwarp
