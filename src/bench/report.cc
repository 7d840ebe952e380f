#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/self_bench.h"

namespace stag::bench {

std::string machine() {
  std::string model = "unknown CPU";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  utsname system{};
  uname(&system);
  return fmt::format("{}, {} CPUs, Linux {}", model, sysconf(_SC_NPROCESSORS_ONLN), system.release);
}

std::string to_json(const std::vector<Row>& rows) {
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const Row& row : rows)
    results.push_back({{"name", row.name},
                       {"unit", row.unit},
                       {"ours", row.ours},
                       {"reference", row.reference},
                       {"ratio", row.ratio()},
                       {"samples", row.samples},
                       {"ours_cpu_us", row.ours_cpu},
                       {"reference_cpu_us", row.reference_cpu}});
  return nlohmann::ordered_json{{"machine", machine()}, {"results", results}}.dump(2);
}

std::string to_table(const std::vector<Row>& rows) {
  std::string table =
      fmt::format("{}\n\n{:<18}{:>12}{:>12}  {:<8}{:>7}{:>14}{:>14}\n", machine(), "", "stag",
                  "raw TCP", "unit", "ratio", "CPU us/op", "raw CPU us/op");
  for (const Row& row : rows) {
    const int digits = row.unit == "calls/s" ? 0 : 2;
    table += fmt::format("{:<18}{:>12.{}f}{:>12.{}f}  {:<8}{:>7.2f}{:>14.2f}{:>14.2f}\n", row.name,
                         row.ours, digits, row.reference, digits, row.unit, row.ratio(),
                         row.ours_cpu, row.reference_cpu);
  }
  return table;
}

}  // namespace stag::bench
