// Options of RPC over UDP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/loop.h"
#include "base/network.h"

namespace stag::rpc::udp {

// Bytes of the longest UDP datagram: an IPv4 packet of 65 535 bytes less 20 and 8 bytes of headers
// (RFC 791, RFC 768).
inline constexpr std::size_t kLongestDatagram = 65'507;
inline constexpr Duration kFailurePause = std::chrono::milliseconds(100);

struct ChannelOptions {
  Duration resolve_timeout = std::chrono::seconds(10);  // of the name service
  // The pause before a Call is sent again, which doubles.
  Duration retransmit_min = std::chrono::milliseconds(500);
  Duration retransmit_max = std::chrono::seconds(8);
  // Seed of XIDs; 0: the system's random numbers.
  std::uint32_t seed = 0;
};

struct ServerOptions {
  // Calls in progress; a further one is dropped. One client address has a part of them.
  std::size_t max_calls = 64;
  // The networks that Calls may come from; empty: any. Other Calls are dropped.
  std::vector<IpNetwork> allow{};
  std::size_t max_reply = kLongestDatagram;  // bytes; a longer Reply is dropped
  Duration pause = kFailurePause;            // before the next try when the socket itself fails
};

}  // namespace stag::rpc::udp
