// Closes: opens that programs have closed, until the server has closed them. The kernel says once
// that an open is closed: where memory runs out, what is left to be done is tried again until it is
// done. To keep it until then needs no memory.
//
// Thread: the loop of the Mount.
#pragma once

#include <cstdint>
#include <utility>

#include "base/loop.h"
#include "base/task.h"
#include "base/task_group.h"
#include "base/unique_function.h"
#include "fuse/open_files.h"
#include "fuse/soon.h"
#include "fuse/turns.h"
#include "nfs/client/file_system.h"

namespace stag::fuse {

class Closes {
 public:
  // Before what found no memory is tried again.
  static constexpr Duration kPause = std::chrono::milliseconds(50);
  // What comes before the server is told, of an open of that inode.
  using Prepare = UniqueFunction<Task<void>(std::uint64_t inode, const OpenFiles::Open&)>;

  // All outlive it. In `lock_turns` each owner of locks waits for its own calls.
  Closes(Loop& loop, nfs::client::FileSystem& files, Turns& lock_turns, Prepare prepare)
      : files_(files),
        lock_turns_(lock_turns),
        prepare_(std::move(prepare)),
        soon_(loop, kPause, [this] { try_again(); }) {}

  void begin(OpenFiles::Node closed) noexcept;
  // What is left is tried once more, and then not any more. Ends when all has that was begun.
  Task<void> end();

 private:
  void try_again() noexcept;
  void ask() noexcept;
  void begin_to_finish(OpenFiles::Files::iterator closed) noexcept;
  Task<void> finish(OpenFiles::Files::iterator closed);
  Task<void> close(std::uint64_t inode, OpenFiles::Ending& ending);
  Task<void> unlock(std::uint64_t inode, nfs::client::File file, nfs::client::LockOwner owner);
  Task<void> remove(const SillyName& name);

  nfs::client::FileSystem& files_;
  Turns& lock_turns_;
  Prepare prepare_;
  OpenFiles::Files closes_;
  Soon soon_;
  TaskGroup begun_;
};

}  // namespace stag::fuse
