#include "iwarp/fpdu.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace stag::iwarp {

std::size_t mulpdu(std::size_t emss, bool markers) {
  const std::size_t overhead = kLengthSize + kCrcSize + emss % 4 +
                               (markers ? kMarkerSize * ((emss + 511) / kMarkerInterval) : 0);
  if (emss < overhead + kLeastMulpdu) return kLeastMulpdu;
  return std::min(emss - overhead, kLargestMulpdu);
}

void Crc32c::add(Bytes bytes) {
  // The library only reads, and takes a signed length; what comes in one piece here is far smaller.
  auto* first = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  state_ = crc32_iscsi(first, static_cast<int>(bytes.size()), state_);
}

void Crc32c::store(std::byte* to) const {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<std::byte>(value() >> 8 * i);
}

bool Crc32c::matches(const std::byte* received) const {
  std::byte expected[kCrcSize];
  store(expected);
  return std::equal(expected, expected + kCrcSize, received);
}

}  // namespace stag::iwarp
