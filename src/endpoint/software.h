// What is worth choosing where RDMA is software.
#pragma once

#include "rpc/rdma/options.h"

namespace stag::endpoint {

// Bytes of a WRITE of 64 KiB and what surrounds it.
inline constexpr std::uint32_t kSoftwareCallSize = 72 * 1024;

// A Send is copied as often as data fetched by RDMA Read, and spares a round trip. What the user
// has chosen holds.
inline rpc::rdma::TransportOptions for_software(rpc::rdma::TransportOptions chosen) {
  const bool undecided = chosen.inline_call_size == 0 && !chosen.inline_size;
  if (undecided) chosen.inline_call_size = kSoftwareCallSize;
  return chosen;
}

}  // namespace stag::endpoint
