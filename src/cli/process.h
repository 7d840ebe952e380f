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
// How many connections each of `listeners` may have, so that half of the open files are left for
// everything else whatever the clients do. At least one.
std::uint32_t connections_per_listener(std::uint64_t open_files, std::size_t listeners);

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
