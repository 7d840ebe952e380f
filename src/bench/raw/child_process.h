// A program that this one starts and whose output it reads. Ended with the object.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace stag::bench {

class ChildProcess {
 public:
  enum class Errors : bool { Inherited, AmongOutput };
  // `words`: its name, looked for as a shell does, and its arguments. `file`: what is executed
  // under that name instead.
  explicit ChildProcess(std::vector<std::string> words, const char* file = nullptr,
                        Errors errors = Errors::Inherited);
  // By SIGTERM where it has not ended.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool started() const { return started_; }
  // Whether it has not ended.
  bool runs();
  // Up to the next line end. Blocks.
  std::string read_line();
  // All of it; nothing where it has not ended within `limit`.
  std::optional<std::string> read_all(std::chrono::milliseconds limit);
  std::string read_all();
  // Waits for its end: whether it ended well.
  bool wait();

 private:
  bool ended(int options);

  pid_t pid_ = -1;  // until its end is known
  int status_ = -1;
  bool started_ = false;
  UniqueFd output_;
};

}  // namespace stag::bench
