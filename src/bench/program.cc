#include "bench/program.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "bench/load/crowd.h"
#include "bench/raw/child_process.h"

namespace stag::bench {
namespace {

constexpr std::size_t kSmallFile = 1024;
constexpr const char* kThisProgram = "/proc/self/exe";

double milliseconds_since(std::uint64_t begin) {
  return static_cast<double>(nanoseconds_now() - begin) / 1e6;
}

// `stag serve` with a folder that holds one small file.
class Serving {
 public:
  Serving() {
    if (mkdtemp(folder_.data()) == nullptr) return;
    std::filesystem::create_directory(folder_ + "/data");
    std::ofstream(folder_ + "/data/small") << std::string(kSmallFile, 'x');
    program_.emplace(std::vector<std::string>{"stag", "serve", "--export",
                                              "/small=" + folder_ + "/data", "--rdma-port", "0",
                                              "--tcp-port", "0", "--state", folder_ + "/state"},
                     kThisProgram);
    rdma_port_ = port_of("RPC-over-RDMA");
  }
  ~Serving() {
    program_.reset();
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  Serving(const Serving&) = delete;

  Address rdma() const { return {"127.0.0.1", rdma_port_}; }
  std::string url_of_file() {
    const std::string mount = std::to_string(port_of("TCP"));
    return "nfs://127.0.0.1:" + std::to_string(rdma_port_) + "/small/small?mountport=" + mount;
  }

 private:
  // Of the next line that says that `transport` is ready; 0 when none comes.
  std::uint16_t port_of(const std::string& transport) {
    const std::string host = "127.0.0.1:";
    for (std::string line = program_->read_line(); !line.empty(); line = program_->read_line()) {
      const std::size_t at = line.find(host);
      if (line.starts_with("ready: " + transport) && at != std::string::npos)
        return static_cast<std::uint16_t>(std::atoi(line.c_str() + at + host.size()));
    }
    return 0;
  }

  std::string folder_ = std::filesystem::temp_directory_path().string() + "/stag-bench-XXXXXX";
  std::optional<ChildProcess> program_;
  std::uint16_t rdma_port_ = 0;
};

}  // namespace

Result<Measured, std::string> measure_start(unsigned samples) {
  std::vector<double> values;
  for (unsigned i = 0; i < samples; ++i) {
    const std::uint64_t begin = nanoseconds_now();
    const Serving serving;
    Crowd one(serving.rdma());
    if (Result<Ok, std::string> answered = one.grow(1); !answered)
      return Failure{"stag serve: " + answered.error()};
    values.push_back(milliseconds_since(begin));
  }
  return Measured::of(values);
}

Result<Measured, std::string> measure_cat(unsigned samples) {
  Serving serving;
  const std::string url = serving.url_of_file();
  std::vector<double> values;
  for (unsigned i = 0; i <= samples; ++i) {
    const std::uint64_t begin = nanoseconds_now();
    ChildProcess cat({"stag", "cat", url}, kThisProgram);
    const std::string text = cat.read_all();
    if (!cat.wait() || text.size() != kSmallFile)
      return Failure{std::string("stag cat did not print the file")};
    // The first is the warm-up.
    if (i > 0) values.push_back(milliseconds_since(begin));
  }
  return Measured::of(values);
}

}  // namespace stag::bench
