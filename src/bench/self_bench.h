// `stag bench`: what is measured, and each figure next to its physical reference, both measured in
// turn in the same run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/load.h"

namespace stag::bench {

struct Figure {
  enum class Kind : std::uint8_t { RoundTrip, Rate, Bandwidth };
  std::string_view name;
  Kind kind;
  Operation operation;
  std::size_t bytes;
  unsigned depth;  // operations in flight

  double value_of(const Sample& sample) const;
  std::string_view unit() const;
};

// Those that `only` names, or all when it names none. A name of no figure: a sentence that tells
// which there are.
Result<std::vector<Figure>, std::string> choose_figures(const std::vector<std::string>& only);

double median(std::vector<double> values);

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
  unsigned samples = 5;   // of each figure
  double seconds = 0.35;  // of each sample
};

// Told before each row: how many are done, how many there are, what comes.
using Progress = std::function<void(std::size_t done, std::size_t all, const std::string& name)>;

// A server of its own in a second process. Forks: call before this process has threads.
Result<std::vector<Row>, std::string> bench_self(const std::vector<Figure>& figures,
                                                 const BenchOptions& options,
                                                 const Progress& progress);

// CPU model, number of CPUs, kernel.
std::string machine();
std::string to_json(const std::vector<Row>& rows);
std::string to_table(const std::vector<Row>& rows);

}  // namespace stag::bench
