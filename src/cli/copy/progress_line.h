// ProgressLine: one line on a terminal that shows the progress of a copy; no output if there is no
// terminal.
#pragma once

#include <cstddef>
#include <string>

#include "cli/copy/copy_endpoint.h"

namespace stag::cli {

// What the line says `seconds` after the beginning, in fewer than `columns` characters: a bar,
// bytes, their rate, files, and how long the rest will take, where that is known, or that the
// server writes to its disk, or is waited for, because nothing has changed for `still` seconds. Of
// that the least important is left out where there is no room.
std::string progress_text(const Progress& progress, double seconds, std::size_t columns,
                          double still = 0);

class ProgressLine {
 public:
  // Drawn on standard error, if that is a terminal, and within its window, whose size may
  // change. Both outlive the ProgressLine.
  ProgressLine(net::EpollLoop& loop, const Progress& progress);
  ~ProgressLine();

  // Erases the line, so that other text can be printed; the line comes again.
  void clear();
  double seconds() const;

 private:
  void draw();
  // Seconds since there was something new.
  double still();

  net::EpollLoop& loop_;
  const Progress& progress_;
  const TimePoint begin_;
  std::uint64_t done_ = 0;  // of all kinds, when it was looked last
  TimePoint moved_at_;      // when that was new
  const bool shown_;
  bool drawn_ = false;
  Timer timer_;
};

}  // namespace stag::cli
