#include "bench/report/figures.h"

#include <fnmatch.h>

#include <algorithm>

namespace stag::bench {
namespace {

using Kind = Figure::Kind;
using Of = Goal::Of;

constexpr std::size_t k4K = 4 << 10, k64K = 64 << 10, k256K = 256 << 10, k1M = 1 << 20;

Goal at_most(Of of, double bound) {
  return {of, true, bound};
}
Goal at_least(Of of, double bound) {
  return {of, false, bound};
}
Goal at_least(double bound, std::string row) {
  return {Of::Row, false, bound, std::move(row)};
}

// Without set-up and goal.
const std::vector<Figure>& loads() {
  static const std::vector<Figure> kLoads{
      {"null_rtt", Kind::RoundTrip, Operation::Null, 0, 1},
      {"getattr_rtt", Kind::RoundTrip, Operation::Getattr, 0, 1},
      {"write_4k_rtt", Kind::RoundTrip, Operation::Write, k4K, 1},
      {"null_rate_32", Kind::Rate, Operation::Null, 0, 32},
      {"null_rate_128", Kind::Rate, Operation::Null, 0, 128},
      {"getattr_rate_32", Kind::Rate, Operation::Getattr, 0, 32},
      {"rand_read_4k_32", Kind::Rate, Operation::Read, k4K, 32},
      {"rand_write_4k_32", Kind::Rate, Operation::Write, k4K, 32},
      {"read_1m", Kind::Bandwidth, Operation::Read, k1M, 4},
      {"write_1m", Kind::Bandwidth, Operation::Write, k1M, 4},
      {"read_256k", Kind::Bandwidth, Operation::Read, k256K, 4},
      {"write_256k", Kind::Bandwidth, Operation::Write, k256K, 4},
      {"read_64k", Kind::Bandwidth, Operation::Read, k64K, 4},
      {"write_64k", Kind::Bandwidth, Operation::Write, k64K, 4},
  };
  return kLoads;
}

Goal plain_goal(const Figure& figure) {
  if (figure.name == "write_4k_rtt") return at_most(Of::Reference, 1.3);
  if (figure.name == "getattr_rate_32") return at_least(0.7, "null_rate_32");
  if (figure.name == "rand_read_4k_32") return at_least(Of::Value, 600'000);
  if (figure.name == "rand_write_4k_32") return at_least(Of::Value, 400'000);
  if (figure.kind == Kind::RoundTrip) return at_most(Of::Reference, 1.15);
  if (figure.kind == Kind::Rate) return at_least(Of::Reference, 0.8);
  return at_least(Of::Reference, figure.operation == Operation::Read ? 1.0 : 0.95);
}

Goal goal_in(const Setup& setup, const Figure& figure) {
  if (setup == Setup{} || setup.poll) return plain_goal(figure);
  if (setup.nfs4)
    return at_least(figure.operation == Operation::Getattr ? 0.7
                    : figure.bytes == k4K                  ? 0.75
                                                           : 0.97,
                    figure.name);
  if (setup.client4) return at_least(0.9, figure.name);
  if (setup.raw_fpdus) return at_least(Of::Reference, 0.95);
  if (setup.crc && figure.kind != Kind::RoundTrip) return at_least(0.8, figure.name);
  if (setup.folder && figure.kind == Kind::Bandwidth)
    return at_least(Of::Reference, figure.operation == Operation::Read ? 0.85 : 0.7);
  return {};
}

// Those of loads() that are among `names`, or all.
void add_loads(std::vector<Figure>& figures, const Setup& setup,
               const std::vector<std::string_view>& names, bool usual) {
  for (Figure figure : loads()) {
    if (!names.empty() && std::find(names.begin(), names.end(), figure.name) == names.end())
      continue;
    figure.setup = setup;
    figure.goal = goal_in(setup, figure);
    figure.usual = usual;
    figure.name = std::string(setup.name) + figure.name;
    figures.push_back(std::move(figure));
  }
}

// 4 KiB random READs, eight at a time on each of eight connections.
void add_loops(std::vector<Figure>& figures) {
  for (const unsigned loops : {1u, 2u}) {
    const bool two = loops == 2;
    Figure figure{two ? "rand_read_4k_8x8_two_loops" : "rand_read_4k_8x8_one_loop", Kind::Rate,
                  Operation::Read, k4K, 8};
    figure.setup.server_loops = loops;
    figure.setup.client_loops = 2;
    figure.setup.connections = 8;
    if (two) figure.goal = at_least(1.6, "rand_read_4k_8x8_one_loop");
    figures.push_back(std::move(figure));
  }
}

void add_others(std::vector<Figure>& figures) {
  for (const Figure& figure : loads())
    if (figure.bytes <= k4K && figure.kind != Kind::Bandwidth)
      figures.push_back(
          {"sim_" + figure.name, Kind::Simulated, figure.operation, figure.bytes, figure.depth});
  figures.push_back({"idle", Kind::Idle});
  figures.push_back({"active", Kind::Active});
  Figure start{"serve_first_answer", Kind::Start};
  start.goal = at_most(Of::Value, 50);
  figures.push_back(std::move(start));
  Figure cat{"cat_small_file", Kind::Cat};
  cat.goal = at_most(Of::Value, 20);
  figures.push_back(std::move(cat));
}

std::string no_figure(const std::string& name) {
  std::string sentence = "there is no figure '" + name + "'; there are";
  bool first = true;
  for (const Figure& figure : all_figures()) {
    sentence += (first ? " " : ", ") + figure.name;
    first = false;
  }
  return sentence;
}

bool matches(const std::string& pattern, const Figure& figure) {
  return fnmatch(pattern.c_str(), figure.name.c_str(), 0) == 0;
}

}  // namespace

std::vector<Figure> all_figures() {
  std::vector<Figure> figures;
  add_loads(figures, {}, {}, true);
  add_loads(figures, {.name = "poll_", .poll = true}, {"null_rtt", "getattr_rtt", "write_4k_rtt"},
            true);
  add_loads(figures, {.name = "crc_", .crc = true}, {}, false);
  const std::vector<std::string_view> of_version_4 = {"getattr_rate_32", "rand_read_4k_32",
                                                      "rand_write_4k_32", "read_1m", "write_1m"};
  add_loads(figures, {.name = "nfs4_", .nfs4 = true}, of_version_4, false);
  add_loads(figures, {.name = "client4_", .client4 = true}, of_version_4, false);
  add_loads(figures, {.name = "fpdus_", .raw_fpdus = true}, {"read_1m", "write_1m"}, false);
  add_loads(figures, {.name = "tcp_", .tcp = true}, {}, false);
  add_loads(figures, {.name = "posix_", .folder = true}, {}, false);
  add_loops(figures);
  add_others(figures);
  return figures;
}

Result<std::vector<Figure>, std::string> choose_figures(const std::vector<std::string>& patterns,
                                                        bool full) {
  const std::vector<Figure> figures = all_figures();
  std::vector<bool> wanted(figures.size());
  for (std::size_t i = 0; i < figures.size(); ++i)
    wanted[i] = patterns.empty() && (full || figures[i].usual);
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (std::size_t i = 0; i < figures.size(); ++i)
      if (matches(pattern, figures[i])) wanted[i] = any = true;
    if (!any) return Failure{no_figure(pattern)};
  }
  std::vector<Figure> chosen;
  for (std::size_t i = 0; i < figures.size(); ++i)
    if (wanted[i]) chosen.push_back(figures[i]);
  return chosen;
}

double Figure::value_of(const Sample& sample) const {
  switch (kind) {
    case Kind::Rate:
      return sample.rate();
    case Kind::Bandwidth:
      return sample.bandwidth() / 1e9;
    default:
      return sample.per_operation() * 1e6;
  }
}

std::string_view Figure::unit() const {
  switch (kind) {
    case Kind::Rate:
      return "calls/s";
    case Kind::Bandwidth:
      return "GB/s";
    case Kind::Start:
    case Kind::Cat:
      return "ms";
    default:
      return "us";
  }
}

bool Figure::is_load() const {
  return kind == Kind::RoundTrip || kind == Kind::Rate || kind == Kind::Bandwidth;
}

}  // namespace stag::bench
