#include "cli/copy/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "cli/support/format.h"
#include "cli/support/output.h"

namespace stag::cli {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(100);
constexpr std::size_t kBarWidth = 24;

}  // namespace

ProgressLine::ProgressLine(net::EpollLoop& loop, const Progress& progress)
    : loop_(loop), progress_(progress), begin_(loop.now()), shown_(isatty(STDERR_FILENO) == 1) {
  if (shown_) timer_ = loop_.after(kPeriod, [this] { draw(); });
}

ProgressLine::~ProgressLine() {
  clear();
}

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(loop_.now() - begin_).count();
}

void ProgressLine::clear() {
  if (drawn_) write_error("\r\x1b[K");
  drawn_ = false;
}

void ProgressLine::draw() {
  const auto moved = static_cast<double>(progress_.bytes);
  const double share = progress_.expected_bytes == 0
                           ? 0
                           : std::min(1.0, moved / static_cast<double>(progress_.expected_bytes));
  const auto filled = static_cast<std::size_t>(share * kBarWidth);
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  write_error(fmt::format("\r[{}] {:3.0f}%  {} of {}  {}/s  {} files\x1b[K", bar, share * 100,
                          human_size(moved),
                          human_size(static_cast<double>(progress_.expected_bytes)),
                          human_size(moved / std::max(seconds(), 0.001)), progress_.files));
  drawn_ = true;
  timer_ = loop_.after(kPeriod, [this] { draw(); });
}

}  // namespace stag::cli
