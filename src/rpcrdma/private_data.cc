#include "rpcrdma/private_data.h"

#include <algorithm>

namespace stag::rpcrdma {
namespace {

constexpr std::uint32_t kIdentifier = 0xf6ab0e18;  // RFC 8797 section 4
constexpr std::byte kFormatVersion{1};
constexpr std::uint32_t kUnit = 1024;
constexpr std::uint32_t kLargest = 256 * kUnit;

// RFC 8797 4.2: size / 1024 - 1 in one octet. Rounding up would promise what is not there.
std::byte encode_size(std::uint32_t size) {
  return static_cast<std::byte>(std::clamp(size, kUnit, kLargest) / kUnit - 1);
}
std::uint32_t decode_size(std::byte code) {
  return (static_cast<std::uint32_t>(code) + 1) * kUnit;
}

}  // namespace

std::array<std::byte, 8> encode_private_data(const PrivateData& own) {
  std::array<std::byte, 8> octets;
  store_be(octets.data(), kIdentifier);
  octets[4] = kFormatVersion;
  octets[5] = std::byte{own.remote_invalidation};
  octets[6] = encode_size(own.send_size);
  octets[7] = encode_size(own.receive_size);
  return octets;
}

std::optional<PrivateData> decode_private_data(Bytes field) {
  for (std::size_t at = 0; at + 8 <= field.size(); ++at) {
    const std::byte* octets = field.data() + at;
    if (load_be<std::uint32_t>(octets) != kIdentifier || octets[4] != kFormatVersion) continue;
    PrivateData found;
    found.remote_invalidation = (octets[5] & std::byte{1}) != std::byte{0};
    found.send_size = decode_size(octets[6]);
    found.receive_size = decode_size(octets[7]);
    return found;
  }
  return std::nullopt;
}

Thresholds negotiate(const PrivateData& own, const std::optional<PrivateData>& theirs) {
  // What we said is what the octets could hold.
  const std::uint32_t send = decode_size(encode_size(own.send_size));
  const std::uint32_t receive = decode_size(encode_size(own.receive_size));
  const PrivateData peer = theirs.value_or(PrivateData{});
  return {.send = std::min(send, peer.receive_size),
          .receive = std::min(receive, peer.send_size),
          .may_invalidate = own.remote_invalidation && peer.remote_invalidation,
          .may_be_invalidated = own.remote_invalidation};
}

}  // namespace stag::rpcrdma
