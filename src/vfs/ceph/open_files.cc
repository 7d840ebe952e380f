#include "vfs/ceph/open_files.h"

#include <vector>

#include "vfs/errors.h"

namespace stag::vfs::ceph {

OpenFile::~OpenFile() {
  if (written_.load()) static_cast<void>(sync(true));
  mount_.call().close(mount_.get(), file_);
}

int OpenFile::sync(bool data_only) {
  written_.store(false);
  const int synced = mount_.call().fsync(mount_.get(), file_, data_only ? 1 : 0);
  if (synced >= 0) return 0;
  losses_.fetch_add(1);
  return -synced;
}

Outcome<OpenFileRef> OpenFiles::open(const Handle& handle, Inode* inode) {
  if (auto found = find(handle)) return found;
  Fh* file = nullptr;
  const int opened = mount_.call().open(mount_.get(), inode, flags_, &file, mount_.root());
  if (opened < 0) return Failure{status_of(-opened)};
  return insert(handle, std::make_shared<OpenFile>(mount_, file, losses_));
}

OpenFileRef OpenFiles::find(const Handle& handle) {
  const std::scoped_lock lock(mutex_);
  const auto found = index_.find(handle);
  if (found == index_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->second;
}

// Somebody may have opened it meanwhile. What falls out is closed without the mutex.
OpenFileRef OpenFiles::insert(const Handle& handle, OpenFileRef file) {
  std::vector<OpenFileRef> closed;
  const std::scoped_lock lock(mutex_);
  const auto [at, fresh] = index_.try_emplace(handle);
  if (!fresh) {
    closed.push_back(std::move(file));
    return at->second->second;
  }
  recent_.emplace_front(handle, file);
  at->second = recent_.begin();
  while (recent_.size() > capacity_) {
    closed.push_back(std::move(recent_.back().second));
    index_.erase(recent_.back().first);
    recent_.pop_back();
  }
  return file;
}

void OpenFiles::close(const Handle& handle) {
  OpenFileRef closed;
  const std::scoped_lock lock(mutex_);
  const auto found = index_.find(handle);
  if (found == index_.end()) return;
  closed = std::move(found->second->second);
  recent_.erase(found->second);
  index_.erase(found);
}

}  // namespace stag::vfs::ceph
