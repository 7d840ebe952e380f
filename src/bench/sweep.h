// The measurements that plots are made of: one thing varied, the rest as in the rows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/load/load.h"
#include "bench/raw/raw_peer.h"
#include "bench/report/plot.h"
#include "bench/worlds/server_process.h"

namespace stag::bench {

struct NamedPlot {
  std::string file;  // without its folder
  Plot plot;
};

struct PlotOptions {
  std::string build;   // of this program, as captions name it: "0.1.0 (1ecb70cc0123)"
  double seconds = 1;  // of a sample
};

// Throughput by block size, latency by depth, and rate by connections, of RPC-over-RDMA on software
// iWARP next to raw TCP; each point is the median of three samples. `now_running`: see special.h.
// Fails with a sentence, and soon once `stopped` says so.
Result<std::vector<NamedPlot>, std::string> measure_plots(
    const ServerProcess& server, RawPeer& raw, const PlotOptions& options,
    const std::function<void(LoadGenerator*)>& now_running, const std::function<bool()>& stopped);

}  // namespace stag::bench
