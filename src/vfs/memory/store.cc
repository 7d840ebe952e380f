#include "vfs/memory/store.h"

#include <chrono>
#include <random>

namespace stag::vfs::memory {
namespace {

constexpr std::size_t kHandleSize = 16;

Time system_now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  return {seconds.count(),
          static_cast<std::uint32_t>(std::chrono::nanoseconds(since - seconds).count())};
}

std::uint64_t drawn_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device() | 1;
}

}  // namespace

Store::Store(const Options& options)
    : instance_(options.instance != 0 ? options.instance : drawn_number()),
      file_system_id_(options.file_system_id != 0 ? options.file_system_id : instance_),
      max_bytes_(options.max_bytes),
      now_(options.now != nullptr ? options.now : system_now) {
  auto root = std::make_unique<Inode>();
  root->id = root->parent = root_;
  root->type = FileType::Directory;
  root->mode = options.root_mode & kModeBits;
  root->uid = options.root_uid;
  root->gid = options.root_gid;
  root->links = 2;
  root->entries = std::make_unique<DirectoryTable>();
  root->accessed = root->modified = root->changed = root->created = now_();
  shard_of(root_).inodes.emplace(root_, std::move(root));
}

Store::~Store() = default;

Store::Locked::Locked(Store& store, Ids ids) {
  for (const InodeId id : ids) held_.push_back(&store.shard_of(id));
  std::sort(held_.begin(), held_.end());
  const auto end = std::unique(held_.begin(), held_.end());
  while (held_.end() != end) held_.pop_back();
  for (Shard* shard : held_) shard->mutex.lock();
}

Store::Locked::Locked(Store& store, InodeId id) {
  held_.push_back(&store.shard_of(id));
  held_.back()->mutex.lock();
}

Store::Locked::~Locked() {
  for (Shard* shard : held_) shard->mutex.unlock();
}

Handle Store::handle_of(InodeId id) const {
  std::array<std::byte, kHandleSize> bytes;
  store_be(bytes.data(), instance_);
  store_be(bytes.data() + 8, id);
  return *Handle::from(bytes);
}

// Stale and not BadHandle for another instance: its handle may have named an object of an earlier
// store.
Outcome<InodeId> Store::id_of(const Handle& handle) const {
  if (handle.size() != kHandleSize) return Failure{Status::BadHandle};
  if (load_be<std::uint64_t>(handle.bytes().data()) != instance_) return Failure{Status::Stale};
  return load_be<InodeId>(handle.bytes().data() + 8);
}

Inode* Store::find(InodeId id) {
  const auto& inodes = shard_of(id).inodes;
  const auto at = inodes.find(id);
  return at == inodes.end() ? nullptr : at->second.get();
}

bool Store::charge(std::uint64_t bytes) {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (used > max_bytes_ || bytes > max_bytes_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

Usage Store::usage() const {
  const std::uint64_t used = std::min(used_.load(std::memory_order_relaxed), max_bytes_);
  Usage usage;
  usage.total_bytes = max_bytes_;
  usage.free_bytes = usage.available_bytes = max_bytes_ - used;
  usage.total_files = max_bytes_ / 512;
  usage.free_files = usage.available_files = (max_bytes_ - used) / 512;
  return usage;
}

Outcome<Attributes> Store::attributes(const Handle& object) {
  const auto id = id_of(object);
  if (!id) return Failure{id.error()};
  Locked lock(*this, *id);
  const Inode* inode = find(*id);
  if (inode == nullptr) return Failure{Status::Stale};
  return attributes_of(*inode);
}

Outcome<Access> Store::access(const Credentials& who, const Handle& object, std::uint32_t asked) {
  const auto id = id_of(object);
  if (!id) return Failure{id.error()};
  Locked lock(*this, *id);
  const Inode* inode = find(*id);
  if (inode == nullptr) return Failure{Status::Stale};
  return Access{granted(*inode, who) & asked, attributes_of(*inode)};
}

Outcome<Link> Store::readlink(const Handle& symlink) {
  const auto id = id_of(symlink);
  if (!id) return Failure{id.error()};
  Locked lock(*this, *id);
  const Inode* inode = find(*id);
  if (inode == nullptr) return Failure{Status::Stale};
  if (inode->type != FileType::Symlink) return Failure{Status::NotSymlink};
  return Link{inode->target, attributes_of(*inode)};
}

}  // namespace stag::vfs::memory
