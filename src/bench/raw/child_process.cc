#include "bench/raw/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace stag::bench {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> words, const char* file, Errors errors) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  output_ = UniqueFd(ends[0]);
  const UniqueFd input(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.fd(), STDOUT_FILENO);
  if (errors == Errors::AmongOutput)
    posix_spawn_file_actions_adddup2(&actions, input.fd(), STDERR_FILENO);
  // Threads that serve block signals; the program shall hear them.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> arguments;
  for (std::string& each : words) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  const char* program = file != nullptr ? file : arguments.front();
  if (posix_spawnp(&pid_, program, &actions, &attributes, arguments.data(), environ) != 0)
    pid_ = -1;
  started_ = pid_ > 0;
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) kill(pid_, SIGTERM);
  wait();
}

std::string ChildProcess::read_line() {
  std::string line;
  for (char next; ::read(output_.fd(), &next, 1) == 1 && next != '\n';) line += next;
  return line;
}

std::string ChildProcess::read_all() {
  return read_all(std::chrono::milliseconds::max()).value_or("");
}

std::optional<std::string> ChildProcess::read_all(std::chrono::milliseconds limit) {
  const bool for_ever = limit == std::chrono::milliseconds::max();
  const auto end = for_ever ? Clock::time_point::max() : Clock::now() + limit;
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd readable{output_.fd(), POLLIN, 0};
    const int found = ::poll(&readable, 1, for_ever ? -1 : static_cast<int>(std::max(left, 0L)));
    if (found == 0) return std::nullopt;
    if (found < 0 && errno == EINTR) continue;
    const ssize_t count = ::read(output_.fd(), part.data(), part.size());
    if (count <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
}

bool ChildProcess::ended(int options) {
  if (pid_ > 0 && waitpid(pid_, &status_, options) != 0) pid_ = -1;
  return pid_ < 0;
}

bool ChildProcess::runs() {
  return !ended(WNOHANG);
}

bool ChildProcess::wait() {
  ended(0);
  return status_ == 0;
}

}  // namespace stag::bench
