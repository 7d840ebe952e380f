#include "bench/raw/perftest.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>

namespace stag::bench {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// The messages of a NULL call.
constexpr std::size_t kSmall = 128;
// What it takes, at least (for -n), and at most in one sample.
constexpr std::uint64_t kFewest = 5, kMost = 100'000;
constexpr auto kStartLimit = 10s, kRunLimit = 60s;
constexpr auto kRetryAfter = 50ms;
constexpr unsigned kServers = 3;
// Of its table: MB are those of 2^20 bytes.
constexpr double kMegabyte = 1 << 20;

std::string program_for(const Figure& figure) {
  if (figure.kind == Figure::Kind::RoundTrip) return "ib_send_lat";
  // Data of a READ comes by the server's RDMA Writes, that of a WRITE by its RDMA Reads.
  return figure.operation == Operation::Read ? "ib_write_bw" : "ib_read_bw";
}

// What an operation takes in seconds where the figure has this value.
double seconds_of(const Figure& figure, double value) {
  if (value <= 0) return 1;
  if (figure.kind == Figure::Kind::RoundTrip) return value / 1e6;
  return static_cast<double>(figure.bytes) / (value * 1e9);
}

// Where it listens: another for each process, so that several do not meet.
std::string port() {
  constexpr int kFirst = 20'000, kPorts = 10'000;
  return std::to_string(kFirst + getpid() % kPorts);
}

// Without the spaces around it.
std::string last_line(std::string text) {
  text.erase(text.find_last_not_of(" \n") + 1);
  text.erase(0, text.find_last_of('\n') + 1);
  return text;
}

}  // namespace

bool Perftest::compares_with(const Figure& figure) {
  return figure.name == "null_rtt" || figure.kind == Figure::Kind::Bandwidth;
}

Result<Measured, std::string> Perftest::measure(const Figure& figure, const Sampling& sampling,
                                                double ours) const {
  const bool latency = figure.kind == Figure::Kind::RoundTrip;
  const auto wanted =
      static_cast<std::uint64_t>(std::llround(sampling.seconds / seconds_of(figure, ours)));
  // Connected by RDMA-CM, so that the address chooses the device.
  const std::vector<std::string> words{program_for(figure),
                                       "-R",
                                       "-F",
                                       "-s",
                                       std::to_string(latency ? kSmall : figure.bytes),
                                       "-n",
                                       std::to_string(std::clamp(wanted, kFewest, kMost)),
                                       "-p",
                                       port(),
                                       latency ? "--output=latency" : "--output=bandwidth"};
  std::vector<double> values;
  for (unsigned i = 0; i < sampling.samples; ++i) {
    const auto found = run(words);
    if (!found) return Failure{found.error()};
    // It tells half a round trip.
    values.push_back(latency ? *found * 2 : *found * kMegabyte / 1e9);
  }
  return Measured::of(values);
}

Result<double, std::string> Perftest::run(const std::vector<std::string>& words) const {
  Result<double, std::string> figure = Failure{std::string()};
  // A server that a client has reached too early, or left, may be of no use to the next.
  for (unsigned i = 0; i < kServers && !figure; ++i) {
    ChildProcess server(words, nullptr, ChildProcess::Errors::AmongOutput);
    if (!server.started())
      return Failure{"cannot run " + words.front() + " (on Debian it is in the package perftest)"};
    figure = ask(server, words);
  }
  return figure;
}

Result<double, std::string> Perftest::ask(ChildProcess& server,
                                          std::vector<std::string> words) const {
  words.push_back(address_);
  std::string said;
  // Until the server listens.
  for (const auto end = Clock::now() + kStartLimit; server.runs() && Clock::now() < end;
       std::this_thread::sleep_for(kRetryAfter)) {
    ChildProcess client(words, nullptr, ChildProcess::Errors::AmongOutput);
    const auto text = client.read_all(kRunLimit);
    if (!text) return Failure{words.front() + " did not end within a minute"};
    said = last_line(*text);
    char* behind = nullptr;
    const double value = std::strtod(said.c_str(), &behind);
    if (client.wait() && behind != said.c_str() && value > 0) return value;
  }
  return Failure{words.front() + " gave no figure" + (said.empty() ? "" : ": " + said)};
}

}  // namespace stag::bench
