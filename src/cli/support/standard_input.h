// Standard input as a stream of bytes.
#pragma once

#include "cli/support/command.h"

namespace stag::cli {

// Fills `buffer`, or as much of it as there is until the end; yields the number of bytes. An
// interruption ends it with an Error that is cancelled().
Task<Outcome<std::size_t>> read_standard_input(Run& run, MutableBytes buffer);

}  // namespace stag::cli
