// Registering memory at an RDMA device for one call, next to copying as many bytes: from which size
// on is it worth it?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/measure.h"

namespace stag::bench {

// A row for each size, in microseconds; the reference is the copy. `once` registers and
// deregisters; false ends with a sentence.
Result<std::vector<Row>, std::string> measure_registration(
    const Sampling& sampling, const std::function<bool(MutableBytes)>& once);
// At the device that serves `address`.
Result<std::vector<Row>, std::string> measure_registration(const Sampling& sampling,
                                                           const std::string& address);
// What the rows say in one sentence: from which size on registering costs less.
std::string crossover(const std::vector<Row>& rows);

}  // namespace stag::bench
