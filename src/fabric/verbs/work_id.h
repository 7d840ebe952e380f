// What a completion says it belongs to: a receive into a block, or the n-th request that a
// connection has posted.
#pragma once

#include <cstdint>

#include "fabric/verbs/block_pool.h"

namespace stag::fabric {

// Addresses of user space never have the highest bit.
inline constexpr std::uint64_t kReceiveBit = std::uint64_t{1} << 63;
// The block is one of a shared queue, which outlives the connection.
inline constexpr std::uint64_t kSharedBit = std::uint64_t{1} << 62;

inline std::uint64_t receive_id(RegisteredBlock* block) {
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(block));
  return address | kReceiveBit | (block->shared != nullptr ? kSharedBit : 0);
}
inline bool is_receive(std::uint64_t id) {
  return (id & kReceiveBit) != 0;
}
inline bool is_shared_receive(std::uint64_t id) {
  return is_receive(id) && (id & kSharedBit) != 0;
}
inline RegisteredBlock* block_of(std::uint64_t id) {
  return reinterpret_cast<RegisteredBlock*>(
      static_cast<std::uintptr_t>(id & ~(kReceiveBit | kSharedBit)));
}

}  // namespace stag::fabric
