// What is worth choosing where RDMA is software.
#pragma once

#include "rpc/rdma/options.h"

namespace stag::endpoint {

// A Send is copied as often as data fetched by RDMA Read, and spares a round trip: room for a WRITE
// of 64 KiB and what surrounds it, unless the user has chosen sizes.
inline rpc::rdma::TransportOptions for_software(rpc::rdma::TransportOptions chosen) {
  const bool undecided = chosen.inline_call_size == 0 &&
                         chosen.inline_size == rpc::rdma::TransportOptions{}.inline_size;
  if (undecided) chosen.inline_call_size = 72 * 1024;
  return chosen;
}

}  // namespace stag::endpoint
