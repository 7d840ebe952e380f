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
  write_error(
      fmt::format("\r[{}] {:3.0f}%  {} of {}  {}/s  {} files{}\x1b[K", bar, share * 100,
                  human_size(moved), human_size(static_cast<double>(progress_.expected_bytes)),
                  human_size(moved / std::max(seconds(), 0.001)), progress_.files, outlook()));
  drawn_ = true;
  timer_ = loop_.after(kPeriod, [this] { draw(); });
}

std::string ProgressLine::outlook() const {
  if (progress_.expected_bytes == 0) return "";
  // What is left after the last byte is to make the data durable, and names and attributes.
  if (progress_.bytes >= progress_.expected_bytes) return "  syncing";
  if (seconds() < kLeastSeconds || progress_.bytes == 0) return "";
  const double rate = static_cast<double>(progress_.bytes) / seconds();
  const auto rest = static_cast<double>(progress_.expected_bytes - progress_.bytes);
  const auto left = static_cast<std::uint64_t>(std::min(rest / rate, kLongestOutlook));
  return fmt::format("  {:02}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60);
}

}  // namespace stag::cli
