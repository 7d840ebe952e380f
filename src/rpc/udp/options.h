// What an owner may choose about RPC over UDP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/loop.h"
#include "base/network.h"

namespace stag::rpc::udp {

// RFC 768 and RFC 791: 65,535 bytes of IPv4 packet less 20 and 8 of headers.
inline constexpr std::size_t kLongestDatagram = 65'507;
inline constexpr Duration kFailurePause = std::chrono::milliseconds(100);

struct ChannelOptions {
  Duration resolve_timeout = std::chrono::seconds(10);  // of the name service
  Duration retransmit_min = std::chrono::milliseconds(500);
  Duration retransmit_max = std::chrono::seconds(8);
  // Of XIDs; 0 takes one from the system.
  std::uint32_t seed = 0;
};

struct ServerOptions {
  // In progress; one more is dropped. An address has a part of them (shares.h).
  std::size_t max_calls = 64;
  // Whose Calls are served; empty: everybody's.
  std::vector<IpNetwork> allow{};
  std::size_t max_reply = kLongestDatagram;  // bytes; a longer Reply is dropped
  Duration pause = kFailurePause;            // when the socket itself fails
};

}  // namespace stag::rpc::udp
