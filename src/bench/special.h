// The figures that are no single exchange next to a raw one: very many connections, the program
// itself, the simulated fabric.
#pragma once

#include <functional>

#include "bench/measure.h"
#include "bench/worlds/server_process.h"

namespace stag::bench {

using Rows = Result<std::vector<Row>, std::string>;

struct SpecialOptions {
  Sampling sampling{};
  // Connections of the figures of these names.
  unsigned idle = 10'000;
  unsigned active = 1000;
};

// Those of `server`. `now_running` is told of the LoadGenerator that is at work, and null when it
// is not. Fail with a sentence.
Rows measure_idle(const ServerProcess& server, const SpecialOptions& options,
                  const std::function<bool()>& stopped);
Rows measure_active(const ServerProcess& server, const SpecialOptions& options,
                    const std::function<void(LoadGenerator*)>& now_running);
// Those without a server.
Rows measure_alone(const Figure& figure, const Sampling& sampling);

}  // namespace stag::bench
