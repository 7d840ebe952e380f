// XidSeeds: the first XIDs of a server's Calls to its clients (RFC 8167), one for each connection.
// A client that executes some procedures once only knows a repetition by its XID, whichever
// connection it comes by: Calls of another connection, of another loop or of the next start of the
// server must not have the XIDs of those before.
//
// Thread: that of its owner.
#pragma once

#include <concepts>
#include <cstdint>
#include <random>

namespace stag::rpc {

// Of options whose `seed` 0 means the system's random numbers; never 0.
template <std::unsigned_integral Seed>
Seed seed_or_random(Seed seed) {
  while (seed == 0) seed = std::random_device{}();
  return seed;
}

class XidSeeds {
 public:
  // `seed` 0: the system's random numbers.
  explicit XidSeeds(std::uint32_t seed) : random_(seed_or_random(seed)) {}

  std::uint32_t next() { return static_cast<std::uint32_t>(random_()); }

 private:
  std::mt19937 random_;
};

}  // namespace stag::rpc
