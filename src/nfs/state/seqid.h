// How stateids and the owners of NFSv4.0 count: one comes after the largest number (RFC 8881 8.2.2,
// RFC 7530 9.1.3).
#pragma once

#include <cstdint>

namespace stag::nfs::state {

inline std::uint32_t next_seqid(std::uint32_t seqid) {
  return seqid == 0xffffffff ? 1 : seqid + 1;
}
inline std::uint32_t previous_seqid(std::uint32_t seqid) {
  return seqid == 1 ? 0xffffffff : seqid - 1;
}

}  // namespace stag::nfs::state
