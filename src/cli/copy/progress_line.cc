#include "cli/copy/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "cli/support/format.h"
#include "cli/support/output.h"
#include "cli/support/window.h"

namespace stag::cli {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(100);
constexpr std::size_t kBarWidth = 24;
// Before that the rate says little.
constexpr double kLeastSeconds = 1;
constexpr double kLongestOutlook = 359'999;
// A server on a long way, or with a slow disk, is silent for less.
constexpr double kLongestStill = 3;

// A total that is known, and more than nothing.
bool has_total(const Progress& progress) {
  return !progress.total_unknown && progress.unlisted == 0 && progress.expected_bytes != 0;
}

// How long the rest will take, that the server writes to its disk, or that nothing comes; empty:
// not known.
std::string outlook(const Progress& progress, double seconds, double still) {
  // What is left after the last byte is to make the data durable, and names and attributes.
  if (has_total(progress) && progress.bytes >= progress.expected_bytes) return "syncing";
  // Standard input may be what nothing comes from.
  if (still >= kLongestStill) return progress.total_unknown ? "waiting" : "waiting for the server";
  if (!has_total(progress)) return "";
  if (seconds < kLeastSeconds || progress.bytes == 0) return "";
  const double rate = static_cast<double>(progress.bytes) / seconds;
  const auto rest = static_cast<double>(progress.expected_bytes - progress.bytes);
  // Rounded up: as long as something is left, that takes time.
  const auto left = static_cast<std::uint64_t>(std::ceil(std::min(rest / rate, kLongestOutlook)));
  return fmt::format("{:02}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60);
}

// A piece of the line; of several that have no room together the one of the lowest rank goes first.
struct Part {
  std::string text;
  int rank;
};

std::vector<Part> parts_of(const Progress& progress, double seconds, double still) {
  const auto moved = static_cast<double>(progress.bytes);
  const auto total = static_cast<double>(progress.expected_bytes);
  std::vector<Part> parts;
  if (has_total(progress)) {
    const double share = std::min(1.0, moved / total);
    const auto filled = static_cast<std::size_t>(share * kBarWidth);
    parts.push_back(
        {'[' + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + ']', 0});
    parts.push_back({fmt::format("{:2.0f}%", share * 100), 5});
    parts.push_back({fmt::format("{} of {}", human_size(moved), human_size(total)), 3});
  } else {
    parts.push_back({human_size(moved), 5});
  }
  parts.push_back({human_size(moved / std::max(seconds, 0.001)) + "/s", 2});
  parts.push_back({fmt::format("{} files", progress.files), 1});
  if (std::string rest = outlook(progress, seconds, still); !rest.empty())
    parts.push_back({std::move(rest), 4});
  return parts;
}

std::string joined(const std::vector<Part>& parts) {
  std::string text;
  for (const Part& part : parts) text += (text.empty() ? "" : "  ") + part.text;
  return text;
}

}  // namespace

std::string progress_text(const Progress& progress, double seconds, std::size_t columns,
                          double still) {
  std::vector<Part> parts = parts_of(progress, seconds, still);
  // A terminal whose last column is filled may begin the next line.
  while (parts.size() > 1 && joined(parts).size() >= columns)
    parts.erase(std::ranges::min_element(parts, {}, &Part::rank));
  return joined(parts).substr(0, std::max<std::size_t>(columns, 1) - 1);
}

ProgressLine::ProgressLine(net::EpollLoop& loop, const Progress& progress)
    : loop_(loop),
      progress_(progress),
      begin_(loop.now()),
      moved_at_(begin_),
      shown_(isatty(STDERR_FILENO) == 1) {
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

double ProgressLine::still() {
  const std::uint64_t done = progress_.files + progress_.directories + progress_.symlinks +
                             progress_.specials + progress_.skipped + progress_.adjusted +
                             progress_.removed + progress_.bytes;
  if (std::exchange(done_, done) != done) moved_at_ = loop_.now();
  return std::chrono::duration<double>(loop_.now() - moved_at_).count();
}

void ProgressLine::draw() {
  const std::size_t columns = window_size(STDERR_FILENO).columns;
  const std::string text = progress_text(progress_, seconds(), columns, still());
  // The copy must not wait for a terminal that is stopped.
  drawn_ = write_error_at_once(fmt::format("\r{}\x1b[K", text)) || drawn_;
  timer_ = loop_.after(kPeriod, [this] { draw(); });
}

}  // namespace stag::cli
