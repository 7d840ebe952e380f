#include "bench/self_bench.h"

#include <algorithm>

#include "bench/server_process.h"

namespace stag::bench {
namespace {

enum class Figure { RoundTrip, Rate, Bandwidth };

struct Plan {
  const char* name;
  Figure figure;
  Operation operation;
  std::size_t bytes;
  unsigned depth;
};

constexpr Plan kPlans[] = {
    {"null_rtt", Figure::RoundTrip, Operation::Null, 0, 1},
    {"write_4k_rtt", Figure::RoundTrip, Operation::Write, 4096, 1},
    {"null_rate_32", Figure::Rate, Operation::Null, 0, 32},
    {"getattr_rate_32", Figure::Rate, Operation::Getattr, 0, 32},
    {"rand_read_4k_32", Figure::Rate, Operation::Read, 4096, 32},
    {"rand_write_4k_32", Figure::Rate, Operation::Write, 4096, 32},
    {"read_1m", Figure::Bandwidth, Operation::Read, 1 << 20, 4},
    {"write_1m", Figure::Bandwidth, Operation::Write, 1 << 20, 4},
    {"read_64k", Figure::Bandwidth, Operation::Read, 64 << 10, 4},
    {"write_64k", Figure::Bandwidth, Operation::Write, 64 << 10, 4},
};

double value_of(Figure figure, const Sample& sample) {
  switch (figure) {
    case Figure::RoundTrip:
      return sample.per_operation() * 1e6;
    case Figure::Rate:
      return sample.rate();
    case Figure::Bandwidth:
      return sample.bandwidth() / 1e9;
  }
  return 0;
}

const char* unit_of(Figure figure) {
  switch (figure) {
    case Figure::RoundTrip:
      return "us";
    case Figure::Rate:
      return "calls/s";
    case Figure::Bandwidth:
      return "GB/s";
  }
  return "";
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double cpu_per_operation(const Sample& sample) {
  return sample.operations == 0 ? 0
                                : sample.cpu_seconds / static_cast<double>(sample.operations) * 1e6;
}

Sample reference_of(const Plan& plan, const Load::WireBytes& wire, double seconds, RawPeer& raw) {
  if (plan.figure != Figure::Bandwidth)
    return raw.exchange(wire.request, wire.reply, plan.depth, seconds);
  return plan.operation == Operation::Read ? raw.stream_in(plan.bytes, seconds)
                                           : raw.stream_out(plan.bytes, seconds);
}

// Ours and the reference in turn, so that a machine whose speed drifts drifts for both.
Row measure(const Plan& plan, const BenchOptions& options, Load& load, RawPeer& raw, pid_t server) {
  Row row;
  row.name = plan.name;
  row.unit = unit_of(plan.figure);
  row.samples = options.samples;
  load.run(plan.operation, plan.bytes, plan.depth, options.seconds / 3, server);
  const Load::WireBytes wire = load.wire_bytes(plan.operation, plan.bytes);
  std::vector<double> ours, reference, ours_cpu, reference_cpu;
  for (unsigned i = 0; i < options.samples; ++i) {
    const Sample own = load.run(plan.operation, plan.bytes, plan.depth, options.seconds, server);
    const Sample raw_sample = reference_of(plan, wire, options.seconds, raw);
    ours.push_back(value_of(plan.figure, own));
    reference.push_back(value_of(plan.figure, raw_sample));
    ours_cpu.push_back(cpu_per_operation(own));
    reference_cpu.push_back(cpu_per_operation(raw_sample));
  }
  row.ours = median(ours);
  row.reference = median(reference);
  row.ours_cpu = median(ours_cpu);
  row.reference_cpu = median(reference_cpu);
  return row;
}

}  // namespace

Result<std::vector<Row>, std::string> bench_self(const BenchOptions& options,
                                                 const Progress& progress) {
  std::vector<Plan> plans;
  for (const Plan& plan : kPlans)
    if (options.only.empty() ||
        std::find(options.only.begin(), options.only.end(), plan.name) != options.only.end())
      plans.push_back(plan);
  if (plans.empty()) return Failure{std::string("no such row; --list names them")};
  Result<RawPeer, std::string> raw = RawPeer::start(options.load.busy_poll_us);
  if (!raw) return Failure{raw.error()};
  Result<ServerProcess, std::string> server =
      ServerProcess::start({.crc = options.load.crc, .busy_poll_us = options.load.busy_poll_us});
  if (!server) return Failure{server.error()};
  const std::string url = "nfs://127.0.0.1:" + std::to_string(server->rdma_port()) +
                          "/?mountport=" + std::to_string(server->tcp_port());
  auto load = Load::open(url, options.load);
  if (!load) return Failure{load.error()};
  std::vector<Row> rows;
  for (const Plan& plan : plans) {
    progress(rows.size(), plans.size(), plan.name);
    rows.push_back(measure(plan, options, **load, *raw, server->pid()));
  }
  return rows;
}

}  // namespace stag::bench
