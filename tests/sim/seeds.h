// Runs of a seeded test: many seeds, or the one that failed.
//   <program>             STAG_SIM_SEEDS seeds (default 1000), beginning with 1
//   <program> --seed N    that one alone
#pragma once

#include <cstdint>
#include <functional>

#include "fabric/sim/faults.h"
#include "fabric/sim/random.h"

namespace stag::testing {

// Reads the command line and the environment, and ends the process where they name no number of
// seeds above 0; called by main().
void choose_seeds(int argc, char** argv);

// Calls `run` with one seed after the other, until one fails; that one is printed with the way to
// run it again, also where it ends the process.
void for_each_seed(const std::function<void(std::uint64_t seed)>& run);

// What goes wrong in a run: a mix of everything, from nothing at all to a network where no
// connection lives long.
fabric::Faults random_faults(fabric::Random& random);

}  // namespace stag::testing
