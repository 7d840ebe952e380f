#include "nfs/server/mount/mount_list.h"

#include <algorithm>

namespace stag::nfs {

void MountList::add(std::string_view host, std::string_view path) {
  Entry entry{std::string(host), std::string(path)};
  const std::lock_guard lock(mutex_);
  if (std::find(entries_.begin(), entries_.end(), entry) != entries_.end()) return;
  if (entries_.size() == kMost) entries_.pop_front();
  entries_.push_back(std::move(entry));
}

void MountList::remove(std::string_view host, std::string_view path) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_,
                [&](const Entry& entry) { return entry.host == host && entry.path == path; });
}

void MountList::remove_all(std::string_view host) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.host == host; });
}

std::vector<MountList::Entry> MountList::all() const {
  const std::lock_guard lock(mutex_);
  return {entries_.begin(), entries_.end()};
}

}  // namespace stag::nfs
