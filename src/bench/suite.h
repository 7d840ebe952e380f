// `stag bench`: figures, one after the other, each in its set-up and next to its physical
// reference, all in one run.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/special.h"
#include "bench/sweep.h"

namespace stag::bench {

struct SuiteOptions : SpecialOptions {
  // In every set-up.
  bool crc = false;
  std::uint32_t busy_poll_us = 0;
  bool plots = false;  // whether plots() will be called
  std::string build;   // of this program, for them
  // An address of an RDMA device of this machine, through which at_home() measures; empty: software
  // iWARP on loopback.
  std::string device_address;
  bool registration = false;  // there, rows of what registering memory costs, too
};

// Told before each figure: how many are done, how many there are, what comes.
using Progress = std::function<void(std::size_t done, std::size_t all, const std::string& name)>;

// Whether a figure needs servers that are set up for it, which only at_home() on software iWARP
// has.
bool needs_set_up(const Figure& figure);

class Suite {
 public:
  virtual ~Suite() = default;
  // Blocks. Fails with a sentence.
  virtual Rows run(const Progress& progress) = 0;
  // The raw references that belong to no row; after run().
  virtual std::vector<Row> references() { return {}; }
  // Sentences about the rows, and what is missing in them; after run().
  virtual std::vector<std::string> notes() { return {}; }
  // Blocks. Fails with a sentence, also where there are none.
  virtual Result<std::vector<NamedPlot>, std::string> plots() {
    return Failure{std::string("there are plots with --self only")};
  }
  // Makes run() fail soon, whatever it is at. From any thread.
  void stop();

  // With servers and raw peers in processes of their own; of an RDMA device, perftest's programs
  // are the reference, and figures that need a set-up of their own are left out. Forks: call before
  // this process has threads.
  static Result<std::unique_ptr<Suite>, std::string> at_home(std::vector<Figure> figures,
                                                             const SuiteOptions& options);
  // Against a server elsewhere, without references. `url` names a directory that may be written
  // to; figures that need a set-up of their own are left out.
  static std::unique_ptr<Suite> of(const std::string& url, const std::vector<Figure>& figures,
                                   const SuiteOptions& options);

 protected:
  // `load` is what stop() stops from now on; null: nothing.
  void now_running(LoadGenerator* load);
  bool stopped();

 private:
  std::mutex mutex_;
  bool stopped_ = false;
  LoadGenerator* load_ = nullptr;
};

}  // namespace stag::bench
