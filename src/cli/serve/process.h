// What a server asks of the system for itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "net/unique_fd.h"

namespace stag::cli {

// As many open files as the hard limit allows.
void raise_open_files_limit();
std::uint64_t open_files_limit();
// How many connections the listeners of one address may have.
struct ConnectionLimits {
  std::uint32_t rdma = 0;
  std::uint32_t tcp = 0;
};
// What is left of `wanted`, at least one each, so that whatever clients do there are open files for
// everything else: half of them, or 4096 where that is less. RDMA comes first, and leaves TCP a
// quarter.
ConnectionLimits connections_within(std::uint64_t open_files, std::size_t addresses,
                                    ConnectionLimits wanted);

std::string host_name();

// /var/lib/stag for root; else stag below $XDG_STATE_HOME or ~/.local/state.
std::string default_state_directory();

// Held as long as a server uses its state directory, which two must not share: they would count
// their starts and keep their tables of inodes against each other.
class StateLock {
 public:
  // Makes the directory when it is missing. Fails with one sentence.
  static Result<StateLock, std::string> take(const std::string& directory);

 private:
  explicit StateLock(net::UniqueFd fd) : fd_(std::move(fd)) {}
  net::UniqueFd fd_;
};

}  // namespace stag::cli
