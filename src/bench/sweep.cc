#include "bench/sweep.h"

namespace stag::bench {
namespace {

constexpr std::size_t kLeastBlock = 4 << 10, kMostBlock = 4 << 20;
constexpr unsigned kMostDepth = 128, kMostConnections = 64;
constexpr unsigned kBulkDepth = 4;

using Plots = Result<NamedPlot, std::string>;
using Running = std::function<void(LoadGenerator*)>;

double microseconds_at(const Sample& sample, double share) {
  return static_cast<double>(sample.latency.percentile(share)) / 1e3;
}

void add(Line& line, double x, double y) {
  if (y > 0) line.points.push_back({x, y});
}

NamedPlot throughput_by_block(LoadGenerator& load, RawPeer& raw, double seconds, pid_t server) {
  Line read{"READ", {}}, write{"WRITE", {}}, in{"raw TCP, in", {}}, out{"raw TCP, out", {}};
  for (std::size_t block = kLeastBlock; block <= kMostBlock; block *= 2) {
    const auto x = static_cast<double>(block);
    add(read, x, load.run(Operation::Read, block, kBulkDepth, seconds, server).bandwidth() / 1e9);
    add(write, x, load.run(Operation::Write, block, kBulkDepth, seconds, server).bandwidth() / 1e9);
    add(in, x, raw.stream_in(block, seconds).bandwidth() / 1e9);
    add(out, x, raw.stream_out(block, seconds).bandwidth() / 1e9);
  }
  Plot plot{"Throughput by block size, 4 in flight",
            "block, bytes",
            "GB/s",
            false,
            {read, write, in, out}};
  return {"throughput-by-block.svg", std::move(plot)};
}

NamedPlot latency_by_depth(LoadGenerator& load, RawPeer& raw, double seconds, pid_t server) {
  Line half{"NULL, p50", {}}, most{"NULL, p99", {}}, raw_half{"raw TCP, p50", {}},
      raw_most{"raw TCP, p99", {}};
  for (unsigned depth = 1; depth <= kMostDepth; depth *= 2) {
    const Sample ours = load.run(Operation::Null, 0, depth, seconds, server);
    const LoadGenerator::WireBytes wire = load.wire_bytes(Operation::Null, 0);
    const Sample theirs = raw.exchange(wire.request, wire.reply, depth, seconds);
    add(half, depth, microseconds_at(ours, 0.5));
    add(most, depth, microseconds_at(ours, 0.99));
    add(raw_half, depth, microseconds_at(theirs, 0.5));
    add(raw_most, depth, microseconds_at(theirs, 0.99));
  }
  Plot plot{"Latency of a NULL call by calls in flight",
            "calls in flight",
            "microseconds",
            true,
            {half, most, raw_half, raw_most}};
  return {"latency-by-depth.svg", std::move(plot)};
}

Plots rate_by_connections(const ServerProcess& server, double seconds, const Running& running) {
  Line getattr{"GETATTR", {}}, read{"READ 4 KiB", {}};
  for (unsigned connections = 1; connections <= kMostConnections; connections *= 2) {
    LoadOptions options;
    options.connections = connections;
    LoadGenerator load(options);
    running(&load);
    auto opened = load.open(server.url(false));
    if (opened.ok()) {
      add(getattr, connections, load.run(Operation::Getattr, 0, 8, seconds, server.pid()).rate());
      add(read, connections, load.run(Operation::Read, 4096, 8, seconds, server.pid()).rate());
    }
    running(nullptr);
    if (!opened) return Failure{opened.error()};
  }
  Plot plot{"Rate by connections, 8 calls in flight on each",
            "connections",
            "calls/s",
            false,
            {getattr, read}};
  return NamedPlot{"rate-by-connections.svg", std::move(plot)};
}

}  // namespace

Result<std::vector<NamedPlot>, std::string> measure_plots(const ServerProcess& server, RawPeer& raw,
                                                          double seconds,
                                                          const Running& now_running) {
  std::vector<NamedPlot> plots;
  {
    LoadGenerator load;
    now_running(&load);
    auto opened = load.open(server.url(false));
    if (opened.ok()) {
      plots.push_back(throughput_by_block(load, raw, seconds, server.pid()));
      plots.push_back(latency_by_depth(load, raw, seconds, server.pid()));
    }
    now_running(nullptr);
    if (!opened) return Failure{opened.error()};
  }
  Plots rates = rate_by_connections(server, seconds, now_running);
  if (!rates) return Failure{rates.error()};
  plots.push_back(*std::move(rates));
  return plots;
}

}  // namespace stag::bench
