// Writing to a descriptor without waiting for its reader: a pipe may be full, a terminal stopped,
// and the network behind a terminal silent. Thread: any.
#pragma once

#include <sys/types.h>

#include <string_view>

#include "base/unique_fd.h"

namespace stag::cli {

class UnwaitingOutput {
 public:
  // Does not own the descriptor.
  explicit UnwaitingOutput(int fd);
  // Yields how many of `bytes` it has taken at once. -1: none, errno says why, EAGAIN where it
  // would have had to wait.
  ssize_t write(std::string_view bytes) const;
  // Waits for so many milliseconds until it seems to take bytes. True: it does; but a terminal may
  // take fewer than write() has for it.
  bool wait(int milliseconds) const;

 private:
  const int fd_;
  const bool file_, socket_;
  const UniqueFd unwaiting_;  // the same pipe or terminal, if it could be opened anew
};

}  // namespace stag::cli
