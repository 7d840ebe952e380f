#include "bench/suite.h"

#include <algorithm>
#include <list>
#include <optional>

#include "bench/raw/perftest.h"
#include "bench/raw/registration.h"
#include "bench/worlds/server_process.h"

namespace stag::bench {
namespace {

// Where both ends always look for events: longer than any round trip.
constexpr std::uint32_t kAlwaysLooking = 1000;

LoadOptions load_options(const Setup& setup, const SuiteOptions& options) {
  LoadOptions load;
  load.crc = setup.crc || options.crc;
  load.nfs4 = setup.nfs4;
  if (setup.client4) load.version = 4;
  load.busy_poll_us = setup.poll ? kAlwaysLooking : options.busy_poll_us;
  load.connections = setup.connections;
  load.loops = setup.client_loops;
  return load;
}

ServerProcessOptions server_options(const Setup& setup, const SuiteOptions& options) {
  const LoadOptions load = load_options(setup, options);
  ServerProcessOptions server;
  server.crc = load.crc;
  server.nfs4 = setup.nfs4 || setup.client4;
  server.busy_poll_us = load.busy_poll_us;
  server.loops = setup.server_loops;
  server.folder = setup.folder;
  return server;
}

// Whether it needs no server.
bool alone(const Figure& figure) {
  return !figure.is_load() && figure.kind != Figure::Kind::Idle &&
         figure.kind != Figure::Kind::Active;
}

// The figure that the goal of `figure` is relative to, if it is.
std::optional<Figure> goal_row_of(const Figure& figure) {
  if (figure.goal.of != Goal::Of::Row) return std::nullopt;
  for (Figure& each : all_figures())
    if (each.name == figure.goal.row) return std::move(each);
  return std::nullopt;
}

// One set-up's other ends.
struct Stage {
  Setup setup;
  ServerProcess server;
  RawPeer raw;
};

// A LoadGenerator, which stays for the figures of the same Stage.
class Loaded {
 public:
  bool at(const Stage& stage) const { return stage_ == &stage; }
  void make(const Stage& stage, const SuiteOptions& options) {
    close();
    load_ = std::make_unique<LoadGenerator>(load_options(stage.setup, options));
    stage_ = &stage;
  }
  Result<Ok, std::string> open() { return load_->open(stage_->server.url(stage_->setup.tcp)); }
  void close() {
    load_.reset();
    stage_ = nullptr;
  }
  Target target() const { return {*load_, stage_->server.pid()}; }

 private:
  std::unique_ptr<LoadGenerator> load_;
  const Stage* stage_ = nullptr;
};

class HomeSuite final : public Suite {
 public:
  HomeSuite(std::vector<Figure> figures, const SuiteOptions& options)
      : figures_(std::move(figures)), options_(options) {}

  Result<Ok, std::string> start() {
    if (options_.plots)
      if (auto begun = start(Setup{}); !begun) return begun;
    for (const Figure& figure : figures_) {
      if (alone(figure)) continue;
      if (auto begun = start(figure.setup); !begun) return begun;
      if (const std::optional<Figure> row = goal_row_of(figure))
        if (auto begun = start(row->setup); !begun) return begun;
    }
    return Ok{};
  }
  Result<Ok, std::string> start(const Setup& setup) {
    if (stage_of(setup) != nullptr) return Ok{};
    auto server = ServerProcess::start(server_options(setup, options_));
    if (!server) return Failure{server.error()};
    auto raw = RawPeer::start(load_options(setup, options_).busy_poll_us);
    if (!raw) return Failure{raw.error()};
    stages_.push_back({setup, *std::move(server), *std::move(raw)});
    return Ok{};
  }

  Rows run(const Progress& progress) override {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < figures_.size(); ++i) {
      progress(i, figures_.size(), figures_[i].name);
      if (Result<Ok, std::string> done = measure_one(figures_[i], rows); !done) {
        close();
        return Failure{done.error()};
      }
    }
    close();
    add_cpu_rows(rows);
    return rows;
  }

  std::vector<Row> references() override {
    if (stages_.empty()) return {};
    return measure_references(options_.sampling, stages_.front().raw);
  }

  Result<std::vector<NamedPlot>, std::string> plots() override {
    Stage& plain = *stage_of(Setup{});
    return measure_plots(
        plain.server, plain.raw, {options_.build, options_.sampling.seconds},
        [this](LoadGenerator* load) { now_running(load); }, [this] { return stopped(); });
  }

 private:
  Stage* stage_of(const Setup& setup) {
    const auto found = std::find_if(stages_.begin(), stages_.end(),
                                    [&](const Stage& stage) { return stage.setup == setup; });
    return found == stages_.end() ? nullptr : &*found;
  }
  void close() {
    now_running(nullptr);
    own_.close();
    goals_.close();
  }
  Result<Ok, std::string> measure_one(const Figure& figure, std::vector<Row>& rows) {
    Rows measured = figure.is_load() ? measure_load(figure) : measure_special(figure);
    if (!measured) return Failure{figure.name + ": " + measured.error()};
    rows.insert(rows.end(), measured->begin(), measured->end());
    return Ok{};
  }
  Rows measure_load(const Figure& figure) {
    Stage& stage = *stage_of(figure.setup);
    if (Result<Ok, std::string> opened = open_own(stage); !opened) return Failure{opened.error()};
    std::optional<GoalRow> goal_row;
    if (std::optional<Figure> row = goal_row_of(figure)) {
      auto target = target_of(*row, stage);
      if (!target) return Failure{target.error()};
      goal_row.emplace(GoalRow{*std::move(row), *target});
    }
    auto row = measure(figure, options_.sampling, own_.target(), &stage.raw,
                       goal_row ? &*goal_row : nullptr);
    if (!row) return Failure{row.error()};
    return std::vector<Row>{*std::move(row)};
  }
  Result<Ok, std::string> open_own(const Stage& stage) {
    if (own_.at(stage)) return Ok{};
    // One file of a server's is one LoadGenerator's.
    if (goals_.at(stage)) goals_.close();
    now_running(nullptr);
    own_.make(stage, options_);
    now_running(&own_.target().load);
    return own_.open();
  }
  // Of a goal's row, for a figure on `stage`.
  Result<Target, std::string> target_of(const Figure& row, const Stage& stage) {
    const Stage& other = *stage_of(row.setup);
    if (&other == &stage) return own_.target();
    if (!goals_.at(other)) {
      goals_.make(other, options_);
      if (Result<Ok, std::string> opened = goals_.open(); !opened) return Failure{opened.error()};
    }
    return goals_.target();
  }
  Rows measure_special(const Figure& figure) {
    close();
    if (stopped()) return Failure{std::string("interrupted")};
    if (alone(figure)) return measure_alone(figure, options_.sampling);
    const ServerProcess& server = stage_of(figure.setup)->server;
    if (figure.kind == Figure::Kind::Idle)
      return measure_idle(server, options_, [this] { return stopped(); });
    return measure_active(server, options_, [this](LoadGenerator* load) { now_running(load); });
  }

  const std::vector<Figure> figures_;
  const SuiteOptions options_;
  std::list<Stage> stages_;
  Loaded own_, goals_;
};

// What the figures of the plain set-up are measured with when there is one server for all.
struct Site {
  std::string url;
  std::optional<ServerProcess> server{};  // else it is elsewhere
  std::optional<Perftest> perftest{};

  pid_t pid() const { return server ? server->pid() : kNoPeer; }
};

class OneServerSuite final : public Suite {
 public:
  OneServerSuite(Site site, const std::vector<Figure>& figures, const SuiteOptions& options)
      : site_(std::move(site)), options_(options) {
    std::remove_copy_if(figures.begin(), figures.end(), std::back_inserter(figures_), needs_set_up);
  }

  Rows run(const Progress& progress) override {
    LoadGenerator load(load_options({}, options_));
    now_running(&load);
    Rows rows = measured(load, progress);
    now_running(nullptr);
    if (rows && options_.registration && !stopped()) add_registration(*rows);
    return rows;
  }
  std::vector<std::string> notes() override { return notes_; }

 private:
  Rows measured(LoadGenerator& load, const Progress& progress) {
    if (Result<Ok, std::string> opened = load.open(site_.url); !opened)
      return Failure{opened.error()};
    std::vector<Row> rows;
    for (Figure& figure : figures_) {
      progress(rows.size(), figures_.size(), figure.name);
      figure.goal = {};
      auto row = measure(figure, options_.sampling, {load, site_.pid()}, nullptr, nullptr);
      if (!row) return Failure{figure.name + ": " + row.error()};
      rows.push_back(*std::move(row));
      add_reference(figure, rows.back());
    }
    return rows;
  }
  // Of the device, what a call's own registration costs.
  void add_registration(std::vector<Row>& rows) {
    const auto measured = measure_registration(options_.sampling, options_.device_address);
    if (!measured) return notes_.push_back("no registration: " + measured.error());
    rows.insert(rows.end(), measured->begin(), measured->end());
    notes_.push_back(crossover(*measured));
  }
  void add_reference(const Figure& figure, Row& row) {
    if (!site_.perftest || !Perftest::compares_with(figure) || stopped()) return;
    auto reference = site_.perftest->measure(figure, options_.sampling, row.ours.value);
    if (reference) {
      row.reference = *std::move(reference);
      return;
    }
    notes_.push_back("no reference: " + reference.error());
    site_.perftest.reset();
  }

  Site site_;
  const SuiteOptions options_;
  std::vector<Figure> figures_;
  std::vector<std::string> notes_;
};

Result<std::unique_ptr<Suite>, std::string> at_device(const std::vector<Figure>& figures,
                                                      const SuiteOptions& options) {
  ServerProcessOptions wanted = server_options({}, options);
  wanted.device_address = options.device_address;
  auto server = ServerProcess::start(wanted);
  if (!server) return Failure{server.error()};
  Site site{server->url(false)};
  site.server.emplace(*std::move(server));
  site.perftest.emplace(options.device_address);
  return std::unique_ptr<Suite>(
      std::make_unique<OneServerSuite>(std::move(site), figures, options));
}

}  // namespace

bool needs_set_up(const Figure& figure) {
  return !figure.is_load() || figure.setup != Setup{};
}

void Suite::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  if (load_ != nullptr) load_->stop();
}

void Suite::now_running(LoadGenerator* load) {
  const std::lock_guard lock(mutex_);
  load_ = load;
  if (load_ != nullptr && stopped_) load_->stop();
}

bool Suite::stopped() {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

Result<std::unique_ptr<Suite>, std::string> Suite::at_home(std::vector<Figure> figures,
                                                           const SuiteOptions& options) {
  if (!options.device_address.empty()) return at_device(figures, options);
  auto suite = std::make_unique<HomeSuite>(std::move(figures), options);
  if (Result<Ok, std::string> started = suite->start(); !started) return Failure{started.error()};
  return std::unique_ptr<Suite>(std::move(suite));
}

std::unique_ptr<Suite> Suite::of(const std::string& url, const std::vector<Figure>& figures,
                                 const SuiteOptions& options) {
  return std::make_unique<OneServerSuite>(Site{url}, figures, options);
}

}  // namespace stag::bench
