#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "base/pause.h"
#include "cli/commands.h"
#include "cli/commands/ask.h"
#include "cli/commands/top_rates.h"
#include "cli/commands/top_screen.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

Json rates_json(const TopRates& rates) {
  Json all, listed = Json::array(), called = Json::array();
  for (const TopRates::Client& each : rates.clients) {
    Json row;
    row.set("address", each.address)
        .set("connections", each.connections)
        .set("calls_per_second", each.calls)
        .set("errors_per_second", each.errors)
        .set("bytes_in_per_second", each.bytes_in)
        .set("bytes_out_per_second", each.bytes_out);
    listed.add(std::move(row));
  }
  for (const TopRates::Procedure& each : rates.procedures) {
    Json row;
    row.set("procedure", each.name)
        .set("calls_per_second", each.calls)
        .set("mean_microseconds", each.microseconds);
    called.add(std::move(row));
  }
  all.set("seconds", rates.seconds).set("calls_per_second", rates.calls);
  all.set("clients", std::move(listed)).set("procedures", std::move(called));
  return all;
}

class Top final : public Command {
 public:
  About about() const override {
    return {"top", "who asks a running server for what, as it happens",
            "  stag top\n"
            "  stag top --once --json\n",
            "Rates of each client and procedure since the last look; Ctrl-C ends it. The time of\n"
            "an operation of NFSv4 is shown for those that work on a filehandle. It is asked at\n"
            "the server's control socket, as root or as the user of the server.\n"};
  }
  void declare(Arguments& arguments) override {
    arguments.number("--interval", interval_, 1, 3600, "seconds between two looks");
    arguments.flag("--once", once_, "look for one interval, and end");
    arguments.flag("--json", json_, "an object per look, on a line");
    server_.declare(arguments);
  }
  Exit run() override {
    return on_loop([this](Run& run) { return work(run); });
  }

 private:
  Task<Exit> work(Run& run);
  Task<Result<TopSample, std::string>> look(Run& run);
  void show(const TopSample& before, const TopSample& now) const;

  AskedServer server_;
  std::uint32_t interval_ = 1;
  bool once_ = false;
  bool json_ = false;
};

Task<Result<TopSample, std::string>> Top::look(Run& run) {
  const ServerListing status = co_await server_.list(run, "status");
  if (!status.error.empty()) co_return Failure{status.error};
  const ServerListing connections = co_await server_.list(run, "connections");
  if (!connections.error.empty()) co_return Failure{connections.error};
  const ServerListing procedures = co_await server_.list(run, "procedures");
  if (!procedures.error.empty()) co_return Failure{procedures.error};
  TopSample sample;
  sample.at = run.loop.now();
  for (const JsonObject& row : status.rows) {
    sample.uptime = number_in(row, "uptime");
    sample.calls = number_in(row, "calls");
  }
  for (const JsonObject& row : connections.rows)
    sample.connections[{text_in(row, "address"), number_in(row, "port"),
                        number_in(row, "number")}] = {
        number_in(row, "calls"), number_in(row, "errors"), number_in(row, "bytes_in"),
        number_in(row, "bytes_out")};
  for (const JsonObject& row : procedures.rows) {
    const std::string name = fmt::format("{} {} {}", text_in(row, "program"),
                                         number_in(row, "version"), text_in(row, "procedure"));
    sample.procedures[name] = {number_in(row, "calls"), number_in(row, "timed"),
                               number_in(row, "microseconds")};
  }
  co_return sample;
}

void Top::show(const TopSample& before, const TopSample& now) const {
  const TopRates rates = rates_between(before, now);
  if (json_) {
    put("{}\n", rates_json(rates).line());
  } else if (!once_ && isatty(STDOUT_FILENO) == 1) {
    // To the upper left corner, and clear from there.
    write_out("\033[H\033[J" + top_text(rates, now.uptime, window_size(STDOUT_FILENO)));
  } else {
    write_out(top_text(rates, now.uptime, kNoWindow));
  }
  flush_out();
}

Task<Exit> Top::work(Run& run) {
  std::optional<TopSample> before;
  for (;;) {
    Result<TopSample, std::string> now = co_await look(run);
    if (run.cancel.cancelled()) break;
    if (!now) co_return failed(now.error());
    if (before) show(*before, *now);
    if (before && (once_ || output_trouble())) break;
    before = *std::move(now);
    co_await pause(run.loop, std::chrono::seconds(interval_), run.cancel);
    if (run.cancel.cancelled()) break;
  }
  // Otherwise it goes on until the user ends it.
  if (once_ && run.cancel.cancelled()) co_return failed("interrupted");
  co_return Exit::Done;
}

}  // namespace

std::unique_ptr<Command> make_top() {
  return std::make_unique<Top>();
}

}  // namespace stag::cli
