// Client IDs, which no client can guess: in version 4.0 the number alone says in whose name
// something is opened (RFC 7530 9.1.1), and any client that an export admits could count up to
// another's.
//
// Bits 0 to 5 are the shard. The others are the number of this start of the server and a count,
// enciphered with the server's key: so no two are the same, and one that this start has given out
// is told from any other without a table of those that ended.
//
// Pure, and not synchronised: that is for its shard.
#pragma once

#include <cstdint>

#include "base/siphash.h"
#include "nfs/state/types.h"

namespace stag::nfs::state {

class ClientIds {
 public:
  ClientIds(std::uint32_t shard, std::uint32_t epoch, const SipKey& key)
      : shard_(shard), epoch_(epoch & kEpochMask), key_(key) {}

  // Another one each time.
  ClientId next();
  // Whether next() has returned it.
  bool given(ClientId clientid) const;

 private:
  static constexpr int kShardBits = 6;
  static constexpr int kCountBits = 34;
  static constexpr std::uint32_t kEpochMask = 0xffffff;
  static constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;

  std::uint64_t encipher(std::uint64_t plain) const;
  std::uint64_t decipher(std::uint64_t secret) const;
  std::uint64_t round(std::uint64_t number, std::uint64_t half) const;

  const std::uint32_t shard_;
  const std::uint32_t epoch_;
  const SipKey key_;
  std::uint64_t count_ = 0;
};

}  // namespace stag::nfs::state
