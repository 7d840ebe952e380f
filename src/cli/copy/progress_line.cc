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
// Before that the rate says little.
constexpr double kLeastSeconds = 1;
constexpr double kLongestOutlook = 359'999;

// How long the rest will take, or that the server writes to its disk; empty: not known.
std::string outlook(const Progress& progress, double seconds) {
  if (progress.expected_bytes == 0) return "";
  // What is left after the last byte is to make the data durable, and names and attributes.
  if (progress.bytes >= progress.expected_bytes) return "  syncing";
  if (seconds < kLeastSeconds || progress.bytes == 0) return "";
  const double rate = static_cast<double>(progress.bytes) / seconds;
  const auto rest = static_cast<double>(progress.expected_bytes - progress.bytes);
  const auto left = static_cast<std::uint64_t>(std::min(rest / rate, kLongestOutlook));
  return fmt::format("  {:02}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60);
}

}  // namespace

std::string progress_text(const Progress& progress, double seconds) {
  const auto moved = static_cast<double>(progress.bytes);
  const double share = progress.expected_bytes == 0
                           ? 0
                           : std::min(1.0, moved / static_cast<double>(progress.expected_bytes));
  const auto filled = static_cast<std::size_t>(share * kBarWidth);
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  return fmt::format("[{}] {:3.0f}%  {} of {}  {}/s  {} files{}", bar, share * 100,
                     human_size(moved), human_size(static_cast<double>(progress.expected_bytes)),
                     human_size(moved / std::max(seconds, 0.001)), progress.files,
                     outlook(progress, seconds));
}

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
  write_error(fmt::format("\r{}\x1b[K", progress_text(progress_, seconds())));
  drawn_ = true;
  timer_ = loop_.after(kPeriod, [this] { draw(); });
}

}  // namespace stag::cli
