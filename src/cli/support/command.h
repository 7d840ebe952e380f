// cli: the `stag` command. Each subcommand is one Command in a file of its own; main() lists them,
// arguments.cc and config_file.cc alone know the command line library, json.cc the JSON one,
// config.cc the TOML one.
//
// A client command is a coroutine on a loop that this thread runs; SIGINT and SIGTERM cancel it,
// and it cleans up and ends. Results go to standard output; everything else is one sentence on
// standard error: "stag NAME: what, where, why, what to do".
#pragma once

#include <string>
#include <string_view>

#include "base/cancel.h"
#include "base/task.h"
#include "base/unique_function.h"
#include "net/loop.h"
#include "nfs/client/protocol/error.h"

namespace stag::cli {

using nfs::client::Outcome;

// The exit code of the process.
enum class Exit : int {
  Done = 0,
  Failed = 1,  // standard error says why
  Usage = 2,   // the command line is wrong
};
// The exit code when a signal ended the command before it was done, by the convention of shells:
// 130 after SIGINT, 143 after SIGTERM, 141 where nobody reads what it prints (SIGPIPE).
constexpr Exit exit_by_signal(int number) {
  return static_cast<Exit>(128 + number);
}

class Arguments;
class ConfigFile;

// Texts for --help.
struct About {
  std::string_view name;
  std::string_view summary;
  std::string_view example;
  std::string_view notes{};  // further help that does not fit one line per option; whole lines
  bool one_dash = false;     // long options may have one dash, as those of find(1)
};

// The loop and the cancellation of a client command.
struct Run {
  net::EpollLoop& loop;
  CancelToken cancel;  // pulled by SIGINT and SIGTERM
};

// The error's sentence, with the user's remedy if there is one.
std::string explained(const nfs::client::Error& error);

class Command {
 public:
  virtual ~Command() = default;
  virtual About about() const = 0;
  virtual void declare(Arguments& arguments) = 0;
  // Null when the command has none.
  virtual ConfigFile* config_file() { return nullptr; }
  // Called after declare() and after the options were parsed.
  virtual Exit run() = 0;
  // run(), which has failed also when its results could not be written.
  Exit run_and_flush();

 protected:
  // Runs the Task that `work` makes to its end on a loop of this thread. If it fails after a
  // signal, the exit code is that of the signal. A second signal, some time after the first, ends
  // the process at once. A command that has something to clean up takes it for SIGPIPE when its
  // output is lost.
  Exit on_loop(UniqueFunction<Task<Exit>(Run&)> work) const;
  // Whether the signal asks for something else than the end, which this begins.
  virtual bool goes_on_after(int /*signal*/) const { return false; }
  // What may remain when the process is ended while it cleans up, for a message; empty: nothing.
  virtual std::string_view left_behind() const { return {}; }

  // Prints the sentence; on a terminal escaped (cli/support/escape.h), because it may contain bytes
  // that a peer has chosen.
  void complain(std::string_view sentence) const;
  Exit failed(std::string_view sentence) const;
  // Prints nothing for an Error without a sentence.
  Exit failed(const nfs::client::Error& error) const;
  Exit misused(std::string_view sentence) const;

 private:
  Exit run_if_possible();
  [[noreturn]] void end_at_once(int signal) const;
};

}  // namespace stag::cli
