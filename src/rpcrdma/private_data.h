// RPC-over-RDMA Private Data, exchanged when a connection is set up (RFC 8797), and what follows
// from it for the connection's life.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "rpcrdma/wire.h"

namespace stag::rpcrdma {

// One side's properties. Sizes in bytes, 1024 to 262144; others are rounded down to what the eight
// octets can say (RFC 8797 4.2).
struct PrivateData {
  std::uint32_t send_size = kDefaultInlineThreshold;     // the longest Send of this side
  std::uint32_t receive_size = kDefaultInlineThreshold;  // the longest message it can receive
  bool remote_invalidation = false;                      // R: its handles may be invalidated

  friend bool operator==(const PrivateData&, const PrivateData&) = default;
};

std::array<std::byte, 8> encode_private_data(const PrivateData& own);

// Finds the first conforming message in the whole field, at any offset (RFC 8797 5.2). nullopt: the
// peer said nothing, defaults hold.
std::optional<PrivateData> decode_private_data(Bytes field);

// RFC 8166 3.3.2: bytes of the longest message in each direction, seen from this side. In both RPC
// directions the same values hold (RFC 8167 4.2).
struct Thresholds {
  std::uint32_t send = kDefaultInlineThreshold;
  std::uint32_t receive = kDefaultInlineThreshold;
  bool may_invalidate = false;      // we may use Send With Invalidate (RFC 8797 4.1: both set R)
  bool may_be_invalidated = false;  // we set R: the peer may invalidate our handles

  friend bool operator==(const Thresholds&, const Thresholds&) = default;
};

// `theirs` is nullopt when the peer sent none that conforms (RFC 8797 5.1).
Thresholds negotiate(const PrivateData& own, const std::optional<PrivateData>& theirs);

}  // namespace stag::rpcrdma
