#include "fuse/inodes.h"

#include <algorithm>
#include <utility>

namespace stag::fuse {

using nfs::client::Handle;

Inodes::Inodes(const Handle& root) {
  inodes_.emplace(kRoot, Inode{.handle = root, .lookups = 1});
  numbers_.emplace(key(root), kRoot);
}

std::string Inodes::key(const Handle& handle) {
  return {reinterpret_cast<const char*>(handle.bytes().data()), handle.size()};
}

Inode* Inodes::find(std::uint64_t number) {
  const auto found = inodes_.find(number);
  return found == inodes_.end() ? nullptr : &found->second;
}

std::uint64_t Inodes::number_of(const Handle& handle) const {
  const auto found = numbers_.find(key(handle));
  return found == numbers_.end() ? 0 : found->second;
}

Inode* Inodes::find(const Handle& handle) {
  return find(number_of(handle));
}

std::uint64_t Inodes::enter(const Handle& handle) {
  const auto [entry, fresh] = numbers_.try_emplace(key(handle), next_);
  if (fresh) {
    try {
      inodes_.emplace(next_, Inode{.handle = handle});
    } catch (...) {
      numbers_.erase(entry);
      throw;
    }
    ++next_;
  }
  ++inodes_.at(entry->second).lookups;
  return entry->second;
}

void Inodes::forget(std::uint64_t number, std::uint64_t lookups) {
  const auto found = inodes_.find(number);
  if (number == kRoot || found == inodes_.end()) return;
  found->second.lookups -= std::min(lookups, found->second.lookups);
  if (found->second.lookups != 0) return;
  numbers_.erase(key(found->second.handle));
  inodes_.erase(found);
}

bool Inodes::close(std::uint64_t number) {
  Inode* inode = find(number);
  if (inode == nullptr || inode->opens == 0) return false;
  --opens_;
  return --inode->opens == 0;
}

}  // namespace stag::fuse
