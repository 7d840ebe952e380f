// The figures of `stag bench` by name, each with its set-up and its goal (docs/performance.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/load/load.h"

namespace stag::bench {

// How client and server are set up: one figure is measured in one of these.
struct Setup {
  std::string_view name;  // before the figure's own
  bool crc = false;
  bool nfs4 = false;       // NFS version 4.1 instead of 3, in one session on the same connection
  bool client4 = false;    // NFS version 4.2 by the client library instead of 3
  bool tcp = false;        // RPC on TCP instead of RPC-over-RDMA on software iWARP
  bool poll = false;       // both ends poll for events before they block
  bool folder = false;     // the server's store is a folder on tmpfs instead of memory
  bool raw_fpdus = false;  // the raw stream has the shape of ours (raw/fpdu_blocks.h)
  unsigned server_loops = 1;
  unsigned client_loops = 1;
  unsigned connections = 1;

  friend bool operator==(const Setup&, const Setup&) = default;
};

// The goal of a figure: for its own value, or for its ratio to the raw reference or to another row.
struct Goal {
  enum class Of : std::uint8_t { Nothing, Value, Reference, Row };
  Of of = Of::Nothing;
  bool at_most = false;  // else at least
  double bound = 0;
  std::string row{};
};

struct Figure {
  enum class Kind : std::uint8_t {
    RoundTrip,  // microseconds
    Rate,       // calls/s
    Bandwidth,  // GB/s
    Simulated,  // microseconds of CPU time per call, client and server on the simulated fabric
    Idle,       // many connections that do nothing: several rows
    Active,     // many connections that all work: several rows
    Start,      // milliseconds from the start of `stag serve` to its first answer
    Cat,        // milliseconds of `stag cat` of a small file
  };
  std::string name;
  Kind kind;
  Operation operation = Operation::Null;
  std::size_t bytes = 0;
  unsigned depth = 1;  // operations in flight on each connection
  Setup setup{};
  Goal goal{};
  bool usual = false;  // measured when nothing is chosen

  double value_of(const Sample& sample) const;
  std::string_view unit() const;
  // Whether it is a LoadGenerator's next to a raw reference, which also works against any server.
  bool is_load() const;
};

// All, those of the same set-up one after the other.
std::vector<Figure> all_figures();
// Those that match one of `patterns` ('*' stands for anything); the usual ones, or with `full` all,
// when there are none. A pattern that matches no figure: a sentence that tells which there are.
Result<std::vector<Figure>, std::string> choose_figures(const std::vector<std::string>& patterns,
                                                        bool full);

}  // namespace stag::bench
