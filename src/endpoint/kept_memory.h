// Memory of a program's that the providers of some Loops keep registered for many calls
// (fabric/kept_ranges.h, decision 0078).
//
// Thread: made and destroyed on a thread that is no loop's; both block it, while the loops pin or
// unpin the memory's pages.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "base/result.h"
#include "endpoint/loops.h"
#include "fabric/kept_ranges.h"

namespace stag::endpoint {

class KeptMemory {
 public:
  // `memory` stays mapped as long as this lives; `writable`: results may be placed there. Fails
  // with the reason of a device of the Loops that cannot register it.
  static Result<std::unique_ptr<KeptMemory>, Reason> keep(std::shared_ptr<Loops> loops,
                                                          MutableBytes memory, bool writable);
  // What a provider still uses of the memory stays registered until it has done with it.
  ~KeptMemory();
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

 private:
  KeptMemory(std::shared_ptr<Loops> loops, fabric::KeptRange range)
      : loops_(std::move(loops)), range_(range) {}

  const std::shared_ptr<Loops> loops_;
  const fabric::KeptRange range_;
  std::size_t kept_ = 0;  // on the first so many loops
};

}  // namespace stag::endpoint
