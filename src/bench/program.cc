#include "bench/program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "bench/load/crowd.h"
#include "net/unique_fd.h"

namespace stag::bench {
namespace {

constexpr std::size_t kSmallFile = 1024;

double milliseconds_since(std::uint64_t begin) {
  return static_cast<double>(nanoseconds_now() - begin) / 1e6;
}

// A run of `stag`; ended with the object.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    output_ = net::UniqueFd(ends[0]);
    const net::UniqueFd input(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.fd(), STDOUT_FILENO);
    // Threads that serve block signals; the program shall hear them.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    arguments.insert(arguments.begin(), "stag");
    std::vector<char*> words;
    for (std::string& each : arguments) words.push_back(each.data());
    words.push_back(nullptr);
    if (posix_spawn(&pid_, "/proc/self/exe", &actions, &attributes, words.data(), environ) != 0)
      pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  ~Program() {
    if (pid_ > 0) kill(pid_, SIGTERM);
    wait();
  }
  Program(const Program&) = delete;

  // Up to the next line end or, without `line`, all of it.
  std::string read(bool line) const {
    std::string text;
    for (char next; ::read(output_.fd(), &next, 1) == 1;) {
      if (line && next == '\n') break;
      text += next;
    }
    return text;
  }
  // Whether it ended well.
  bool wait() {
    int status = -1;
    if (pid_ > 0) waitpid(std::exchange(pid_, -1), &status, 0);
    return status == 0;
  }

 private:
  pid_t pid_ = -1;
  net::UniqueFd output_;
};

// `stag serve` with a folder that holds one small file.
class Serving {
 public:
  Serving() {
    if (mkdtemp(folder_.data()) == nullptr) return;
    std::filesystem::create_directory(folder_ + "/data");
    std::ofstream(folder_ + "/data/small") << std::string(kSmallFile, 'x');
    program_.emplace(std::vector<std::string>{"serve", "--export", "/small=" + folder_ + "/data",
                                              "--rdma-port", "0", "--tcp-port", "0", "--state",
                                              folder_ + "/state"});
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
  std::uint16_t port_of(const std::string& transport) const {
    const std::string host = "127.0.0.1:";
    for (std::string line = program_->read(true); !line.empty(); line = program_->read(true)) {
      const std::size_t at = line.find(host);
      if (line.starts_with("ready: " + transport) && at != std::string::npos)
        return static_cast<std::uint16_t>(std::atoi(line.c_str() + at + host.size()));
    }
    return 0;
  }

  std::string folder_ = std::filesystem::temp_directory_path().string() + "/stag-bench-XXXXXX";
  std::optional<Program> program_;
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
    Program cat({"cat", url});
    const std::string text = cat.read(false);
    if (!cat.wait() || text.size() != kSmallFile)
      return Failure{std::string("stag cat did not print the file")};
    // The first is the warm-up.
    if (i > 0) values.push_back(milliseconds_since(begin));
  }
  return Measured::of(values);
}

}  // namespace stag::bench
