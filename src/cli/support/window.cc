#include "cli/support/window.h"

#include <sys/ioctl.h>

namespace stag::cli {

WindowSize window_size(int terminal) {
  winsize size{};
  if (::ioctl(terminal, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {};
  return {size.ws_row, size.ws_col};
}

}  // namespace stag::cli
