#include "fabric/iwarp/system_entropy.h"

#include <sys/random.h>

#include "base/check.h"

namespace stag::fabric {

std::uint64_t SystemEntropy::next() {
  if (used_ == numbers_.size()) {
    // Requests of up to 256 bytes are never cut short (getrandom(2)).
    const ssize_t got = getrandom(numbers_.data(), sizeof numbers_, 0);
    STAG_CHECK(got == static_cast<ssize_t>(sizeof numbers_));
    used_ = 0;
  }
  return numbers_[used_++];
}

}  // namespace stag::fabric
