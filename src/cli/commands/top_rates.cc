#include "cli/commands/top_rates.h"

#include <algorithm>
#include <chrono>
#include <functional>

namespace stag::cli {
namespace {

// A server that was started between the looks counts from zero.
double added(std::uint64_t now, std::uint64_t before) {
  return now > before ? static_cast<double>(now - before) : 0;
}

std::vector<TopRates::Client> client_rates(const TopSample& before, const TopSample& now,
                                           double seconds) {
  std::map<std::string, TopRates::Client> clients;
  for (const auto& [key, connection] : now.connections) {
    const auto found = before.connections.find(key);
    const auto old = found == before.connections.end() ? TopSample::Connection{} : found->second;
    TopRates::Client& client = clients[key.address];
    client.address = key.address;
    ++client.connections;
    client.calls += added(connection.calls, old.calls) / seconds;
    client.errors += added(connection.errors, old.errors) / seconds;
    client.bytes_in += added(connection.bytes_in, old.bytes_in) / seconds;
    client.bytes_out += added(connection.bytes_out, old.bytes_out) / seconds;
  }
  std::vector<TopRates::Client> rates;
  for (auto& [address, client] : clients) rates.push_back(std::move(client));
  std::ranges::stable_sort(rates, std::greater<>(), &TopRates::Client::calls);
  return rates;
}

std::vector<TopRates::Procedure> procedure_rates(const TopSample& before, const TopSample& now,
                                                 double seconds) {
  std::vector<TopRates::Procedure> rates;
  for (const auto& [name, procedure] : now.procedures) {
    const auto found = before.procedures.find(name);
    const auto old = found == before.procedures.end() ? TopSample::Procedure{} : found->second;
    const double calls = added(procedure.calls, old.calls);
    const double timed = added(procedure.timed, old.timed);
    if (calls == 0) continue;
    const double time = added(procedure.microseconds, old.microseconds);
    rates.push_back({name, calls / seconds, timed == 0 ? 0 : time / timed});
  }
  std::ranges::stable_sort(rates, std::greater<>(), &TopRates::Procedure::calls);
  return rates;
}

}  // namespace

TopRates rates_between(const TopSample& before, const TopSample& now) {
  TopRates rates;
  rates.seconds = std::max(std::chrono::duration<double>(now.at - before.at).count(), 0.001);
  rates.calls = added(now.calls, before.calls) / rates.seconds;
  rates.clients = client_rates(before, now, rates.seconds);
  rates.procedures = procedure_rates(before, now, rates.seconds);
  return rates;
}

}  // namespace stag::cli
