#include "vfs/ceph/open_files.h"

#include <algorithm>
#include <iterator>

#include "vfs/errors.h"

namespace stag::vfs::ceph {

OpenFile::~OpenFile() {
  if (file_ == nullptr) return;
  if (written()) static_cast<void>(sync(true));
  mount_.call().close(mount_.get(), file_);
}

int OpenFile::open(Inode* inode, int flags) {
  const int opened = mount_.call().open(mount_.get(), inode, flags, &file_, mount_.root());
  return opened < 0 ? -opened : 0;
}

int OpenFile::sync(bool data_only) {
  const std::scoped_lock turn(syncing_);
  written_.store(false);
  const int synced = mount_.call().fsync(mount_.get(), file_, data_only ? 1 : 0);
  if (synced >= 0) return 0;
  losses_.fetch_add(1);
  return -synced;
}

void EndOfUse::operator()(OpenFile* used) {
  files->end_use(*used);
  file.reset();
}

Outcome<OpenFileRef> OpenFiles::open(const Handle& handle, Inode* inode) {
  if (auto found = find(handle)) return found;
  auto file = std::make_shared<OpenFile>(mount_, losses_);
  if (const int error = file->open(inode, flags_)) return Failure{status_of(error)};
  auto opened = insert(handle, std::move(file));
  make_room();
  return opened;
}

OpenFileRef OpenFiles::find(const Handle& handle) {
  const std::scoped_lock lock(mutex_);
  const auto found = index_.find(handle);
  if (found == index_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return use(found->second->second);
}

// With the mutex.
OpenFileRef OpenFiles::use(const std::shared_ptr<OpenFile>& file) {
  ++file->users_;
  file->used_ = looks_;
  return OpenFileRef(file.get(), EndOfUse{this, file});
}

void OpenFiles::end_use(OpenFile& file) {
  const std::scoped_lock lock(mutex_);
  --file.users_;
}

// Another thread may have opened it meanwhile; then `file` is closed, without the mutex.
OpenFileRef OpenFiles::insert(const Handle& handle, std::shared_ptr<OpenFile> file) {
  std::list<Entry> made;
  made.emplace_back(handle, std::move(file));
  const std::scoped_lock lock(mutex_);
  const auto [at, fresh] = index_.try_emplace(handle, made.begin());
  if (fresh) recent_.splice(recent_.begin(), made);
  return use(at->second->second);
}

// One that is used again while it is synced stays. Each open() adds one, so to try two suffices.
void OpenFiles::make_room() {
  for (int tries = 0; tries < 2; ++tries) {
    auto [handle, file] = surplus();
    if (file == nullptr) return;
    if (file->written()) static_cast<void>(file->sync(true));
    close_idle(handle, std::move(file));
  }
}

std::pair<Handle, OpenFileRef> OpenFiles::surplus() {
  const std::scoped_lock lock(mutex_);
  if (recent_.size() <= capacity_) return {};
  const auto last = std::find_if(recent_.rbegin(), recent_.rend(),
                                 [](const Entry& each) { return each.second->users_ == 0; });
  if (last == recent_.rend()) return {};
  return {last->first, use(last->second)};
}

void OpenFiles::close_idle(const Handle& handle, OpenFileRef file) {
  std::list<Entry> closed;
  const std::scoped_lock lock(mutex_);
  const auto found = index_.find(handle);
  if (found == index_.end() || found->second->second.get() != file.get()) return;
  if (file->users_ > 1 || file->written()) return;
  closed.splice(closed.begin(), recent_, found->second);
  index_.erase(found);
}

// One at a time, and without the mutex: to close one may take as long as the cluster does.
void OpenFiles::close_unused() {
  {
    const std::scoped_lock lock(mutex_);
    ++looks_;
  }
  while (!take_unused().empty()) {
  }
}

std::list<OpenFiles::Entry> OpenFiles::take_unused() {
  std::list<Entry> taken;
  const std::scoped_lock lock(mutex_);
  for (auto at = recent_.rbegin(); at != recent_.rend(); ++at) {
    const OpenFile& file = *at->second;
    if (file.used_ + 2 > looks_ || file.users_ > 0 || file.written()) continue;
    index_.erase(at->first);
    taken.splice(taken.begin(), recent_, std::prev(at.base()));
    break;
  }
  return taken;
}

void OpenFiles::forget(const Handle& handle) {
  std::list<Entry> closed;
  const std::scoped_lock lock(mutex_);
  const auto found = index_.find(handle);
  if (found == index_.end()) return;
  closed.splice(closed.begin(), recent_, found->second);
  index_.erase(found);
}

}  // namespace stag::vfs::ceph
