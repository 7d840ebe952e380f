#include "fuse/inodes.h"

#include <algorithm>
#include <functional>

namespace stag::fuse {

using nfs::client::Handle;

Inodes::Inodes(const Handle& root) {
  const Entry entry = inodes_.emplace(kRoot, Inode{.handle = root, .lookups = 1}).first;
  numbers_.emplace(key(entry->second.handle), kRoot);
}

std::string_view Inodes::key(const Handle& handle) {
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
  if (const auto known = numbers_.find(key(handle)); known != numbers_.end()) {
    ++inodes_.at(known->second).lookups;
    return known->second;
  }
  const Entry entry = inodes_.emplace(next_, Inode{.handle = handle, .lookups = 1}).first;
  try {
    numbers_.emplace(key(entry->second.handle), next_);
  } catch (...) {
    inodes_.erase(entry);
    throw;
  }
  return next_++;
}

void Inodes::forget(std::uint64_t number, std::uint64_t lookups) noexcept {
  const auto found = inodes_.find(number);
  if (number == kRoot || found == inodes_.end()) return;
  found->second.lookups -= std::min(lookups, found->second.lookups);
  erase_unused(found);
}

void Inodes::erase_unused(Entry entry) noexcept {
  const std::uint64_t number = entry->first;
  const Inode& inode = entry->second;
  if (inode.lookups != 0 || inode.opens != 0 || inode.references != 0) return;
  const auto named = names_.find(inode.name);
  if (named != names_.end() && named->second == number) names_.erase(named);
  numbers_.erase(key(inode.handle));
  inodes_.erase(entry);
  if (on_gone_) on_gone_(number);
}

Inodes::Reference::Reference(Inodes& all, std::uint64_t number) : all_(all), number_(0) {
  Inode* const inode = all_.find(number);
  if (inode == nullptr) return;
  ++inode->references;
  number_ = number;
}

Inodes::Reference::~Reference() {
  if (number_ == 0) return;
  const Entry entry = all_.inodes_.find(number_);
  --entry->second.references;
  all_.erase_unused(entry);
}

bool Inodes::close(std::uint64_t number) noexcept {
  const auto found = inodes_.find(number);
  if (found == inodes_.end() || found->second.opens == 0) return false;
  --opens_;
  const bool last = --found->second.opens == 0;
  erase_unused(found);
  return last;
}

std::size_t Inodes::hash(std::uint64_t parent, std::string_view name) {
  constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
  return std::hash<std::string_view>()(name) ^ (parent * kGoldenRatio);
}

void Inodes::call(Inode& inode, std::uint64_t number, std::size_t name) {
  const auto before = names_.find(inode.name);
  if (before != names_.end() && before->second == number) names_.erase(before);
  names_[name] = number;
  inode.name = name;
}

void Inodes::call(std::uint64_t number, std::uint64_t parent, std::string_view name) {
  if (Inode* const inode = find(number)) call(*inode, number, hash(parent, name));
}

void Inodes::rename(std::uint64_t parent, std::string_view name, std::uint64_t new_parent,
                    std::string_view new_name) {
  const std::uint64_t number = named(parent, name);
  if (Inode* const inode = find(number)) call(*inode, number, hash(new_parent, new_name));
}

std::uint64_t Inodes::named(std::uint64_t parent, std::string_view name) const {
  const auto found = names_.find(hash(parent, name));
  return found == names_.end() ? 0 : found->second;
}

void Inodes::on_told(std::uint64_t number) {
  ++time_;
  if (Inode* const inode = find(number)) inode->told = time_;
}

void Inodes::on_names_lost(std::uint64_t directory) {
  ++time_;
  if (Inode* const inode = find(directory)) inode->names_lost = time_;
}

}  // namespace stag::fuse
