// The window of a terminal.
#pragma once

#include <cstddef>

namespace stag::cli {

// The size of a terminal, in characters.
struct WindowSize {
  std::size_t rows = 24, columns = 80;
};

// As it is now; the usual one where the terminal does not know.
WindowSize window_size(int terminal);

}  // namespace stag::cli
