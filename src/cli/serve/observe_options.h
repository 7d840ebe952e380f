// Options of `stag serve` about what its operator sees.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/observe/capture_file.h"
#include "cli/observe/events.h"
#include "cli/support/arguments.h"

namespace stag::cli {

class ObserveOptions {
 public:
  static constexpr const char* kUsualSlow = "1";  // seconds

  void declare(Arguments& arguments);
  // The error is a sentence.
  Result<Ok, std::string> check() const;
  EventOptions events() const;
  const std::string& metrics() const { return metrics_; }
  // The file that gets what goes over RDMA connections; empty: none does.
  const std::string& capture() const { return capture_; }
  std::uint64_t capture_max() const { return capture_max_; }  // bytes that it may have

 private:
  std::string metrics_;  // empty: no metrics
  std::string capture_;
  std::uint64_t capture_max_ = CaptureFile::kUsual;
  std::string slow_ = kUsualSlow;
  std::vector<std::string> traced_;
};

}  // namespace stag::cli
