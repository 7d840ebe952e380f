#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/report/row.h"

namespace stag::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Share {
  const char* name;
  double share;
};
constexpr Share kShares[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};

double microseconds(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e3;
}

void add(Json& object, const std::string& side, const Measured& measured, Counted counted) {
  const std::string whose = counted == Counted::Client ? side + "_client" : side;
  object[side + "_min"] = measured.least;
  object[side + "_max"] = measured.most;
  object[whose + "_cpu_us"] = measured.cpu;
  if (measured.latency.count() > 0) {
    Json& latency = object[side + "_latency_us"];
    for (const Share& each : kShares)
      latency[each.name] = microseconds(measured.latency.percentile(each.share));
    latency["max"] = microseconds(measured.latency.max());
  }
  if (measured.system_calls) object[whose + "_system_calls"] = *measured.system_calls;
  if (measured.switches) object[whose + "_switches"] = *measured.switches;
  if (measured.allocations) object[whose + "_allocations"] = *measured.allocations;
}

Json to_object(const Row& row, const std::vector<Row>& rows, Counted counted) {
  Json object{{"name", row.name}, {"unit", row.unit}, {"ours", row.ours.value}};
  if (row.reference) {
    object["reference"] = row.reference->value;
    object["ratio"] = row.ratio();
  }
  object["samples"] = row.samples;
  add(object, "ours", row.ours, counted);
  if (row.reference) add(object, "reference", *row.reference, counted);
  if (const std::optional<Judgement> judgement = judge(row, rows)) {
    Json& goal = object["goal"];
    goal[row.goal.at_most ? "at_most" : "at_least"] = row.goal.bound;
    if (row.goal.of == Goal::Of::Reference) goal["of"] = "reference";
    if (row.goal.of == Goal::Of::Row) goal["of"] = row.goal.row;
    goal["found"] = judgement->found;
    goal["met"] = judgement->met;
  }
  return object;
}

// Behind the point, so that there are about four in all.
int places_of(double value) {
  return value >= 1000 ? 0 : value >= 100 ? 1 : 2;
}

std::string digits(double value) {
  return fmt::format("{:.{}f}", value, places_of(value));
}

// Nothing for what was not measured.
std::string number(double value) {
  return value == 0 ? "" : digits(value);
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : "";
}

std::string latency(const Measured& measured, double share) {
  return number(microseconds(measured.latency.percentile(share)));
}

// With more digits where what has missed its bound would read like it: 0.996 of 1.
std::string found_text(const Judgement& judgement, double bound) {
  constexpr int kMostPlaces = 6;
  int places = places_of(judgement.found);
  const auto text = [&places](double value) { return fmt::format("{:.{}f}", value, places); };
  while (!judgement.met && places < kMostPlaces && text(judgement.found) == text(bound)) ++places;
  return text(judgement.found);
}

std::string goal_text(const Row& row, const std::vector<Row>& rows) {
  const std::optional<Judgement> judgement = judge(row, rows);
  if (!judgement) return "";
  std::string text = fmt::format(
      "{} {} {}", judgement->met ? "met:   " : "missed:", found_text(*judgement, row.goal.bound),
      row.goal.at_most ? "<=" : ">=");
  text += " " + number(row.goal.bound);
  if (row.goal.of == Goal::Of::Reference) text += " x raw";
  if (row.goal.of == Goal::Of::Row) text += " x " + row.goal.row;
  return text;
}

std::string line(const Row& row, const std::vector<Row>& rows) {
  const Measured raw = row.reference.value_or(Measured{});
  return fmt::format(
      "{:<27}{:>10}{:>10}{:>10}{:>10}  {:<8}{:>6}{:>9}{:>9}{:>9}{:>9}{:>9}{:>7}{:>8}  {}\n",
      row.name, number(row.ours.value), number(row.ours.least), number(row.ours.most),
      number(raw.value), row.unit, number(row.ratio()), latency(row.ours, 0.5),
      latency(row.ours, 0.99), latency(raw, 0.99), number(row.ours.cpu), number(raw.cpu),
      number(row.ours.system_calls), number(row.ours.allocations), goal_text(row, rows));
}

}  // namespace

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

std::string to_json(const std::vector<Row>& rows, const std::vector<Row>& references,
                    Counted counted) {
  Json results = Json::array(), raw = Json::array();
  for (const Row& row : rows) results.push_back(to_object(row, rows, counted));
  for (const Row& row : references) raw.push_back(to_object(row, {}, counted));
  Json report{{"machine", machine()}, {"results", results}};
  if (!raw.empty()) report["references"] = raw;
  return report.dump(2);
}

std::string to_table(const std::vector<Row>& rows, const std::vector<Row>& references,
                     std::string_view reference, Counted counted) {
  std::string table = machine() + "\n\n";
  table +=
      fmt::format("{:<27}{:>10}{:>10}{:>10}{:>10}  {:<8}{:>6}{:>9}{:>9}{:>9}{:>9}{:>9}{:>7}{:>8}\n",
                  "", "stag", "least", "most", reference, "unit", "ratio", "p50 us", "p99 us",
                  "raw p99", "CPU us", "raw CPU", "calls", "allocs");
  for (const Row& row : rows) table += line(row, rows);
  if (!references.empty()) table += "\n";
  for (const Row& row : references) table += line(row, {});
  const std::string_view whose = counted == Counted::Client ? "the client alone" : "both processes";
  table += fmt::format(
      "\nMedians of the samples, with the least and the most. CPU: of {0}, for an operation;\n"
      "calls, allocs: system calls and heap allocations of {0}, for an operation, where the kernel "
      "lets us count.\n",
      whose);
  return table;
}

}  // namespace stag::bench
