// Chance from a seed, the same on every machine and with every standard library.
#pragma once

#include <cstdint>

namespace stag::fabric {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  // SplitMix64: passes BigCrush, needs one word of state.
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // 0 <= result < bound; the bias of the remainder does not matter here. 0 for a bound of 0.
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
  // True in `permille` of 1000 cases; takes nothing from the sequence when it is 0.
  bool chance(std::uint32_t permille) { return permille != 0 && below(1000) < permille; }

 private:
  std::uint64_t state_;
};

}  // namespace stag::fabric
