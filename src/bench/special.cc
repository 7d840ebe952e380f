#include "bench/special.h"

#include <algorithm>
#include <thread>

#include "bench/load/crowd.h"
#include "bench/program.h"
#include "bench/worlds/sim_world.h"

namespace stag::bench {
namespace {

using Of = Goal::Of;

Row row_of(const std::string& name, const std::string& unit, const Measured& ours, Goal goal) {
  return {name, unit, ours, {}, 1, std::move(goal)};
}

void sleep_unless(const std::function<bool()>& stopped, double seconds) {
  const Stopwatch watch(kNoPeer);
  while (watch.elapsed() < seconds && !stopped())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

// Knocks at connections here and there.
Measured knocks(Crowd& crowd, unsigned connections, const std::function<bool()>& stopped) {
  constexpr std::size_t kKnocks = 200;
  std::vector<double> values;
  Histogram latency;
  for (std::size_t i = 0; i < kKnocks && !stopped(); ++i) {
    const std::uint64_t took = crowd.knock(i * 7919 % connections);
    if (took == 0) continue;
    latency.add(took);
    values.push_back(static_cast<double>(took) / 1e3);
  }
  Measured measured = Measured::of(values);
  measured.latency = latency;
  return measured;
}

}  // namespace

Rows measure_idle(const ServerProcess& server, const SpecialOptions& options,
                  const std::function<bool()>& stopped) {
  raise_open_files();
  Crowd crowd({"127.0.0.1", server.rdma_port()});
  // What the first connection needs, all have.
  constexpr std::size_t kStep = 100;
  if (auto grown = crowd.grow(1); !grown) return Failure{grown.error()};
  const std::uint64_t before = resident_bytes_of(server.pid());
  for (std::size_t have = 1; have < options.idle && !stopped(); have += kStep)
    if (auto grown = crowd.grow(std::min(kStep, options.idle - have)); !grown)
      return Failure{grown.error()};
  const double bytes = static_cast<double>(resident_bytes_of(server.pid()) - before);
  const double cpu_before = cpu_seconds_of(server.pid());
  const Stopwatch watch(kNoPeer);
  sleep_unless(stopped, options.sampling.seconds * options.sampling.samples);
  const double cpu = (cpu_seconds_of(server.pid()) - cpu_before) / watch.elapsed() * 100;
  if (stopped()) return Failure{std::string("interrupted")};
  std::vector<Row> rows;
  rows.push_back(row_of("idle_memory", "KiB", Measured::of({bytes / 1024 / options.idle}),
                        {Of::Value, true, 64}));
  rows.push_back(row_of("idle_cpu", "%", Measured::of({cpu}), {Of::Value, true, 1}));
  rows.push_back(row_of("idle_null_rtt", "us", knocks(crowd, options.idle, stopped), {}));
  return rows;
}

Rows measure_active(const ServerProcess& server, const SpecialOptions& options,
                    const std::function<void(LoadGenerator*)>& now_running) {
  raise_open_files();
  LoadOptions many;
  many.connections = options.active;
  LoadGenerator load(many);
  now_running(&load);
  Sample sample;
  const double seconds = options.sampling.seconds * options.sampling.samples;
  auto opened = load.open(server.url(false));
  if (opened.ok()) sample = load.run(Operation::Getattr, 0, 1, seconds, server.pid());
  now_running(nullptr);
  if (!opened) return Failure{opened.error()};
  if (sample.operations == 0) return Failure{load.trouble()};
  const auto [least, most] = std::minmax_element(load.shares().begin(), load.shares().end());
  const double unfair = static_cast<double>(*most) / static_cast<double>(*least);
  Measured rate = Measured::of({sample.rate()});
  rate.latency = sample.latency;
  rate.add_cpu({sample.cpu_seconds / static_cast<double>(sample.operations) * 1e6});
  std::vector<Row> rows;
  rows.push_back(row_of("active_getattr_rate", "calls/s", rate, {}));
  rows.push_back(row_of("active_most_to_least", "x", Measured::of({unfair}), {Of::Value, true, 2}));
  return rows;
}

Rows measure_alone(const Figure& figure, const Sampling& sampling) {
  Result<Measured, std::string> measured = Failure{std::string("no such figure")};
  if (figure.kind == Figure::Kind::Start) measured = measure_start(sampling.samples);
  if (figure.kind == Figure::Kind::Cat) measured = measure_cat(sampling.samples);
  if (figure.kind == Figure::Kind::Simulated) {
    SimWorld world;
    world.run_for(figure.operation, sampling.seconds / 3, figure.depth);
    std::vector<double> values;
    for (unsigned i = 0; i < sampling.samples; ++i) {
      const Sample sample = world.run_for(figure.operation, sampling.seconds, figure.depth);
      if (sample.operations == 0) return Failure{figure.name + " failed"};
      values.push_back(sample.cpu_seconds / static_cast<double>(sample.operations) * 1e6);
    }
    measured = Measured::of(values);
    measured->add_cpu(values);
    const SampleSource side = [&](double seconds) {
      return world.run_for(figure.operation, seconds, figure.depth);
    };
    count_ours(side, sampling.seconds, kNoPeer, *measured);
  }
  if (!measured) return Failure{measured.error()};
  Row row = row_of(figure.name, std::string(figure.unit()), *measured, figure.goal);
  row.samples = sampling.samples;
  return std::vector<Row>{row};
}

}  // namespace stag::bench
