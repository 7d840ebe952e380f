// Limits of the records (RFC 5531 section 11) that are accepted from a peer.
#pragma once

#include <cstdint>

namespace stag::oncrpc {

struct RecordLimits {
  std::uint32_t record = 4 << 20;  // bytes of one record
  std::uint32_t fragments = 4096;  // of one record
};

}  // namespace stag::oncrpc
