// Row: the results of one figure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/report/figures.h"

namespace stag::bench {

double median(std::vector<double> values);

// The samples of one side of a row.
struct Measured {
  double value = 0;  // median
  double least = 0, most = 0;
  // Microseconds of CPU time per operation: the median, the least and the most.
  double cpu = 0, cpu_least = 0, cpu_most = 0;
  Histogram latency{};
  // Per operation; nothing where the kernel does not count them.
  std::optional<double> system_calls{}, switches{}, allocations{};

  static Measured of(const std::vector<double>& values);
  void add_cpu(const std::vector<double>& values);
};

struct Row {
  std::string name;  // null_rtt, null_rate_32, ...
  std::string unit;  // us, calls/s, GB/s, ...
  Measured ours{};
  std::optional<Measured> reference{};
  unsigned samples = 1;
  Goal goal{};
  // Where the goal is relative to another row: ours to that row's, both measured in turn; median.
  std::optional<double> to_goal_row{};

  // To the reference; 0 without one.
  double ratio() const;
};

// What `row` has of what its goal is about, and whether that is enough; nothing when there is no
// goal, or `rows` lacks the row that it is relative to.
struct Judgement {
  double found = 0;
  bool met = false;
};
std::optional<Judgement> judge(const Row& row, const std::vector<Row>& rows);

// The CPU time of rows as rows of their own, where there is a goal for it.
void add_cpu_rows(std::vector<Row>& rows);

// CPU model, number of CPUs, kernel.
std::string machine();
// The processes whose CPU time, system calls and allocations are counted: the server may be another
// machine's.
enum class Counted : std::uint8_t { BothProcesses, Client };
std::string to_json(const std::vector<Row>& rows, const std::vector<Row>& references,
                    Counted counted);
// `reference`: what the references of `rows` are.
std::string to_table(const std::vector<Row>& rows, const std::vector<Row>& references,
                     std::string_view reference, Counted counted);

}  // namespace stag::bench
