#include "cli/copy/progress.h"

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

Progress::Progress(net::EpollLoop& loop, const Tally& tally)
    : loop_(loop), tally_(tally), begin_(loop.now()), shown_(isatty(STDERR_FILENO) == 1) {
  if (shown_) timer_ = loop_.after(kPeriod, [this] { draw(); });
}

Progress::~Progress() {
  clear();
}

double Progress::seconds() const {
  return std::chrono::duration<double>(loop_.now() - begin_).count();
}

void Progress::clear() {
  if (drawn_) write_error("\r\x1b[K");
  drawn_ = false;
}

void Progress::draw() {
  const auto moved = static_cast<double>(tally_.bytes);
  const double share = tally_.expected_bytes == 0
                           ? 0
                           : std::min(1.0, moved / static_cast<double>(tally_.expected_bytes));
  const auto filled = static_cast<std::size_t>(share * kBarWidth);
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  write_error(fmt::format("\r[{}] {:3.0f}%  {} of {}  {}/s  {} files\x1b[K", bar, share * 100,
                          human_size(moved), human_size(static_cast<double>(tally_.expected_bytes)),
                          human_size(moved / std::max(seconds(), 0.001)), tally_.files));
  drawn_ = true;
  timer_ = loop_.after(kPeriod, [this] { draw(); });
}

}  // namespace stag::cli
