#include "cli/serve/child_report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"
#include "cli/support/child_end.h"
#include "cli/support/journal.h"

namespace stag::cli {
namespace {

// How long a child may take to end of which nobody knows that it hangs.
constexpr int kEndMilliseconds = 10000;

// The last byte of a report, where lines have another one: the exit code, and whether it hangs.
constexpr unsigned kHangs = 0x80;

// Lines that are not read at once may be lost (cli/support/output.h): as many bytes as anybody may
// have in a pipe.
constexpr int kPipeBytes = 1 << 20;

[[noreturn]] void run_in_child(const std::function<void()>& begin,
                               const std::function<ChildEnd()>& work, int report) {
  const bool journal = is_journal(STDERR_FILENO);
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(report, standard);
  if (journal) pass_for_journal(STDERR_FILENO);
  begin();
  ::dup2(STDERR_FILENO, STDIN_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  const ChildEnd end = work();
  const auto exit = static_cast<int>(end.exit);
  const auto last =
      static_cast<unsigned char>(static_cast<unsigned>(exit) | (end.hangs ? kHangs : 0));
  static_cast<void>(!::write(STDERR_FILENO, &last, 1));
  // The report has its end here, whenever this process has its own.
  ::close_range(STDIN_FILENO, ~0U, 0);
  ::_exit(exit);
}

// A container may have nobody who would wait for its end later.
void await_end(pid_t child) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  pollfd ended{.fd = process.fd(), .events = POLLIN, .revents = 0};
  ::poll(&ended, 1, kEndMilliseconds);
  ::waitpid(child, nullptr, WNOHANG);
}

// It has nothing open any more, and so no thread that waits for a file.
Result<ChildReport, std::string> without_report(std::string text, pid_t child) {
  const Result<int, std::string> exit = end_of_child(child);
  if (!exit) return Failure{text + "the process that was to do it " + exit.error()};
  return ChildReport{std::move(text), static_cast<Exit>(*exit)};
}

}  // namespace

Result<ChildReport, std::string> report_of_child(const std::function<void()>& begin,
                                                 const std::function<ChildEnd()>& work) {
  std::array<int, 2> ends{};
  const bool made = ::pipe2(ends.data(), O_CLOEXEC) == 0;
  const UniqueFd from_child(made ? ends[0] : -1);
  UniqueFd to_parent(made ? ends[1] : -1);
  if (made) ::fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);
  const pid_t child = made ? ::fork() : -1;
  if (child < 0)
    return Failure{fmt::format("there can be no process to do it: {}", std::strerror(errno))};
  if (child == 0) run_in_child(begin, work, to_parent.fd());
  to_parent = {};
  std::string text = read_to_end(from_child.fd());
  if (text.empty() || text.back() == '\n') return without_report(std::move(text), child);
  const auto last = static_cast<unsigned char>(text.back());
  text.pop_back();
  if ((last & kHangs) == 0) await_end(child);
  return ChildReport{std::move(text), static_cast<Exit>(last & ~kHangs)};
}

}  // namespace stag::cli
