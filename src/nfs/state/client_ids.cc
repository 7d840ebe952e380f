#include "nfs/state/client_ids.h"

#include <span>

#include "nfs/state/clients.h"

namespace stag::nfs::state {
namespace {

// Luby and Rackoff (1988): rounds of a keyed function make a keyed permutation. Four do while few
// of its values are known; a client may ask for millions.
constexpr std::uint64_t kRounds = 6;
constexpr int kHalfBits = 29;
constexpr std::uint64_t kHalfMask = (std::uint64_t{1} << kHalfBits) - 1;

}  // namespace

// The shard goes in, for others count the same.
std::uint64_t ClientIds::round(std::uint64_t number, std::uint64_t half) const {
  const std::uint64_t words[] = {shard_ * kRounds + number, half};
  SipHash hash(key_);
  hash.add(bytes_of("CLIENTID"));
  hash.add(std::as_bytes(std::span(words)));
  return hash.finish() & kHalfMask;
}

std::uint64_t ClientIds::encipher(std::uint64_t plain) const {
  std::uint64_t left = plain >> kHalfBits, right = plain & kHalfMask;
  for (std::uint64_t number = 0; number < kRounds; ++number) {
    left ^= round(number, right);
    std::swap(left, right);
  }
  return left << kHalfBits | right;
}

std::uint64_t ClientIds::decipher(std::uint64_t secret) const {
  std::uint64_t left = secret >> kHalfBits, right = secret & kHalfMask;
  for (std::uint64_t number = kRounds; number-- > 0;) {
    std::swap(left, right);
    left ^= round(number, right);
  }
  return left << kHalfBits | right;
}

ClientId ClientIds::next() {
  static_assert(Clients::kShards == 1 << kShardBits);
  static_assert(2 * kHalfBits + kShardBits == 64);
  ClientId clientid = 0;
  while (clientid == 0) {
    const std::uint64_t plain = std::uint64_t{epoch_} << kCountBits | (++count_ & kCountMask);
    clientid = encipher(plain) << kShardBits | shard_;
  }
  return clientid;
}

bool ClientIds::given(ClientId clientid) const {
  const std::uint64_t plain = decipher(clientid >> kShardBits);
  const std::uint64_t count = plain & kCountMask;
  return plain >> kCountBits == epoch_ && count != 0 && count <= count_;
}

}  // namespace stag::nfs::state
