#include "bench/measure.h"

#include <unistd.h>

#include <cstring>

#include "bench/load/counters.h"

namespace stag::bench {
namespace {

class Samples {
 public:
  void add(const Figure& figure, const Sample& sample) {
    values_.push_back(figure.value_of(sample));
    cpu_.push_back(sample.cpu_seconds / static_cast<double>(sample.operations) * 1e6);
    latency_.add(sample.latency);
  }
  Measured measured() const {
    Measured measured = Measured::of(values_);
    measured.add_cpu(cpu_);
    measured.latency = latency_;
    return measured;
  }

 private:
  std::vector<double> values_, cpu_;
  Histogram latency_;
};

Sample raw_sample(const Figure& figure, const LoadGenerator::WireBytes& wire, RawPeer& raw,
                  double seconds) {
  if (figure.kind != Figure::Kind::Bandwidth)
    return raw.exchange(wire.request, wire.reply, figure.depth * figure.setup.connections, seconds);
  const bool fpdus = figure.setup.raw_fpdus;
  return figure.operation == Operation::Read ? raw.stream_in(figure.bytes, seconds, fpdus)
                                             : raw.stream_out(figure.bytes, seconds, fpdus);
}

SampleSource source(const Figure& figure, Target target) {
  return [&figure, target](double seconds) {
    return target.load.run(figure.operation, figure.bytes, figure.depth, seconds, target.server);
  };
}

// A figure's values, each by that of its goal's row measured right after it.
class Quotients {
 public:
  explicit Quotients(const GoalRow& row)
      : figure_(row.figure), load_(row.target.load), source_(source(row.figure, row.target)) {}
  bool warm_up(const Sampling& sampling) {
    return load_.renew() && source_(sampling.seconds / 3).operations > 0;
  }
  bool add(double value, const Sampling& sampling) {
    const Sample sample = source_(sampling.seconds);
    if (sample.operations == 0) return false;
    values_.push_back(value / figure_.value_of(sample));
    return true;
  }
  double median() const { return bench::median(values_); }

 private:
  const Figure& figure_;
  LoadGenerator& load_;
  const SampleSource source_;
  std::vector<double> values_;
};

void count(const SampleSource& side, double seconds, const Counters& counters, Measured& measured) {
  const Sample sample = side(seconds);
  const std::optional<Counters::Counts> counts = counters.read();
  if (!counts || sample.operations == 0) return;
  const auto operations = static_cast<double>(sample.operations);
  measured.system_calls = static_cast<double>(counts->system_calls) / operations;
  measured.switches = static_cast<double>(counts->switches) / operations;
  if (counts->allocations)
    measured.allocations = static_cast<double>(*counts->allocations) / operations;
}

Measured memcpy_speed(const Sampling& sampling) {
  std::vector<std::byte> from(LoadGenerator::kBulkBytes, std::byte{1}),
      to(LoadGenerator::kBulkBytes);
  constexpr std::size_t kBlock = 1 << 20;
  std::vector<double> values;
  for (unsigned i = 0; i <= sampling.samples; ++i) {
    const Stopwatch watch(kNoPeer);
    std::uint64_t blocks = 0;
    for (; watch.elapsed() < sampling.seconds / 4; ++blocks)
      std::memcpy(to.data() + blocks * kBlock % to.size(),
                  from.data() + blocks * kBlock % from.size(), kBlock);
    // The first is the warm-up.
    if (i > 0) values.push_back(watch.stop(blocks, blocks * kBlock).bandwidth() / 1e9);
  }
  return Measured::of(values);
}

Row reference(const std::string& name, const Figure& figure, const Sampling& sampling,
              const SampleSource& side) {
  Samples samples;
  for (unsigned i = 0; i < sampling.samples; ++i)
    if (const Sample sample = side(sampling.seconds / 2); sample.operations > 0)
      samples.add(figure, sample);
  return {name, std::string(figure.unit()), samples.measured(), {}, sampling.samples};
}

}  // namespace

void count_ours(const SampleSource& side, double seconds, pid_t peer, Measured& measured) {
  // In a shorter one it is its beginning that allocates, and probes take a while to be removed.
  constexpr double kShortest = 0.1;
  count(side, seconds / 4, {{getpid(), peer}, seconds >= kShortest}, measured);
}

Result<Row, std::string> measure(const Figure& figure, const Sampling& sampling, Target target,
                                 RawPeer* raw, const GoalRow* goal_row) {
  LoadGenerator& load = target.load;
  const SampleSource ours = source(figure, target);
  if (!load.renew() || ours(sampling.seconds / 3).operations == 0) return Failure{load.trouble()};
  const LoadGenerator::WireBytes wire = load.wire_bytes(figure.operation, figure.bytes);
  const SampleSource theirs = [&](double seconds) {
    return raw_sample(figure, wire, *raw, seconds);
  };
  if (raw != nullptr) theirs(sampling.seconds / 3);
  std::optional<Quotients> quotients;
  if (goal_row != nullptr && !quotients.emplace(*goal_row).warm_up(sampling))
    return Failure{goal_row->target.load.trouble()};
  Samples own, reference;
  for (unsigned i = 0; i < sampling.samples; ++i) {
    const Sample sample = ours(sampling.seconds);
    if (sample.operations == 0) return Failure{load.trouble()};
    own.add(figure, sample);
    if (quotients && !quotients->add(figure.value_of(sample), sampling))
      return Failure{goal_row->target.load.trouble()};
    if (raw == nullptr) continue;
    const Sample raw_one = theirs(sampling.seconds);
    if (raw_one.operations == 0) return Failure{std::string("the raw reference's peer is gone")};
    reference.add(figure, raw_one);
  }
  Row row{figure.name, std::string(figure.unit()), own.measured(), {}, sampling.samples};
  row.goal = figure.goal;
  if (quotients) row.to_goal_row = quotients->median();
  count_ours(ours, sampling.seconds, target.server, row.ours);
  if (raw == nullptr) return row;
  row.reference = reference.measured();
  count(theirs, sampling.seconds / 4, {{getpid(), raw->pid()}, false}, *row.reference);
  return row;
}

std::vector<Row> measure_references(const Sampling& sampling, RawPeer& raw) {
  const Figure stream{"", Figure::Kind::Bandwidth}, trip{"", Figure::Kind::RoundTrip},
      rate{"", Figure::Kind::Rate};
  std::vector<Row> rows;
  rows.push_back({"memcpy_1m", "GB/s", memcpy_speed(sampling), {}, sampling.samples});
  rows.push_back(reference("raw_stream_1m", stream, sampling,
                           [&](double seconds) { return raw.stream_in(1 << 20, seconds); }));
  rows.push_back(reference("raw_ping_pong_128", trip, sampling,
                           [&](double seconds) { return raw.exchange(128, 128, 1, seconds); }));
  rows.push_back(reference("raw_pipelined_128_32", rate, sampling,
                           [&](double seconds) { return raw.exchange(128, 128, 32, seconds); }));
  return rows;
}

}  // namespace stag::bench
