#include "bench/report/row.h"

#include <algorithm>

namespace stag::bench {
namespace {

const Row* row_called(const std::string& name, const std::vector<Row>& rows) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

double quotient(double value, double of) {
  return of == 0 ? 0 : value / of;
}

std::optional<double> found(const Row& row, const std::vector<Row>& rows) {
  switch (row.goal.of) {
    case Goal::Of::Value:
      return row.ours.value;
    case Goal::Of::Reference:
      if (row.reference) return row.ratio();
      break;
    case Goal::Of::Row:
      if (row.to_goal_row) return row.to_goal_row;
      if (const Row* other = row_called(row.goal.row, rows))
        return quotient(row.ours.value, other->ours.value);
      break;
    case Goal::Of::Nothing:
      break;
  }
  return std::nullopt;
}

struct CpuRow {
  const char* of;
  const char* name;
  const char* unit;
  double at_most;
};
constexpr CpuRow kCpuRows[] = {
    {"null_rtt", "cpu_per_null", "us", 1.5},
    {"read_1m", "cpu_per_mib_read", "us/MiB", 1.05},
    {"write_1m", "cpu_per_mib_written", "us/MiB", 1.05},
};

Measured cpu_of(const Measured& measured) {
  Measured cpu;
  cpu.value = measured.cpu;
  cpu.least = measured.cpu_least;
  cpu.most = measured.cpu_most;
  return cpu;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Measured Measured::of(const std::vector<double>& values) {
  Measured measured;
  if (values.empty()) return measured;
  measured.value = median(values);
  measured.least = *std::min_element(values.begin(), values.end());
  measured.most = *std::max_element(values.begin(), values.end());
  return measured;
}

void Measured::add_cpu(const std::vector<double>& values) {
  const Measured measured = of(values);
  cpu = measured.value;
  cpu_least = measured.least;
  cpu_most = measured.most;
}

double Row::ratio() const {
  return reference ? quotient(ours.value, reference->value) : 0;
}

std::optional<Judgement> judge(const Row& row, const std::vector<Row>& rows) {
  const std::optional<double> value = found(row, rows);
  if (!value) return std::nullopt;
  const bool met = row.goal.at_most ? *value <= row.goal.bound : *value >= row.goal.bound;
  return Judgement{*value, met};
}

void add_cpu_rows(std::vector<Row>& rows) {
  for (const CpuRow& cpu : kCpuRows) {
    const Row* of = row_called(cpu.of, rows);
    if (of == nullptr || !of->reference) continue;
    Row row{cpu.name, cpu.unit, cpu_of(of->ours), cpu_of(*of->reference), of->samples};
    row.goal = {Goal::Of::Reference, true, cpu.at_most};
    rows.push_back(std::move(row));
  }
}

}  // namespace stag::bench
