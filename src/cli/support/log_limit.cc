#include "cli/support/log_limit.h"

namespace stag::cli {

bool LogLimit::admit(Reason reason, TimePoint now) {
  Kind& kind = kinds_[static_cast<std::size_t>(reason)];
  if (kind.lines == 0 || now - kind.since >= kWindow) {
    kind.since = now;
    kind.lines = 0;
  }
  if (kind.lines < kLines) {
    ++kind.lines;
    return true;
  }
  if (kind.left_out++ == 0) ++owing_;
  return false;
}

}  // namespace stag::cli
