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

// One file, open for reading or for writing. What was written and not synced is synced before it
// is closed: the library tells of a failure only who has the file open. `losses` counts these
// failures.
class OpenFile {
 public:
  OpenFile(const Mount& mount, Fh* file, std::atomic<std::uint64_t>& losses)
      : mount_(mount), file_(file), losses_(losses) {}
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  Fh* get() const { return file_; }
  void note_written() { written_.store(true); }
  // 0, or why data may be lost, as a positive errno.
  int sync(bool data_only);

 private:
  const Mount& mount_;
  Fh* const file_;
  std::atomic<std::uint64_t>& losses_;
  std::atomic<bool> written_{false};
};
using OpenFileRef = std::shared_ptr<OpenFile>;

// The files used last, by handle. Bounded in number; files in use are closed later.
class OpenFiles {
 public:
  // `flags`: those of open(2).
  OpenFiles(const Mount& mount, int flags, std::size_t capacity, std::atomic<std::uint64_t>& losses)
      : mount_(mount), flags_(flags), capacity_(capacity), losses_(losses) {}

  // Opens it on first use.
  Outcome<OpenFileRef> open(const Handle& handle, Inode* inode);
  // Null when it is not open.
  OpenFileRef find(const Handle& handle);
  // Closes it, once nobody uses it.
  void close(const Handle& handle);

 private:
  OpenFileRef insert(const Handle& handle, OpenFileRef file);

  const Mount& mount_;
  const int flags_;
  const std::size_t capacity_;
  std::atomic<std::uint64_t>& losses_;
  using Entry = std::pair<Handle, OpenFileRef>;
  std::mutex mutex_;
  std::list<Entry> recent_;  // most recent first
  std::unordered_map<Handle, std::list<Entry>::iterator, HandleHash> index_;
};

}  // namespace stag::vfs::ceph
