// The reference of verbs: what perftest's programs reach between two processes on the device of an
// address of this machine.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "bench/measure.h"
#include "bench/raw/child_process.h"

namespace stag::bench {

class Perftest {
 public:
  // `address` is one that an RDMA device of this machine has.
  explicit Perftest(std::string address) : address_(std::move(address)) {}

  // Whether one of its programs does on the wire what `figure` does: ib_send_lat, or, from where
  // the data is, ib_write_bw or ib_read_bw.
  static bool compares_with(const Figure& figure);
  // In units of the figure; `ours` says how many iterations take about as long. Blocks. Fails with
  // a sentence: the program is not installed, or what it has said.
  Result<Measured, std::string> measure(const Figure& figure, const Sampling& sampling,
                                        double ours) const;

 private:
  // The figure that `words` print, run as server and as client.
  Result<double, std::string> run(const std::vector<std::string>& words) const;
  Result<double, std::string> ask(ChildProcess& server, std::vector<std::string> words) const;

  const std::string address_;
};

}  // namespace stag::bench
