#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/pause.h"
#include "cli/commands.h"
#include "cli/commands/ask.h"
#include "cli/support/format.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

// Counts of the server at some time.
struct Sample {
  TimePoint at{};
  std::uint64_t uptime = 0;  // seconds
  struct Client {
    std::uint64_t connections = 0, calls = 0, errors = 0, bytes_in = 0, bytes_out = 0;
  };
  std::map<std::string, Client> clients;  // by address
  struct Procedure {
    std::uint64_t calls = 0, timed = 0, microseconds = 0;
  };
  std::map<std::string, Procedure> procedures;  // "nfs 3 READ"
};

// What a connection counted that has ended meanwhile is lost: less than before is none.
std::uint64_t added(std::uint64_t now, std::uint64_t before) {
  return now > before ? now - before : 0;
}

struct ClientRate {
  std::string address;
  std::uint64_t connections = 0;
  double calls = 0, errors = 0, bytes_in = 0, bytes_out = 0;  // a second
};
struct ProcedureRate {
  std::string name;
  double calls = 0;         // a second
  double microseconds = 0;  // of one, as a mean
};

std::vector<ClientRate> client_rates(const Sample& before, const Sample& now, double seconds) {
  std::vector<ClientRate> rates;
  for (const auto& [address, client] : now.clients) {
    const auto found = before.clients.find(address);
    const Sample::Client old = found == before.clients.end() ? Sample::Client{} : found->second;
    const auto rate = [&client = client, &old, seconds](std::uint64_t Sample::Client::*count) {
      return static_cast<double>(added(client.*count, old.*count)) / seconds;
    };
    rates.push_back({address, client.connections, rate(&Sample::Client::calls),
                     rate(&Sample::Client::errors), rate(&Sample::Client::bytes_in),
                     rate(&Sample::Client::bytes_out)});
  }
  std::ranges::stable_sort(rates, std::greater<>(), &ClientRate::calls);
  return rates;
}

std::vector<ProcedureRate> procedure_rates(const Sample& before, const Sample& now,
                                           double seconds) {
  std::vector<ProcedureRate> rates;
  for (const auto& [name, procedure] : now.procedures) {
    const auto found = before.procedures.find(name);
    const auto old = found == before.procedures.end() ? Sample::Procedure{} : found->second;
    const std::uint64_t calls = added(procedure.calls, old.calls);
    const std::uint64_t timed = added(procedure.timed, old.timed);
    if (calls == 0) continue;
    const auto time = static_cast<double>(added(procedure.microseconds, old.microseconds));
    rates.push_back({name, static_cast<double>(calls) / seconds,
                     timed == 0 ? 0 : time / static_cast<double>(timed)});
  }
  std::ranges::stable_sort(rates, std::greater<>(), &ProcedureRate::calls);
  return rates;
}

std::string rows_text(const Sample& now, const std::vector<ClientRate>& clients,
                      const std::vector<ProcedureRate>& procedures) {
  double calls = 0;
  for (const ClientRate& each : clients) calls += each.calls;
  std::string text = fmt::format("{:.0f} calls/s of {} clients, server up {} s\n\n", calls,
                                 clients.size(), now.uptime) +
                     fmt::format("{:<40} {:>5} {:>10} {:>8} {:>12} {:>12}\n", "CLIENT", "CONNS",
                                 "CALLS/s", "ERRORS/s", "IN/s", "OUT/s");
  for (const ClientRate& each : clients)
    text += fmt::format("{:<40} {:>5} {:>10.1f} {:>8.1f} {:>12} {:>12}\n", each.address,
                        each.connections, each.calls, each.errors, human_size(each.bytes_in),
                        human_size(each.bytes_out));
  text += fmt::format("\n{:<40} {:>16} {:>12}\n", "PROCEDURE", "CALLS/s", "MEAN us");
  for (const ProcedureRate& each : procedures)
    text += fmt::format("{:<40} {:>16.1f} {:>12.1f}\n", each.name, each.calls, each.microseconds);
  return text;
}

Json rates_json(double seconds, const std::vector<ClientRate>& clients,
                const std::vector<ProcedureRate>& procedures) {
  Json all, listed = Json::array(), called = Json::array();
  for (const ClientRate& each : clients) {
    Json row;
    row.set("address", each.address)
        .set("connections", each.connections)
        .set("calls_per_second", each.calls)
        .set("errors_per_second", each.errors)
        .set("bytes_in_per_second", each.bytes_in)
        .set("bytes_out_per_second", each.bytes_out);
    listed.add(std::move(row));
  }
  for (const ProcedureRate& each : procedures) {
    Json row;
    row.set("procedure", each.name)
        .set("calls_per_second", each.calls)
        .set("mean_microseconds", each.microseconds);
    called.add(std::move(row));
  }
  all.set("seconds", seconds).set("clients", std::move(listed));
  all.set("procedures", std::move(called));
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
  Task<Result<Sample, std::string>> look(Run& run);
  void show(const Sample& before, const Sample& now) const;

  AskedServer server_;
  std::uint32_t interval_ = 1;
  bool once_ = false;
  bool json_ = false;
};

Task<Result<Sample, std::string>> Top::look(Run& run) {
  const ServerListing status = co_await server_.list(run, "status");
  if (!status.error.empty()) co_return Failure{status.error};
  const ServerListing connections = co_await server_.list(run, "connections");
  if (!connections.error.empty()) co_return Failure{connections.error};
  const ServerListing procedures = co_await server_.list(run, "procedures");
  if (!procedures.error.empty()) co_return Failure{procedures.error};
  Sample sample;
  sample.at = run.loop.now();
  for (const JsonObject& row : status.rows) sample.uptime = number_in(row, "uptime");
  for (const JsonObject& row : connections.rows) {
    Sample::Client& client = sample.clients[text_in(row, "address")];
    ++client.connections;
    client.calls += number_in(row, "calls");
    client.errors += number_in(row, "errors");
    client.bytes_in += number_in(row, "bytes_in");
    client.bytes_out += number_in(row, "bytes_out");
  }
  for (const JsonObject& row : procedures.rows) {
    const std::string name = fmt::format("{} {} {}", text_in(row, "program"),
                                         number_in(row, "version"), text_in(row, "procedure"));
    sample.procedures[name] = {number_in(row, "calls"), number_in(row, "timed"),
                               number_in(row, "microseconds")};
  }
  co_return sample;
}

void Top::show(const Sample& before, const Sample& now) const {
  const double seconds = std::max(std::chrono::duration<double>(now.at - before.at).count(), 0.001);
  const auto clients = client_rates(before, now, seconds);
  const auto procedures = procedure_rates(before, now, seconds);
  if (json_) {
    put("{}\n", rates_json(seconds, clients, procedures).line());
  } else {
    // To the upper left corner, and clear from there.
    if (!once_ && isatty(STDOUT_FILENO) == 1) write_out("\033[H\033[J");
    write_out(rows_text(now, clients, procedures));
  }
  flush_out();
}

Task<Exit> Top::work(Run& run) {
  std::optional<Sample> before;
  for (;;) {
    Result<Sample, std::string> now = co_await look(run);
    if (run.cancel.cancelled()) break;
    if (!now) co_return failed(now.error());
    if (before) show(*before, *now);
    if (before && (once_ || output_trouble())) break;
    before = *std::move(now);
    co_await pause(run.loop, std::chrono::seconds(interval_), run.cancel);
    if (run.cancel.cancelled()) break;
  }
  // Else it goes on until somebody ends it.
  if (once_ && run.cancel.cancelled()) co_return failed("interrupted");
  co_return Exit::Done;
}

}  // namespace

std::unique_ptr<Command> make_top() {
  return std::make_unique<Top>();
}

}  // namespace stag::cli
