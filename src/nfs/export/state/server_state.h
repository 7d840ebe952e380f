// What an NFS server must remember between two starts: the key of its file handles, so that clients
// keep theirs, and how often it started, so that its write verifier is a new one each time
// (RFC 1813 3.3.7, 3.3.21).
//
// Lives in a directory of its own: `handle.key` (32 hex digits, mode 0600) and `starts` (a decimal
// number). Both are replaced atomically and synced. Blocking; read once, before serving.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/siphash.h"
#include "nfs/export/state/durable_file.h"

namespace stag::nfs {

struct ServerState {
  SipKey handle_key{};
  // Differs from that of every other start with the same directory.
  std::uint64_t boot_verifier = 0;

  // Makes the directory and its files when they are missing, and counts this start. A damaged key
  // is an error, never a new key: that would make every handle stale.
  static Result<ServerState, StateError> open(const std::string& directory);
  // Keeps no files: for tests and for stores that lose their content at a restart.
  static ServerState ephemeral(std::uint64_t seed);
};

}  // namespace stag::nfs
