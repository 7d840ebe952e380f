// One figure of a LoadGenerator, next to its raw reference where there is one.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "bench/load/load.h"
#include "bench/raw/raw_peer.h"
#include "bench/report/row.h"

namespace stag::bench {

struct Sampling {
  unsigned samples = 5;   // of each figure
  double seconds = 0.35;  // of each sample
};

// What a figure's operations go to. `server`: the process whose CPU time counts together with this
// one's, or kNoPeer when the server is elsewhere.
struct Target {
  LoadGenerator& load;
  pid_t server = kNoPeer;
};

// The figure that another's goal is relative to.
struct GoalRow {
  Figure figure;
  Target target;
};

// Measures Stag, the raw reference and the goal's row in turn after a warm-up, so that drifts of
// the machine's speed affect all; then takes a shorter sample of the first two with the kernel's
// counters. `raw` null: no reference; `goal_row` null: none of its own. Fails with a sentence.
Result<Row, std::string> measure(const Figure& figure, const Sampling& sampling, Target target,
                                 RawPeer* raw, const GoalRow* goal_row);

using SampleSource = std::function<Sample(double seconds)>;
// Into `measured`, what the kernel counts of this process and `peer`, which run this program, in a
// sample of its own; `seconds` is the length of those before it.
void count_ours(const SampleSource& side, double seconds, pid_t peer, Measured& measured);

// The raw references that no row stands next to: memcpy, and the stream and exchanges by
// themselves.
std::vector<Row> measure_references(const Sampling& sampling, RawPeer& raw);

}  // namespace stag::bench
