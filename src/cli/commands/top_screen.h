// What `stag top` shows: a sum, and a table each of clients and procedures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/commands/top_rates.h"
#include "cli/support/window.h"

namespace stag::cli {

// Where nothing is cut off.
inline constexpr WindowSize kNoWindow{~std::size_t{0}, ~std::size_t{0}};

// What has room in the window, with the cursor below. Each table has half of the rows, and those
// that the other one does not need; of the rest it says how many there are.
std::string top_text(const TopRates& rates, std::uint64_t uptime, WindowSize window);

}  // namespace stag::cli
