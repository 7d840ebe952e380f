#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "bench/load.h"
#include "bench/self_bench.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/remote.h"

namespace stag::cli {
namespace {

using bench::Figure;

class Bench final : public Command {
 public:
  About about() const override {
    return {"bench", "measure latency, rates and bandwidth",
            "  stag bench --self\n  stag bench nfs://server/scratch\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.flag("--self", self_,
                   "against a server of its own on this machine, next to the raw TCP reference of "
                   "the same run");
    arguments.flag("--json", json_, "an object");
    arguments.texts("--only", only_, "NAME", "this figure; may be given several times");
    arguments.number("--samples", samples_, 1, 100, "samples of each figure");
    arguments.number("--milliseconds", milliseconds_, 1, 60'000, "length of a sample");
    arguments.number("--busy-poll", options_.load.busy_poll_us, 0, 1'000'000,
                     "microseconds an idle loop looks for work before it sleeps");
    arguments.flag("--crc", options_.load.crc, "with CRC32C on every FPDU");
    arguments.positional("URL", url_, "a directory that may be written to", false);
  }
  Exit run() override {
    if (self_ != url_.empty())
      return misused("say either --self or the URL of a directory on a server");
    options_.samples = samples_;
    options_.seconds = milliseconds_ / 1000.0;
    const Result<std::vector<Figure>, std::string> figures = bench::choose_figures(only_);
    if (!figures) return misused(figures.error());
    if (self_) return run_self(*figures);
    if (const Outcome<Ok> usable = check_url(); !usable) return failed(usable.error());
    const Exit exit = run_remote(*figures);
    on_loop([this](Run& run) { return clean_up(run); });
    return exit;
  }

 private:
  std::string_view left_behind() const override {
    return "stag-bench.data may be left on the server; remove it";
  }

  Exit run_self(const std::vector<Figure>& figures) {
    const Result<std::vector<bench::Row>, std::string> rows = bench::bench_self(
        figures, options_, [](std::size_t done, std::size_t all, const std::string& name) {
          show(fmt::format("[{}/{}] {}", done + 1, all, name));
        });
    show("");
    if (!rows) return failed(rows.error());
    fmt::print("{}\n", json_ ? bench::to_json(*rows) : bench::to_table(*rows));
    return Exit::Done;
  }

  Outcome<Ok> check_url() const {
    const Outcome<nfs::client::Url> url = nfs::client::Url::parse(url_);
    if (!url) return Failure{url.error()};
    const auto connector = nfs_connector(*url, {});
    if (!connector) return Failure{connector.error()};
    return Ok{};
  }

  Exit run_remote(const std::vector<Figure>& figures) {
    const auto load = bench::Load::open(url_, options_.load);
    if (!load) return failed(load.error());
    Json results = Json::array();
    Exit exit = Exit::Done;
    for (const Figure& figure : figures) {
      show(std::string(figure.name));
      const std::optional<double> value = measure(**load, figure);
      show("");
      if (!value) {
        exit = failed(fmt::format("{}: {}", figure.name, (*load)->trouble()));
        break;
      }
      results.add(report(figure, *value));
    }
    if (json_) {
      Json json;
      json.set("machine", bench::machine()).set("results", std::move(results));
      fmt::print("{}\n", json.text());
    }
    return exit;
  }

  // The median of the samples; nothing when the load fails.
  std::optional<double> measure(bench::Load& load, const Figure& figure) const {
    std::vector<double> values;
    for (unsigned i = 0; i < options_.samples; ++i) {
      const bench::Sample sample =
          load.run(figure.operation, figure.bytes, figure.depth, options_.seconds, getpid());
      if (sample.operations == 0) return std::nullopt;
      values.push_back(figure.value_of(sample));
    }
    return bench::median(std::move(values));
  }

  Json report(const Figure& figure, double value) const {
    if (!json_) fmt::print("{:<18}{:>12.2f}  {}\n", figure.name, value, figure.unit());
    Json json;
    json.set("name", figure.name)
        .set("unit", figure.unit())
        .set("ours", value)
        .set("samples", std::uint64_t{options_.samples});
    return json;
  }

  // The file that a Load works on.
  Task<Exit> clean_up(Run& run) {
    RemoteOptions options;
    Outcome<std::unique_ptr<Remote>> remote = co_await Remote::open(run, url_, options);
    if (!remote) co_return Exit::Failed;
    const std::string path = (*remote)->path();
    const Outcome<nfs::client::Node> directory = co_await (*remote)->files().walk(path);
    if (directory)
      static_cast<void>(co_await (*remote)->files().remove(directory->handle, "stag-bench.data"));
    co_await (*remote)->close();
    co_return Exit::Done;
  }

  // On a terminal, in the place of what was there.
  static void show(const std::string& text) {
    if (isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\r\x1b[K{}", text);
    std::fflush(stderr);
  }

  bool self_ = false, json_ = false;
  std::uint32_t samples_ = 5, milliseconds_ = 350;
  bench::BenchOptions options_;
  std::vector<std::string> only_;
  std::string url_;
};

}  // namespace

std::unique_ptr<Command> make_bench() {
  return std::make_unique<Bench>();
}

}  // namespace stag::cli
