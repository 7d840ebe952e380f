#include "bench/sweep.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "bench/report/row.h"

namespace stag::bench {
namespace {

constexpr std::size_t kLeastBlock = 4 << 10, kMostBlock = 4 << 20;
constexpr unsigned kMostDepth = 128, kMostConnections = 64;
constexpr unsigned kBulkDepth = 4;
constexpr unsigned kSamples = 3;  // of each point

using Plots = Result<NamedPlot, std::string>;
using Running = std::function<void(LoadGenerator*)>;
using Stopped = std::function<bool()>;

double microseconds_at(const Sample& sample, double share) {
  return static_cast<double>(sample.latency.percentile(share)) / 1e3;
}

// The samples of several lines at one place, taken in turn, so that drifts of the machine's speed
// affect them alike.
class Place {
 public:
  explicit Place(double x) : x_(x) {}
  void sample(Line& line, double y) {
    for (auto& [to, values] : samples_)
      if (to == &line) return values.push_back(y);
    samples_.emplace_back(&line, std::vector<double>{y});
  }
  ~Place() {
    for (const auto& [line, values] : samples_) {
      const Measured found = Measured::of(values);
      if (found.least > 0) line->points.push_back({x_, found.value, found.least, found.most});
    }
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  double x_;
  std::vector<std::pair<Line*, std::vector<double>>> samples_;
};

std::vector<std::string> caption(const PlotOptions& options) {
  const std::time_t now = std::time(nullptr);
  return {
      fmt::format("stag {} on software iWARP, both ends on one machine, {:%Y-%m-%d}.",
                  options.build, fmt::gmtime(now)),
      machine(),
      fmt::format("Lines: the median of {} samples of {:g} s each. Bands: from the least to the "
                  "most of them.",
                  kSamples, options.seconds)};
}

NamedPlot throughput_by_block(LoadGenerator& load, RawPeer& raw, const PlotOptions& options,
                              pid_t server, const Stopped& stopped) {
  Line read{"READ", {}}, write{"WRITE", {}}, in{"raw TCP, in", {}}, out{"raw TCP, out", {}};
  const auto of = [](const Sample& sample) { return sample.bandwidth() / 1e9; };
  for (std::size_t block = kLeastBlock; block <= kMostBlock; block *= 2) {
    Place place(static_cast<double>(block));
    for (unsigned i = 0; i < kSamples && !stopped(); ++i) {
      place.sample(read, of(load.run(Operation::Read, block, kBulkDepth, options.seconds, server)));
      place.sample(write,
                   of(load.run(Operation::Write, block, kBulkDepth, options.seconds, server)));
      if (stopped()) break;
      place.sample(in, of(raw.stream_in(block, options.seconds)));
      if (stopped()) break;
      place.sample(out, of(raw.stream_out(block, options.seconds)));
    }
  }
  Plot plot{"Throughput by block size, 4 in flight",
            "block, bytes",
            "GB/s",
            false,
            {read, write, in, out},
            caption(options)};
  return {"throughput-by-block.svg", std::move(plot)};
}

NamedPlot latency_by_depth(LoadGenerator& load, RawPeer& raw, const PlotOptions& options,
                           pid_t server, const Stopped& stopped) {
  Line half{"NULL, p50", {}}, most{"NULL, p99", {}}, raw_half{"raw TCP, p50", {}},
      raw_most{"raw TCP, p99", {}};
  for (unsigned depth = 1; depth <= kMostDepth; depth *= 2) {
    Place place(depth);
    for (unsigned i = 0; i < kSamples && !stopped(); ++i) {
      const Sample ours = load.run(Operation::Null, 0, depth, options.seconds, server);
      if (stopped()) break;
      const LoadGenerator::WireBytes wire = load.wire_bytes(Operation::Null, 0);
      const Sample theirs = raw.exchange(wire.request, wire.reply, depth, options.seconds);
      place.sample(half, microseconds_at(ours, 0.5));
      place.sample(most, microseconds_at(ours, 0.99));
      place.sample(raw_half, microseconds_at(theirs, 0.5));
      place.sample(raw_most, microseconds_at(theirs, 0.99));
    }
  }
  Plot plot{"Latency of a NULL call by calls in flight",
            "calls in flight",
            "microseconds",
            true,
            {half, most, raw_half, raw_most},
            caption(options)};
  return {"latency-by-depth.svg", std::move(plot)};
}

Plots rate_by_connections(const ServerProcess& server, const PlotOptions& options,
                          const Running& running) {
  Line getattr{"GETATTR", {}}, read{"READ 4 KiB", {}};
  for (unsigned connections = 1; connections <= kMostConnections; connections *= 2) {
    LoadOptions with;
    with.connections = connections;
    LoadGenerator load(with);
    running(&load);
    auto opened = load.open(server.url(false));
    if (opened.ok()) {
      Place place(connections);
      for (unsigned i = 0; i < kSamples; ++i) {
        const auto rate = [&](Operation of, std::size_t bytes) {
          return load.run(of, bytes, 8, options.seconds, server.pid()).rate();
        };
        place.sample(getattr, rate(Operation::Getattr, 0));
        place.sample(read, rate(Operation::Read, 4096));
      }
    }
    running(nullptr);
    if (!opened) return Failure{opened.error()};
  }
  Plot plot{"Rate by connections, 8 calls in flight on each",
            "connections",
            "calls/s",
            false,
            {getattr, read},
            caption(options)};
  return NamedPlot{"rate-by-connections.svg", std::move(plot)};
}

}  // namespace

Result<std::vector<NamedPlot>, std::string> measure_plots(const ServerProcess& server, RawPeer& raw,
                                                          const PlotOptions& options,
                                                          const Running& now_running,
                                                          const Stopped& stopped) {
  std::vector<NamedPlot> plots;
  {
    LoadGenerator load;
    now_running(&load);
    auto opened = load.open(server.url(false));
    if (opened.ok()) {
      plots.push_back(throughput_by_block(load, raw, options, server.pid(), stopped));
      plots.push_back(latency_by_depth(load, raw, options, server.pid(), stopped));
    }
    now_running(nullptr);
    if (!opened) return Failure{opened.error()};
  }
  if (stopped()) return Failure{std::string("interrupted")};
  Plots rates = rate_by_connections(server, options, now_running);
  if (!rates) return Failure{rates.error()};
  plots.push_back(*std::move(rates));
  return plots;
}

}  // namespace stag::bench
