// What `stag top` makes of two looks at a running server: rates of clients and procedures. Each
// connection is compared with itself, so that one which ends takes nothing away from others.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/loop.h"

namespace stag::cli {

// Counts of a server at some time.
struct TopSample {
  TimePoint at{};
  std::uint64_t uptime = 0;  // seconds
  std::uint64_t calls = 0;   // that ended since the start, whichever client made them
  struct ConnectionKey {
    std::string address;
    std::uint64_t port = 0;
    std::uint64_t number = 0;  // no other connection of the server has it; 0: it does not say
    auto operator<=>(const ConnectionKey&) const = default;
  };
  struct Connection {
    std::uint64_t calls = 0, errors = 0, bytes_in = 0, bytes_out = 0;
  };
  std::map<ConnectionKey, Connection> connections;  // that are open
  struct Procedure {
    std::uint64_t calls = 0, timed = 0, microseconds = 0;
  };
  std::map<std::string, Procedure> procedures;  // "nfs 3 READ"
};

struct TopRates {
  struct Client {
    std::string address;
    std::uint64_t connections = 0;
    double calls = 0, errors = 0, bytes_in = 0, bytes_out = 0;  // a second
  };
  struct Procedure {
    std::string name;
    double calls = 0;         // a second
    double microseconds = 0;  // of one, as a mean
  };
  double seconds = 0;                 // between the looks
  double calls = 0;                   // a second, those of connections that have ended among them
  std::vector<Client> clients;        // that have connections; the busiest first
  std::vector<Procedure> procedures;  // that were called; the most frequent first
};

TopRates rates_between(const TopSample& before, const TopSample& now);

}  // namespace stag::cli
