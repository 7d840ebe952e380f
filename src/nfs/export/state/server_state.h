// ServerState: what an NFS server keeps over a restart: the key of its file handles, so that
// handles of clients stay valid, and the number of its starts, so that its write verifier is new
// after each (RFC 1813 3.3.7, 3.3.21).
//
// Two files in a directory of its own: `handle.key` (32 hex digits, mode 0600) and `starts` (a
// decimal number). Both are replaced atomically and synced. The directory must not lie in a folder
// that is exported: a client that reads the key can make handles of any object of any export.
// vfs::PosixFileSystem::open() refuses such a folder when its options name the directory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "nfs/export/state/state_error.h"

namespace stag::nfs {

struct ServerState {
  std::array<std::byte, 16> handle_key{};  // authenticates file handles; secret
  // Part of the write verifier; different after each start with the same directory.
  std::uint64_t boot_verifier = 0;

  // Reads the files and counts this start; makes the directory and the files when they are missing.
  // Blocks. Fails when a file cannot be read or written, and when the key is damaged: a new key
  // would make every handle stale.
  static Result<ServerState, StateError> open(const std::string& directory);
  // A state without files, derived from `seed`: for tests, and for stores that lose their content
  // at a restart.
  static ServerState ephemeral(std::uint64_t seed);
};

}  // namespace stag::nfs
