#include "cli/support/command.h"

#include <fmt/format.h>
#include <syslog.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <new>
#include <optional>
#include <system_error>

#include "cli/support/escape.h"
#include "cli/support/journal.h"
#include "cli/support/output.h"
#include "net/signals.h"

namespace stag::cli {
namespace {

constexpr auto kOneWish = std::chrono::milliseconds(300);

// `exit` stays empty where the task ends for want of memory (decision 0014).
Task<void> finish(Task<Exit> task, std::optional<Exit>& exit, net::EpollLoop& loop) {
  try {
    exit = co_await std::move(task);
  } catch (const std::bad_alloc&) {
  }
  loop.stop();
}

std::string_view hint_for(const nfs::client::Error& error) {
  const bool denied =
      error.is(nfs::client::Status::Access) || error.is(nfs::client::Status::NotOwner);
  if (denied && geteuid() == 0)
    return " (the server may treat root as nobody: serve with no_root_squash; one that does not "
           "run as root may do no more than its own user)";
  if (error.kind == nfs::client::Error::Kind::Call && error.call.reason == Reason::TimedOut)
    return "; is the server running? --timeout N waits longer";
  return "";
}

}  // namespace

std::string explained(const nfs::client::Error& error) {
  return fmt::format("{}{}", error.sentence, hint_for(error));
}

Exit Command::on_loop(UniqueFunction<Task<Exit>(Run&)> work) const {
  net::EpollLoop loop;
  CancelSource interrupted;
  Run run{loop, interrupted};
  TimePoint first;
  int signal = 0;
  std::optional<Exit> exit;
  const net::SignalWatch watch(loop, {SIGINT, SIGTERM, SIGHUP}, [&](int number) {
    if (goes_on_after(number)) return;
    if (!interrupted.cancelled()) {
      first = loop.now();
      signal = number;
      note_interruption();
      if (exit) loop.stop();
      return interrupted.cancel();
    }
    // Terminals and timeout(1) may send several signals for one interruption.
    if (loop.now() - first < kOneWish) return;
    end_at_once(number);
  });
  const auto lost = [&] {
    if (interrupted.cancelled()) return;
    first = loop.now();
    signal = SIGPIPE;
    interrupted.cancel();
  };
  if (!left_behind().empty()) {
    // What must clean up does not die of a pipe that nobody reads any more.
    std::signal(SIGPIPE, SIG_IGN);
    on_lost_output([&] { loop.post(lost); });
  }
  look_for_interruption(net::signal_arrivals());
  detach(finish(work(run), exit, loop));
  loop.run();
  // The signal for which text was lost may be still to be told of.
  if (exit && output_given_up() && signal == 0) {
    const Timer limit = loop.after(kOneWish, [&loop] { loop.stop(); });
    loop.run();
  }
  look_for_interruption(-1);
  on_lost_output({});
  if (!exit) exit = failed("this process has no memory left for it");
  const bool cut_short = exit == Exit::Failed || output_given_up();
  return cut_short && signal != 0 ? exit_by_signal(signal) : *exit;
}

// What a command needs to begin: threads and memory.
Exit Command::run_if_possible() {
  try {
    return run();
  } catch (const std::system_error& error) {
    const bool threads = error.code() == std::errc::resource_unavailable_try_again;
    return failed(fmt::format("{}{}", error.code().message(),
                              threads ? ": the system gives it no more threads (see 'ulimit -u', "
                                        "TasksMax= of the unit, pids.max of the container)"
                                      : ""));
  } catch (const std::bad_alloc&) {
    return failed("this process has no memory left for it");
  }
}

Exit Command::run_and_flush() {
  const Exit exit = run_if_possible();
  const std::optional<std::string> trouble = output_trouble();
  if (!trouble) return exit;
  // A short output is written here, where the signal may be ignored already.
  const bool unread = trouble->empty();
  if (!unread) complain(*trouble);
  if (exit != Exit::Done) return exit;
  return unread ? exit_by_signal(SIGPIPE) : Exit::Failed;
}

void Command::end_at_once(int signal) const {
  if (left_behind().empty())
    complain("interrupted");
  else
    complain(fmt::format("interrupted before it had cleaned up: {}", left_behind()));
  _exit(static_cast<int>(exit_by_signal(signal)));
}

void Command::complain(std::string_view sentence) const {
  // Names that others have given may be in it: none makes a second line of a log.
  write_error(fmt::format("{}stag {}: {}\n", journal_prefix(STDERR_FILENO, LOG_ERR), about().name,
                          escaped(sentence)));
}

Exit Command::failed(std::string_view sentence) const {
  complain(sentence);
  return Exit::Failed;
}

Exit Command::failed(const nfs::client::Error& error) const {
  if (error.sentence.empty()) return Exit::Failed;
  if (error.kind == nfs::client::Error::Kind::Url) return misused(error.sentence);
  return failed(error.cancelled() ? "interrupted" : explained(error));
}

Exit Command::misused(std::string_view sentence) const {
  complain(sentence);
  return Exit::Usage;
}

}  // namespace stag::cli
