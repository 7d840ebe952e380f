// Files of a CephFS that are open: to open one may ask a metadata server, and each has rights there
// that other clients of the cluster wait for. Thread: any that may block.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "vfs/ceph/mount.h"
#include "vfs/status.h"

namespace stag::vfs::ceph {

// One file, open for reading or for writing. The library tells of data that it could not write only
// who has the file open, and once; `losses` counts these failures.
class OpenFile {
 public:
  OpenFile(const Mount& mount, std::atomic<std::uint64_t>& losses)
      : mount_(mount), losses_(losses) {}
  // Closes it, and syncs it before if that has still to be done.
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  // Before all else, once. `flags`: those of open(2). 0, or a positive errno.
  int open(Inode* inode, int flags);
  Fh* get() const { return file_; }
  void note_written() { written_.store(true); }
  // Whether something was written that no sync has begun with.
  bool written() const { return written_.load(); }
  // 0, or why data may be lost, as a positive errno. One after another: who is told of no failure
  // finds one that another sync was told of counted.
  int sync(bool data_only);

 private:
  friend class OpenFiles;

  const Mount& mount_;
  std::atomic<std::uint64_t>& losses_;
  Fh* file_ = nullptr;
  std::atomic<bool> written_{false};
  std::mutex syncing_;
  // Of OpenFiles, under its mutex.
  std::size_t users_ = 0;
  std::uint64_t used_ = 0;  // looks_ when it was used last
};

class OpenFiles;

// An OpenFile in use.
struct EndOfUse {
  OpenFiles* files = nullptr;
  std::shared_ptr<OpenFile> file{};
  void operator()(OpenFile* used);
};
using OpenFileRef = std::unique_ptr<OpenFile, EndOfUse>;

// The files used last, by handle. Bounded in number, but for those in use. What was written to a
// file is found here until a sync of it has ended, so that a commit never misses it.
class OpenFiles {
 public:
  // `flags`: those of open(2).
  OpenFiles(const Mount& mount, int flags, std::size_t capacity, std::atomic<std::uint64_t>& losses)
      : mount_(mount), flags_(flags), capacity_(capacity), losses_(losses) {}

  // Opens it on first use.
  Outcome<OpenFileRef> open(const Handle& handle, Inode* inode);
  // Null when it is not open.
  OpenFileRef find(const Handle& handle);
  // Closes it, unless another call uses it or something was written since it was synced.
  void close_idle(const Handle& handle, OpenFileRef file);
  // Closes the files that nobody has used since the last time but one, unless something was written
  // to them since they were synced.
  void close_unused();
  // Forgets it, and closes it once nobody uses it: its data is of no more use.
  void forget(const Handle& handle);

 private:
  friend struct EndOfUse;
  using Entry = std::pair<Handle, std::shared_ptr<OpenFile>>;

  OpenFileRef use(const std::shared_ptr<OpenFile>& file);
  OpenFileRef insert(const Handle& handle, std::shared_ptr<OpenFile> file);
  void make_room();
  // Of those that are too many the one that nobody has used for longest; null if there is none.
  std::pair<Handle, OpenFileRef> surplus();
  // Takes one out that close_unused() is to close; empty: none.
  std::list<Entry> take_unused();
  void end_use(OpenFile& file);

  const Mount& mount_;
  const int flags_;
  const std::size_t capacity_;
  std::atomic<std::uint64_t>& losses_;
  std::mutex mutex_;
  std::list<Entry> recent_;  // most recent first
  std::uint64_t looks_ = 0;  // for files that nobody uses
  std::unordered_map<Handle, std::list<Entry>::iterator, HandleHash> index_;
};

}  // namespace stag::vfs::ceph
