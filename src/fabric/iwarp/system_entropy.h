// Unpredictable numbers from the system, a block at a time.
#pragma once

#include <array>
#include <cstdint>

#include "iwarp/memory.h"

namespace stag::fabric {

class SystemEntropy final : public iwarp::Entropy {
 public:
  std::uint64_t next() override;

 private:
  std::array<std::uint64_t, 32> numbers_{};
  std::size_t used_ = 32;
};

}  // namespace stag::fabric
