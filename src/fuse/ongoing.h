// Ongoing: operations on files that have not ended yet. A caller that waits for those of a file
// waits for the ones that began before.
//
// Pure. Thread: the loop of the Mount.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "base/task.h"
#include "fuse/waiters.h"

namespace stag::fuse {

class Ongoing {
 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // a file's number, and which one it is

 public:
  // One on the file that the kernel knows as `number`, until this is destroyed.
  class Operation {
   public:
    Operation(Ongoing& all, std::uint64_t number)
        : all_(all), key_(*all.running_.emplace(number, all.next_++).first) {}
    ~Operation() { all_.end(key_); }
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

   private:
    Ongoing& all_;
    Key key_;
  };

  // Ends when those on the file have ended that are in progress now.
  Task<void> ended(std::uint64_t number);

 private:
  void end(const Key& key);

  std::set<Key> running_;
  std::uint64_t next_ = 1;
  Waiters waiters_;  // for one to end
};

}  // namespace stag::fuse
