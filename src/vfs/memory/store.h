// memory::Store: the objects behind vfs/memory, by inode number, in 64 shards. A mutex guards each
// shard; an operation holds it for a few steps and never while it waits. An operation on several
// objects first finds out which they are, then locks their shards in the order of their addresses;
// if a directory entry has changed in between, the operation starts again.
//
// Thread: any. Ownership: the Store owns its objects; results refer to file data by reference
// count. Errors: a Status (vfs/status.h). The public functions do what the functions of the same
// names in FileSystem do (vfs/vfs.h).
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/brief_mutex.h"
#include "base/inline_vector.h"
#include "vfs/memory/inode.h"
#include "vfs/memory/options.h"
#include "vfs/vfs.h"

namespace stag::vfs::memory {

inline constexpr std::size_t kMaxName = 255;  // bytes
inline constexpr std::uint32_t kMaxLinks = 1'000'000'000;
// Bytes that an object, or an entry, counts against Options::max_bytes.
inline constexpr std::uint64_t kObjectCharge = 512;

class Store {
 public:
  explicit Store(const Options& options);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  Handle root() const { return handle_of(root_); }
  Usage usage() const;

  Outcome<Attributes> attributes(const Handle& object);
  Outcome<Change> set_attributes(const Credentials& who, const Handle& object,
                                 const SetAttributes& changes, std::optional<Time> guard);
  Outcome<Access> access(const Credentials& who, const Handle& object, std::uint32_t asked);
  Outcome<Link> readlink(const Handle& symlink);
  Outcome<ReadResult> read(const Credentials& who, const Handle& file, std::uint64_t offset,
                           std::uint32_t count);
  Outcome<WriteResult> write(const Credentials& who, const Handle& file, std::uint64_t offset,
                             Rope data);
  Outcome<Change> commit(const Handle& file);

  Outcome<Found> lookup(const Credentials& who, const Handle& directory, std::string_view name);
  Outcome<Created> create(const Credentials& who, const Handle& directory, std::string_view name,
                          const CreateHow& how);
  Outcome<Created> mkdir(const Credentials& who, const Handle& directory, std::string_view name,
                         const SetAttributes& attributes);
  Outcome<Created> symlink(const Credentials& who, const Handle& directory, std::string_view name,
                           std::string_view target, const SetAttributes& attributes);
  Outcome<Created> mknod(const Credentials& who, const Handle& directory, std::string_view name,
                         Special special, const SetAttributes& attributes);
  Outcome<Linked> link(const Credentials& who, const Handle& file, const Handle& directory,
                       std::string_view name);
  Outcome<Change> remove(const Credentials& who, const Handle& directory, std::string_view name);
  Outcome<Change> rmdir(const Credentials& who, const Handle& directory, std::string_view name);
  Outcome<Renamed> rename(const Credentials& who, const Handle& from_directory,
                          std::string_view from, const Handle& to_directory, std::string_view to);
  Outcome<Listed> list(const Credentials& who, const Handle& directory, const ListFrom& from,
                       DirectorySink& sink);
  Outcome<ObjectAcls> acls(const Handle& object);
  Outcome<Change> set_acls(const Credentials& who, const Handle& object, const SetAcls& changes);

  Outcome<Sought> seek(const Credentials& who, const Handle& file, std::uint64_t offset,
                       SeekTo what);
  Outcome<Change> allocate(const Credentials& who, const Handle& file, std::uint64_t offset,
                           std::uint64_t length);
  Outcome<Change> deallocate(const Credentials& who, const Handle& file, std::uint64_t offset,
                             std::uint64_t length);
  // Both share the extents. They hold the shards for a bounded time: copy() does less then,
  // clone() refuses.
  Outcome<Change> clone(const Credentials& who, const Handle& from, const Handle& to,
                        const CopyRange& range);
  Outcome<Copied> copy(const Credentials& who, const Handle& from, const Handle& to,
                       const CopyRange& range);
  Outcome<std::string> xattr(const Credentials& who, const Handle& object, std::string_view name);
  Outcome<Change> set_xattr(const Credentials& who, const Handle& object, std::string_view name,
                            std::string_view value, XattrMode mode);
  Outcome<std::vector<std::string>> list_xattrs(const Handle& object);
  Outcome<Change> remove_xattr(const Credentials& who, const Handle& object, std::string_view name);

 private:
  static constexpr std::size_t kShards = 64;
  // Aligned to a cache line, so that loops which work on different files do not share one.
  struct alignas(64) Shard {
    BriefMutex mutex;
    std::unordered_map<InodeId, std::unique_ptr<Inode>> inodes;
  };
  using Ids = InlineVector<InodeId, 4>;
  class Locked;  // holds the mutexes of several shards
  class Charge;

  struct Entry {
    InodeId directory;
    InodeId child;
  };
  struct Page;

  Handle handle_of(InodeId id) const;
  Outcome<InodeId> id_of(const Handle& handle) const;
  Shard& shard_of(InodeId id) { return shards_[id % kShards]; }
  // Null when there is none. The caller holds the shard's mutex.
  Inode* find(InodeId id);
  Node node_of(const Inode& inode) const { return {handle_of(inode.id), attributes_of(inode)}; }
  Attributes attributes_of(const Inode& inode) const { return inode.attributes(file_system_id_); }
  Change changed(const BeforeChange& before, const Inode& inode) const {
    return {before, attributes_of(inode)};
  }

  // Counts `bytes` against max_bytes_; false, and nothing counted, when that would be too many.
  bool charge(std::uint64_t bytes);
  void refund(std::uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  void resize(Inode& file, std::uint64_t size, Replaced& replaced);
  static std::uint64_t charge_of(const Acls* acls);
  static std::uint64_t charge_of(const Inode::Xattrs* xattrs);
  static void inherit_acls(const Inode& directory, Inode& made);

  // To allocate() and deallocate(): the range, and the file once its shard is held.
  Outcome<InodeId> file_of_range(const Handle& file, std::uint64_t offset, std::uint64_t length);
  Change changed_range(const Credentials& who, Inode& file, const BeforeChange& before);
  Outcome<std::uint64_t> copied_length(const Credentials& who, InodeId from, InodeId to,
                                       const CopyRange& range);
  bool move_range(const FileData& from, FileData& to, const CopyRange& range, Replaced& replaced);
  enum class Amount : std::uint8_t { All, SomeWillDo };
  Outcome<Copied> share(const Credentials& who, const Handle& from, const Handle& to,
                        CopyRange range, Amount amount);
  Outcome<Inode*> with_xattrs(InodeId id);
  Outcome<Inode*> readable(const Credentials& who, InodeId id);
  Outcome<Inode*> writable(const Credentials& who, InodeId id);
  WriteResult written(const Credentials& who, Inode& file, std::uint64_t length,
                      const BeforeChange& before);
  Outcome<std::optional<InodeId>> peek(InodeId directory, std::string_view name);
  Outcome<Created> make(const Credentials& who, const Handle& directory, std::string_view name,
                        std::unique_ptr<Inode> made, const SetAttributes& attributes);
  Outcome<Created> reopen(const Credentials& who, InodeId directory, InodeId child,
                          const CreateHow& how);
  void drop_link(Inode& child, Time now, Replaced& replaced);
  Outcome<Change> unlink(const Credentials& who, const Handle& directory, std::string_view name,
                         bool directories);
  std::optional<Status> unlink_fault(const Credentials& who, const Inode& directory,
                                     const Inode* child, bool directories) const;
  bool lies_within(InodeId directory, InodeId ancestor);
  struct Move;
  Outcome<Renamed> move(const Credentials& who, const Move& move);
  // The directories, what is moved and what it replaces are locked, and nothing is in the way.
  void relink(const Move& move, Inode& from, Inode& to, Inode& moved, Inode* over,
              Replaced& replaced);
  std::optional<Status> move_fault(const Credentials& who, const Inode& from, const Inode& to,
                                   const Inode& child, const Inode* target) const;
  void collect(const Inode& directory, const ListFrom& from, Page& page) const;

  const std::uint64_t instance_;
  const std::uint64_t file_system_id_;
  const std::uint64_t max_bytes_;
  Time (*const now_)();
  InodeId root_ = 1;
  std::array<Shard, kShards> shards_;
  std::atomic<InodeId> next_id_{2};
  std::atomic<std::uint64_t> used_{0};
  // Held while a directory gets another parent, so that two moves at once cannot make a directory
  // its own ancestor.
  std::mutex moving_;
};

// Holds the mutexes of the shards of up to four objects, locked in the order of their addresses,
// from construction to destruction.
class Store::Locked {
 public:
  Locked(Store& store, Ids ids);
  Locked(Store& store, InodeId id);
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  InlineVector<Shard*, 4> held_;
};

// Bytes that are counted against max_bytes_ before a change, so that there is room for it. They are
// given back unless settle() says that the change was made, also when an exception ends it.
class Store::Charge {
 public:
  Charge(Store& store, std::uint64_t bytes)
      : store_(store), bytes_(bytes), counted_(store.charge(bytes)) {}
  ~Charge() {
    if (counted_) store_.used_.fetch_add(settled_ - bytes_, std::memory_order_relaxed);
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

  // False when that would be too many.
  explicit operator bool() const { return counted_; }
  // The change was made and took so many bytes, modulo 2^64: it may have freed some.
  void settle(std::uint64_t bytes) { settled_ = bytes; }

 private:
  Store& store_;
  const std::uint64_t bytes_;
  const bool counted_;
  std::uint64_t settled_ = 0;
};

}  // namespace stag::vfs::memory
