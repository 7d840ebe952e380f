// Settling: times of new files that wait (new_files.h) are set a while after they came, where no
// close(2) asks for them before. What fails then is tried again: by itself, and by close(2), which
// tells.
//
// Thread: the loop of the Mount.
#pragma once

#include <cstdint>

#include "base/loop.h"
#include "base/task.h"
#include "base/task_group.h"
#include "fuse/new_files.h"
#include "fuse/soon.h"
#include "fuse/turns.h"
#include "nfs/client/file_system.h"

namespace stag::fuse {

class Settling {
 public:
  // Times wait no longer than twice this, so that others see them.
  static constexpr Duration kAfter = std::chrono::milliseconds(100);

  // All outlive it.
  Settling(Loop& loop, nfs::client::FileSystem& files, NewFiles& new_files, Turns& turns)
      : loop_(loop),
        files_(files),
        new_files_(new_files),
        turns_(turns),
        soon_(loop, kAfter, [this] { settle_due(); }) {}

  // There are times that wait.
  void ask() { soon_.ask(); }
  // Sets them now; or why the server refused to.
  Task<nfs::client::Outcome<Ok>> settle(std::uint64_t number);
  // Sets none by itself any more. Ends with those that it has begun to set.
  Task<void> end();

 private:
  void settle_due();
  Task<void> settle_by_itself(std::uint64_t number);

  Loop& loop_;
  nfs::client::FileSystem& files_;
  NewFiles& new_files_;
  Turns& turns_;
  Soon soon_;
  TaskGroup begun_;
};

}  // namespace stag::fuse
