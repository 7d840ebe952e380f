#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "bench/suite.h"
#include "cli/commands.h"
#include "cli/support/arguments.h"
#include "cli/support/commit.h"
#include "cli/support/output.h"
#include "cli/support/remote.h"

namespace stag::cli {
namespace {

using bench::Figure;

class Bench final : public Command {
 public:
  About about() const override {
    return {"bench", "measure latency, rates and bandwidth",
            "  stag bench --self\n"
            "  stag bench --self --rows 'null*,read_1m' --json\n"
            "  stag bench --self --full --plots /tmp/plots\n"
            "  stag bench --self --fabric verbs --address 192.0.2.1\n"
            "  stag bench nfs://server/scratch\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag(
        "--self", self_,
        "measure servers that it starts on this machine, next to the raw TCP reference of "
        "the same run");
    arguments.choice("--fabric", fabric_, {"iwarp", "verbs"},
                     "with --self: software iWARP on loopback, or the RDMA device of --address, "
                     "next to perftest's ib_send_lat, ib_write_bw and ib_read_bw");
    arguments.text("--address", options_.device_address, "ADDRESS",
                   "of this machine, on an RDMA device (with --fabric verbs)");
    arguments.flag("--json", json_, "an object");
    arguments.texts("--rows,--only", patterns_, "NAME,...",
                    "these rows; '*' stands for anything; may be given several times");
    arguments.flag("--full", full_,
                   "every row: CRC32C, TCP, a folder on tmpfs and more; takes minutes");
    arguments.text("--plots", plots_, "DIR",
                   "write plots there: throughput by block size, latency by depth, rate by "
                   "connections (with --self)");
    arguments.number("--samples", options_.sampling.samples, 1, 100, "samples of each row");
    arguments.number("--milliseconds", milliseconds_, 1, 60'000, "length of a sample");
    arguments.number("--idle", options_.idle, 1, 1'000'000, "connections of the row idle");
    arguments.number("--active", options_.active, 1, 100'000, "connections of the row active");
    arguments.number("--busy-poll", options_.busy_poll_us, 0, 1'000'000,
                     "microseconds that an idle loop polls for work before it blocks");
    arguments.flag("--crc", options_.crc, "with CRC32C on every FPDU");
    arguments.positional("URL", url_,
                         "a directory to write test files to; by version 3 unless it names another",
                         false);
  }
  Exit run() override {
    if (self_ != url_.empty())
      return misused("say either --self or the URL of a directory on a server");
    const bool verbs = fabric_ == "verbs";
    if (verbs && !self_) return misused("--fabric goes with --self; in a URL it is ?fabric=verbs");
    if (verbs == options_.device_address.empty())
      return misused("--fabric verbs and --address go together; stag devices shows addresses");
    if (!plots_.empty() && (!self_ || verbs))
      return misused("--plots goes with --self and software iWARP");
    options_.plots = !plots_.empty();
    options_.build = build_name(STAG_VERSION, commit());
    options_.registration = verbs && patterns_.empty();
    options_.sampling.seconds = milliseconds_ / 1000.0;
    const auto figures = bench::choose_figures(words(patterns_), full_);
    if (!figures) return misused(figures.error());
    if (!self_ || verbs)
      if (const std::optional<Exit> end = leave_out(*figures)) return *end;
    if (const Outcome<Ok> usable = check_url(); !usable) return failed(usable.error());
    Made suite = self_ ? bench::Suite::at_home(*figures, options_)
                       : Made(bench::Suite::of(url_, *figures, options_));
    if (!suite) return failed(suite.error());
    return on_loop([this, &suite](Run& run) { return measure(run, **suite); });
  }

 private:
  using Made = Result<std::unique_ptr<bench::Suite>, std::string>;

  std::string_view left_behind() const override {
    return self_ ? "" : "stag-bench.data may be left on the server; remove it";
  }

  // Of figures that only --self with software iWARP can measure: a row that is named, or the last
  // one, is asked for in vain; others are left out, which is said.
  std::optional<Exit> leave_out(const std::vector<Figure>& figures) {
    const std::vector<std::string> asked = words(patterns_);
    std::string names;
    std::size_t count = 0;
    bool in_vain = false;
    for (const Figure& figure : figures) {
      if (!bench::needs_set_up(figure)) continue;
      names += (names.empty() ? "" : ", ") + figure.name;
      ++count;
      in_vain = in_vain || std::ranges::find(asked, figure.name) != asked.end();
    }
    constexpr std::string_view kWhere = "measured with --self and software iWARP only: ";
    if (in_vain || count == figures.size()) return misused(std::string(kWhere) + names);
    if (count > 0 && (full_ || !asked.empty()))
      left_out_ = fmt::format("left out, {}{}\n", kWhere, names);
    return std::nullopt;
  }

  Outcome<Ok> check_url() const {
    if (self_) return Ok{};
    const Outcome<nfs::client::Url> url = nfs::client::Url::parse(url_);
    if (!url) return Failure{url.error()};
    return Ok{};
  }

  // The suite blocks, so it runs on another thread than the loop that receives the signals.
  Task<Exit> measure(Run& run, bench::Suite& suite) {
    const CancelCallback stopped(run.cancel, [&suite] { suite.stop(); });
    const bench::Rows rows = co_await offloaded(run.loop, [this, &suite] { return all(suite); });
    show("");
    if (run.cancel.cancelled()) co_return failed("interrupted");
    if (!rows) co_return failed(rows.error());
    const std::string_view reference = fabric_ == "verbs" ? "perftest" : "raw TCP";
    const auto counted = self_ ? bench::Counted::BothProcesses : bench::Counted::Client;
    put("{}\n", json_ ? bench::to_json(*rows, references_, counted)
                      : bench::to_table(*rows, references_, reference, counted));
    write_error(left_out_);
    for (const std::string& note : suite.notes()) write_error(note + "\n");
    co_return Exit::Done;
  }

  bench::Rows all(bench::Suite& suite) {
    bench::Rows rows = suite.run([](std::size_t done, std::size_t count, const std::string& name) {
      show(fmt::format("{} {}/{} {}", bar(done, count), done + 1, count, name));
    });
    show("raw references");
    if (rows.ok() && patterns_.empty()) references_ = suite.references();
    if (rows.ok() && !plots_.empty())
      if (const Result<Ok, std::string> drawn = draw(suite); !drawn) return Failure{drawn.error()};
    return rows;
  }

  Result<Ok, std::string> draw(bench::Suite& suite) const {
    show("plots");
    const auto plots = suite.plots();
    if (!plots) return Failure{plots.error()};
    std::error_code error;
    std::filesystem::create_directories(plots_, error);
    for (const bench::NamedPlot& each : *plots) {
      std::ofstream file(std::filesystem::path(plots_) / each.file);
      file << bench::to_svg(each.plot);
      if (!file.flush()) return Failure{fmt::format("cannot write {}/{}", plots_, each.file)};
    }
    return Ok{};
  }

  static std::string bar(std::size_t done, std::size_t count) {
    constexpr std::size_t kWidth = 30;
    const std::size_t full = count == 0 ? 0 : done * kWidth / count;
    return "[" + std::string(full, '#') + std::string(kWidth - full, '.') + "]";
  }

  // Of "a,b" "c": a, b, c.
  static std::vector<std::string> words(const std::vector<std::string>& lists) {
    std::vector<std::string> all;
    for (const std::string& list : lists)
      for (std::size_t begin = 0; begin <= list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        all.push_back(list.substr(begin, end - begin));
        begin = end + 1;
      }
    return all;
  }

  // On a terminal, in place of the previous text.
  static void show(const std::string& text) {
    if (isatty(STDERR_FILENO) == 1) write_error("\r\x1b[K" + text);
  }

  bool self_ = false, json_ = false, full_ = false;
  std::uint32_t milliseconds_ = 350;
  bench::SuiteOptions options_;
  std::vector<std::string> patterns_;
  std::string url_, plots_, fabric_ = "iwarp";
  std::string left_out_;  // a line about rows that were not measured, or nothing
  std::vector<bench::Row> references_;
};

}  // namespace

std::unique_ptr<Command> make_bench() {
  return std::make_unique<Bench>();
}

}  // namespace stag::cli
