// Resources of the server's process: open files and the state directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/loop.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace stag::cli {

// Raises the limit of open files to the hard limit.
void raise_open_files_limit();
// How many a server needs before its first connection; some are left.
std::uint64_t open_files_needed(std::size_t loops, std::size_t exports);
// The number of connections that the listeners of one address may have.
struct ConnectionLimits {
  std::uint32_t rdma = 0;
  std::uint32_t tcp = 0;
};
// Reduces `wanted`, to at least one each, to what net::connections_within() says. RDMA has priority
// and leaves TCP a quarter.
ConnectionLimits connections_within(std::uint64_t open_files, std::size_t addresses,
                                    ConnectionLimits wanted);

std::string host_name();

// /var/lib/stag for root; else stag below $XDG_STATE_HOME or ~/.local/state.
std::string default_state_directory();

// Locks the state directory for one server: two servers would overwrite each other's start counters
// and inode tables.
class StateLock {
 public:
  // Makes the directory, for this user alone, when it is missing. Waits so long for another server
  // that has it, and does what `meanwhile` does again and again. Fails with one sentence, which
  // ends with `if_in_use` where that still has it. Blocking.
  static Result<StateLock, std::string> take(
      const std::string& directory, Duration wait = {},
      std::string_view if_in_use = "wait for its end",
      const std::function<void()>& meanwhile = [] {});
  // Of a server that has ended. The directory is there, or it fails. The error is a part of a
  // sentence: why not. Blocking.
  static Result<StateLock, std::string> take_ended(const std::string& directory);

 private:
  explicit StateLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace stag::cli
