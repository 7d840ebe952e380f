#include "bench/self_bench.h"

#include <algorithm>

#include "bench/server_process.h"

namespace stag::bench {
namespace {

using Kind = Figure::Kind;

constexpr Figure kFigures[] = {
    {"null_rtt", Kind::RoundTrip, Operation::Null, 0, 1},
    {"write_4k_rtt", Kind::RoundTrip, Operation::Write, 4096, 1},
    {"null_rate_32", Kind::Rate, Operation::Null, 0, 32},
    {"getattr_rate_32", Kind::Rate, Operation::Getattr, 0, 32},
    {"rand_read_4k_32", Kind::Rate, Operation::Read, 4096, 32},
    {"rand_write_4k_32", Kind::Rate, Operation::Write, 4096, 32},
    {"read_1m", Kind::Bandwidth, Operation::Read, 1 << 20, 4},
    {"write_1m", Kind::Bandwidth, Operation::Write, 1 << 20, 4},
    {"read_64k", Kind::Bandwidth, Operation::Read, 64 << 10, 4},
    {"write_64k", Kind::Bandwidth, Operation::Write, 64 << 10, 4},
};

const Figure* figure_called(const std::string& name) {
  const auto* found = std::find_if(std::begin(kFigures), std::end(kFigures),
                                   [&](const Figure& figure) { return figure.name == name; });
  return found == std::end(kFigures) ? nullptr : found;
}

std::string no_figure(const std::string& name) {
  std::string sentence = "there is no figure '" + name + "'; there are";
  for (const Figure& figure : kFigures)
    sentence += (&figure == kFigures ? " " : ", ") + std::string(figure.name);
  return sentence;
}

double cpu_per_operation(const Sample& sample) {
  return sample.operations == 0 ? 0
                                : sample.cpu_seconds / static_cast<double>(sample.operations) * 1e6;
}

Sample reference_of(const Figure& figure, const Load::WireBytes& wire, double seconds,
                    RawPeer& raw) {
  if (figure.kind != Kind::Bandwidth)
    return raw.exchange(wire.request, wire.reply, figure.depth, seconds);
  return figure.operation == Operation::Read ? raw.stream_in(figure.bytes, seconds)
                                             : raw.stream_out(figure.bytes, seconds);
}

// Ours and the reference in turn, so that a machine whose speed drifts drifts for both.
Row measure(const Figure& figure, const BenchOptions& options, Load& load, RawPeer& raw,
            pid_t server) {
  Row row;
  row.name = figure.name;
  row.unit = figure.unit();
  row.samples = options.samples;
  if (!load.renew()) return row;
  load.run(figure.operation, figure.bytes, figure.depth, options.seconds / 3, server);
  const Load::WireBytes wire = load.wire_bytes(figure.operation, figure.bytes);
  std::vector<double> ours, reference, ours_cpu, reference_cpu;
  for (unsigned i = 0; i < options.samples; ++i) {
    const Sample own =
        load.run(figure.operation, figure.bytes, figure.depth, options.seconds, server);
    const Sample raw_sample = reference_of(figure, wire, options.seconds, raw);
    ours.push_back(figure.value_of(own));
    reference.push_back(figure.value_of(raw_sample));
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

double Figure::value_of(const Sample& sample) const {
  switch (kind) {
    case Kind::RoundTrip:
      return sample.per_operation() * 1e6;
    case Kind::Rate:
      return sample.rate();
    case Kind::Bandwidth:
      return sample.bandwidth() / 1e9;
  }
  return 0;
}

std::string_view Figure::unit() const {
  switch (kind) {
    case Kind::RoundTrip:
      return "us";
    case Kind::Rate:
      return "calls/s";
    case Kind::Bandwidth:
      return "GB/s";
  }
  return "";
}

Result<std::vector<Figure>, std::string> choose_figures(const std::vector<std::string>& only) {
  for (const std::string& name : only)
    if (figure_called(name) == nullptr) return Failure{no_figure(name)};
  std::vector<Figure> chosen;
  for (const Figure& figure : kFigures)
    if (only.empty() || std::find(only.begin(), only.end(), figure.name) != only.end())
      chosen.push_back(figure);
  return chosen;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Result<std::vector<Row>, std::string> bench_self(const std::vector<Figure>& figures,
                                                 const BenchOptions& options,
                                                 const Progress& progress) {
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
  for (const Figure& figure : figures) {
    progress(rows.size(), figures.size(), std::string(figure.name));
    rows.push_back(measure(figure, options, **load, *raw, server->pid()));
  }
  return rows;
}

}  // namespace stag::bench
