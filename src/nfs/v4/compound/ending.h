// The record of a client is being removed, because the client lapsed or an administrator wants it.
#pragma once

#include <utility>

#include "nfs/state/types.h"

namespace stag::nfs::nfs4 {

// `life->ending` was set, and is so as long as this exists: work that is refused, dropped or fails
// takes it along.
struct Ending {
  explicit Ending(state::LifePtr of) : life(std::move(of)) {}
  Ending(Ending&&) noexcept = default;
  ~Ending() {
    if (life != nullptr) life->ending = false;
  }
  state::LifePtr life;
};

}  // namespace stag::nfs::nfs4
