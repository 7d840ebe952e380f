// What a status monitor must remember over a restart (X/Open XNFS, chapter 11): its own state
// number, odd while the host is up and higher after every restart, and which clients hold locks, so
// that they can be told that this server restarted and that they must reclaim them.
//
// A directory holds `state`, a decimal number, and `hosts/` with an empty file for each client,
// named by its address. A client's file is there before its first lock is granted. Methods marked
// blocking touch the disk; all may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "nfs/server/state/durable_file.h"

namespace stag::nfs::lock {

class Records {
 public:
  // Reads them, and counts a restart. An empty name: nothing is kept, and nobody is remembered.
  // Blocking.
  static Result<std::unique_ptr<Records>, StateError> open(const std::string& directory);

  std::int32_t state() const;
  // Who is to be told of the restart.
  std::vector<std::string> untold() const;
  // Whether add() has nothing to do.
  bool has(const std::string& address) const;
  // Blocking.
  Result<Ok, StateError> add(const std::string& address);
  // The client was told, or cannot be. Its record stays when add() came meanwhile. Blocking.
  Result<Ok, StateError> told(const std::string& address);
  // As if the host had restarted: a new state, and everybody is to be told. Blocking.
  Result<Ok, StateError> restart();

 private:
  explicit Records(std::string directory) : directory_(std::move(directory)) {}
  std::string hosts() const { return directory_ + "/hosts"; }
  Result<Ok, StateError> count_restart();
  Result<Ok, StateError> read_hosts();

  const std::string directory_;
  std::mutex disk_;  // held over system calls, by workers only
  mutable std::mutex mutex_;
  std::int32_t state_ = 1;
  std::set<std::string> untold_;
  std::set<std::string> added_;
};

}  // namespace stag::nfs::lock
