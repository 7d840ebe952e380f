// Files as they are written to standard output, or to a device.
#pragma once

#include <string>

#include "cli/support/command.h"
#include "cli/support/unwaiting_output.h"

namespace stag::cli {

class StandardOutput {
 public:
  // Does not own the descriptor; `name` is for messages.
  StandardOutput(Run& run, int fd, std::string name)
      : run_(run), output_(fd), name_(std::move(name)) {}

  // Writes all of `data`, however long it takes. An interruption ends it with an Error that is
  // cancelled(). Where the reader has closed the pipe, which is no error for the user, as with
  // `| head`, the Error has no sentence and `unread` is set.
  Task<Outcome<Ok>> write(Bytes data, bool& unread);

 private:
  Run& run_;
  const UnwaitingOutput output_;
  const std::string name_;
};

}  // namespace stag::cli
