// `stag bench`: each figure next to its physical reference, both measured in turn in the same run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/load.h"

namespace stag::bench {

struct Row {
  std::string name;  // null_rtt, null_rate_32, ...
  std::string unit;  // us, calls/s, GB/s
  double ours = 0;   // medians over the samples
  double reference = 0;
  double ours_cpu = 0;  // microseconds of CPU time per operation, both processes together
  double reference_cpu = 0;
  unsigned samples = 0;

  double ratio() const { return reference == 0 ? 0 : ours / reference; }
};

struct BenchOptions {
  LoadOptions load;
  unsigned samples = 5;           // of each figure
  double seconds = 0.35;          // of each sample
  std::vector<std::string> only;  // names of rows; empty: all
};

// Told before each row: how many are done, how many there are, what comes.
using Progress = std::function<void(std::size_t done, std::size_t all, const std::string& name)>;

// A server of its own in a second process. Forks: call before this process has threads.
Result<std::vector<Row>, std::string> bench_self(const BenchOptions& options,
                                                 const Progress& progress);

// CPU model, number of CPUs, kernel.
std::string machine();
std::string to_json(const std::vector<Row>& rows);
std::string to_table(const std::vector<Row>& rows);

}  // namespace stag::bench
