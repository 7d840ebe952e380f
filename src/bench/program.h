// The `stag` program itself, as its users start it: how long until something has come of it.
#pragma once

#include "bench/measure.h"

namespace stag::bench {

// Milliseconds from the start of `stag serve` with a folder until a NULL call over RPC-over-RDMA is
// answered / of `stag cat` of a file of 1 KiB that it serves. This process must be `stag`. Fail
// with a sentence.
Result<Measured, std::string> measure_start(unsigned samples);
Result<Measured, std::string> measure_cat(unsigned samples);

}  // namespace stag::bench
