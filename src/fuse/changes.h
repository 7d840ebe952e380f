// Changes: changes of the data of files that are in progress (WRITE, truncation, COPY, ...). One
// that nobody waits for any more, since its program was killed, may be executed late: what changes
// the same file afterwards waits for it, and must not wait for any other.
//
// Pure. Thread: the loop of the Mount. The Inodes outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "base/task.h"
#include "fuse/inodes.h"
#include "fuse/waiters.h"

namespace stag::fuse {

class Changes {
 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // a file's number, and which one it is
  using Running = std::map<Key, bool>;                  // whether nobody waits for it

 public:
  explicit Changes(Inodes& inodes) : inodes_(inodes) {}

  // One of the file that the kernel knows as `number`, until this is destroyed.
  class Change {
   public:
    Change(Changes& all, std::uint64_t number)
        : all_(all),
          inode_(all.inodes_, number),
          at_(all.running_.emplace(Key(number, all.next_++), false).first) {}
    ~Change() { all_.end(at_); }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    // No caller waits for it any more, but it goes on.
    void leave();

   private:
    Changes& all_;
    Inodes::Reference inode_;
    Running::iterator at_;
  };

  // Ends when none is left in progress of those of the file that have begun by now.
  Task<void> left_ended(std::uint64_t number);

 private:
  void end(Running::iterator change);
  bool is_left(std::uint64_t number, std::uint64_t before) const;

  Inodes& inodes_;
  Running running_;
  std::size_t left_ = 0;  // of all files
  std::uint64_t next_ = 1;
  Waiters waiters_;  // for one that was left to end
};

}  // namespace stag::fuse
