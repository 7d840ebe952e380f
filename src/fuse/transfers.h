// Transfers: READs and WRITEs of the kernel that were not answered yet. The kernel tells the last
// close(2) of a file only after those that it makes by itself (read-ahead, pages of mappings,
// asynchronous I/O) are answered: until then a file that is closed may look open.
//
// Pure. Thread: the loop of the Mount.
#pragma once

#include <coroutine>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/task.h"

namespace stag::fuse {

class Transfers {
 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // a file's number, and which one it is

 public:
  // One of the file that the kernel knows as `number`, until this is destroyed.
  class Transfer {
   public:
    Transfer(Transfers& all, std::uint64_t number)
        : all_(all), key_(*all.running_.emplace(number, all.next_++).first) {}
    ~Transfer() { all_.end(key_); }
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

   private:
    Transfers& all_;
    Key key_;
  };

  // Ends when those of the file have ended that are in progress now.
  Task<void> ended(std::uint64_t number);

 private:
  void end(const Key& key);

  std::set<Key> running_;
  std::uint64_t next_ = 1;
  std::vector<std::coroutine_handle<>> waiters_;  // for one to end
};

}  // namespace stag::fuse
