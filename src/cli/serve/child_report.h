// Work of which nobody knows whether it ends: a call to a file system that hangs keeps the thread
// that made it, and no process ends before its last thread. So a child process makes it.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "cli/support/command.h"

namespace stag::cli {

struct ChildReport {
  std::string text;  // what the child wrote to standard output and standard error
  Exit exit = Exit::Failed;
};

// How the work has ended.
struct ChildEnd {
  Exit exit = Exit::Failed;
  bool hangs = false;  // a thread of the child waits for what may never come
};

// Runs `begin`, and then `work`, in a child of this process, and yields its report as soon as
// `work` has returned. `begin` has all that this process has open, and starts no thread. A child
// that hangs in `work` is left to itself: it has nothing open that anybody else has or reads.
// Before any thread is started. Blocking. The error is one sentence.
Result<ChildReport, std::string> report_of_child(const std::function<void()>& begin,
                                                 const std::function<ChildEnd()>& work);

}  // namespace stag::cli
