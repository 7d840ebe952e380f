// ProgressLine: one line on a terminal that shows the progress of a copy; no output if there is no
// terminal.
#pragma once

#include <string>

#include "cli/copy/copy_endpoint.h"

namespace stag::cli {

class ProgressLine {
 public:
  // Drawn on standard error, if that is a terminal. Both outlive the ProgressLine.
  ProgressLine(net::EpollLoop& loop, const Progress& progress);
  ~ProgressLine();

  // Erases the line, so that other text can be printed; the line comes again.
  void clear();
  double seconds() const;

 private:
  void draw();
  // How long the rest will take, or that the server writes to its disk; empty: not known.
  std::string outlook() const;

  net::EpollLoop& loop_;
  const Progress& progress_;
  const TimePoint begin_;
  const bool shown_;
  bool drawn_ = false;
  Timer timer_;
};

}  // namespace stag::cli
