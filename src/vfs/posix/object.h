// An object of the exported tree that is open: a path descriptor (O_PATH) that names it whatever
// happens to its names, and, once data moved, descriptors for reading and writing. Shared by all
// threads that work on the object.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/executor.h"
#include "base/unique_fd.h"
#include "vfs/posix/change_counter.h"
#include "vfs/posix/kernel_lease.h"
#include "vfs/posix/losses.h"
#include "vfs/posix/mapping.h"
#include "vfs/types.h"
#include "vfs/vfs.h"

namespace stag::vfs::posix {

// Notices when changes of one object overlap in time, because then "before" and "after" do not
// belong together and a client must not take them for the effect of its own change alone (RFC
// 1813 2.6, wcc_data).
class ChangeWatch {
 public:
  struct Ticket {
    std::uint32_t order;
    bool alone;
  };
  Ticket begin() {
    const std::uint64_t before = changes_.fetch_add(kOneBegun | 1);
    return {begun(before), under_way(before) == 0};
  }
  // Whether no other change was under way between begin() and now.
  bool end(Ticket ticket) {
    const std::uint64_t now = changes_.fetch_sub(1);
    return ticket.alone && begun(now) == ticket.order + 1;
  }

 private:
  // Those that have begun, and how many of them are under way: in one word, for between two each
  // would seem to be alone to another one.
  static constexpr std::uint64_t kOneBegun = std::uint64_t{1} << 32;
  static std::uint32_t begun(std::uint64_t changes) {
    return static_cast<std::uint32_t>(changes >> 32);
  }
  static std::uint32_t under_way(std::uint64_t changes) {
    return static_cast<std::uint32_t>(changes);
  }
  std::atomic<std::uint64_t> changes_{0};
};

using SharedDescriptor = std::shared_ptr<const UniqueFd>;

class Object {
 public:
  Object(const Handle& handle, UniqueFd path, FileType type)
      : handle(handle), path(std::move(path)), type(type) {}

  const Handle handle;
  const UniqueFd path;
  const FileType type;
  ChangeWatch changes;
  mutable ChangeCounter change;

  // Null until opened.
  SharedDescriptor reader() const {
    std::lock_guard lock(mutex_);
    return reader_;
  }
  SharedDescriptor writer() {
    std::lock_guard lock(mutex_);
    writer_rounds_ = 0;
    return writer_;
  }
  // Opens on first use, with the server's rights: the caller's were checked. Regular files and
  // directories (for reading) only; anything else is never opened.
  Outcome<SharedDescriptor> open_reader();
  Outcome<SharedDescriptor> open_writer();
  // For a file of `size` bytes without holes of which `reading` are wanted now; null until so much
  // of it has been read that a mapping pays.
  SharedMapping mapping_for(std::uint64_t size, std::size_t reading);
  void set_writer(UniqueFd descriptor);
  // Whether to close it takes no disk: only its path is open, and it has a name.
  bool closes_at_once() const;

  // A file that is open for writing cannot be executed on the server, nor its file system remounted
  // read-only. So a writer is closed by the COMMIT behind which nothing is uncommitted, and where
  // nobody has used it for some rounds of close_unused_writer().
  //
  // One that could not be opened again stays open for longer: without root the mode of a file that
  // its owner may not write refuses that, and the owner may write it (RFC 1813 4.4).
  void close_writer();
  // Begins a round. Whether close_unused_writer() may have something to close.
  bool has_unused_writer();
  void close_unused_writer();
  // Behind a change of the mode.
  void reconsider_writer();
  // What a sync goes by: the writer, or else what can be opened of a reader and a writer.
  Outcome<SharedDescriptor> open_to_sync();

  // Data that was written Unstable, which no sync has covered yet. Noted when it is written, while
  // the writer still holds the descriptor.
  void note_unstable_write() { unstable_writes_.fetch_add(1); }
  // What a sync of the whole file covers that begins now.
  std::uint64_t unstable_writes() const { return unstable_writes_.load(); }
  // Such a sync has ended. Where it failed, all were told that the data may be lost.
  void note_synced(std::uint64_t writes);
  bool has_uncommitted() const { return unstable_writes_.load() != synced_writes_.load(); }
  // The same before the object is closed, since the kernel may forget what it would have told, once
  // nobody has the file open.
  void sync_uncommitted(Losses& losses);
  // Whether no name leads to it any more: only its descriptors keep its space from being freed. The
  // file system answers from memory.
  bool is_removed() const;
  // Whether it should stay open for longer than others.
  bool is_worth_keeping() const { return has_uncommitted() || keeps_writer_.load(); }
  // The ObjectCache's, which has kept it for that once since it was used.
  bool spared = false;

  // For one change of its attributes at a time.
  std::unique_lock<std::mutex> set_alone() { return std::unique_lock(setting_); }

  // That data was lost the kernel tells of each open descriptor once (errseq_t). So the shared ones
  // are for one sync at a time, from before it until what came of it is known to all.
  std::unique_lock<std::mutex> sync_alone() { return std::unique_lock(syncing_); }
  // The same for a write that is synced: of those that come together all but one have a descriptor
  // of their own, opened before they write. Where one cannot be had, as under a lease, they wait.
  struct SyncTurn {
    std::unique_lock<std::mutex> alone;
    SharedDescriptor descriptor;
  };
  SyncTurn begin_synced_write(const SharedDescriptor& shared);

  // Whether what a check of permissions needs of the object is in memory, where the kernel keeps it
  // as long as the object is open: its access control list is read from the disk by the first one.
  mutable std::atomic<bool> checked{false};

  // A lease on this regular file, which several may share that are for reading. While it lasts one
  // descriptor serves for all that is read and written, or for all that is read: to open another
  // one would be against it. `owner`: the file's. Errors as KernelLease::take().
  Outcome<std::shared_ptr<KernelLease>> join_lease(LeaseKind kind, std::uint32_t owner);
  // Once for each that joined.
  void leave_lease();
  // Open for reading and, if possible, writing, with nobody else's locks on it. A lease for reading
  // ends by this; one for writing that comes later is on this descriptor, if it is open for that.
  Outcome<SharedDescriptor> open_for_locks();

 private:
  struct Slots {
    SharedDescriptor reader;
    SharedDescriptor writer;
    SharedMapping mapping;
  };
  Outcome<SharedDescriptor> open(SharedDescriptor& slot, int flags);
  Outcome<SharedDescriptor> open_file(int flags);
  std::shared_ptr<KernelLease> lease() const {
    std::lock_guard lock(mutex_);
    return lease_;
  }
  Outcome<SharedDescriptor> prepare_for(LeaseKind kind);
  Slots close_all_but(const SharedDescriptor& kept);
  void close(const SharedDescriptor& descriptor);
  // Whether the writer is there and may be closed: nobody uses it, and nothing is uncommitted. By
  // mutex_.
  bool is_writer_free() const;
  // Whether the writer could not be opened again.
  bool is_writer_precious() const;

  std::mutex setting_;  // held over system calls; no other one is taken behind it but mutex_
  std::mutex syncing_;  // taken before the others; held over system calls
  std::mutex leasing_;  // taken before mutex_; held over system calls
  mutable std::mutex mutex_;
  std::shared_ptr<KernelLease> lease_;  // null when nobody has joined
  std::size_t joined_ = 0;
  std::weak_ptr<const UniqueFd> for_locks_;  // by leasing_; open for writing
  SharedDescriptor reader_;
  SharedDescriptor writer_;
  SharedMapping mapping_;
  std::uint64_t bytes_read_ = 0;  // as reported to mapping_for()
  int writer_rounds_ = 0;         // of close_unused_writer() since a call asked for the writer
  std::atomic<bool> keeps_writer_{false};
  std::atomic<std::uint64_t> unstable_writes_{0};
  std::atomic<std::uint64_t> synced_writes_{0};  // of these
};
using ObjectRef = std::shared_ptr<Object>;

// Objects that nothing uses any more and that wait to be closed, each with its descriptors open as
// yet.
struct Leaving {
  std::atomic<std::size_t> to_close{0};
  std::atomic<std::size_t> to_sync{0};  // before that, with something uncommitted
};

// What closes an object that nothing uses any more, for that may take a disk.
struct Closing {
  // Where the last user is none of its store's, as long as there are any.
  std::weak_ptr<Executor> workers;
  bool on_loops = false;  // the store may be asked there what its caches answer
  // Where something is uncommitted, it is synced, by these; null: it is not.
  std::weak_ptr<Executor> sync_workers{};
  Losses* losses = nullptr;
  std::shared_ptr<Leaving> leaving{};  // null: nobody counts them
};
// Throws bad_alloc.
ObjectRef make_object(const Handle& handle, UniqueFd path, FileType type, Closing closing);

// "/proc/self/fd/N": the object behind a path descriptor, for the calls that take no descriptor of
// that kind.
class ProcPath {
 public:
  explicit ProcPath(const UniqueFd& descriptor);
  const char* text() const { return text_; }

 private:
  char text_[40];
};

// The objects used last, by handle. Bounded in number; objects in use are never dropped, and those
// that are worth keeping (Object) when it is their turn for the second time.
//
// What leaves it keeps its descriptors until it is closed. So that no store takes those of others,
// however slow its disk is, what waits for that has a bound of its own, a quarter of the capacity:
// beyond it no loop adds to that, but leaves its work to a worker, which closes by itself what it
// makes the cache evict; and objects with something uncommitted stay.
class ObjectCache {
 public:
  // `capacity`: objects; 0: an equal share, with the other caches of this process that were told
  // so, of an eighth of the limit on open files (RLIMIT_NOFILE), but 8192 at most.
  explicit ObjectCache(std::size_t capacity);
  ~ObjectCache();
  ObjectCache(const ObjectCache&) = delete;
  ObjectCache& operator=(const ObjectCache&) = delete;

  ObjectRef find(const Handle& handle);
  // The object already cached under this handle, if there is one, else `object`.
  ObjectRef insert(ObjectRef object);
  // Removes an object that no longer exists, or whose identity is in doubt.
  void drop(const Handle& handle);
  // Out of descriptors: lets go all that is not in use, in all caches of this process.
  static void drop_all();
  // Of Closing, for the objects that are inserted.
  const std::shared_ptr<Leaving>& leaving() const { return leaving_; }
  bool has_too_much_to_close() const { return leaving_->to_close > most_leaving(); }
  bool has_too_much_to_sync() const { return leaving_->to_sync > most_leaving(); }
  // A round of it (Object).
  void close_unused_writers();
  // Lets go of the objects that programs of this machine have removed, which no handle leads to any
  // more, and closes those that are not in use. Blocks.
  void drop_removed();
  // The objects go without a sync. Whether any has something uncommitted.
  bool give_up_uncommitted();

 private:
  static constexpr std::size_t kShards = 16;
  struct Shard {
    std::mutex mutex;
    std::list<ObjectRef> recent;  // most recent first
    std::unordered_map<Handle, std::list<ObjectRef>::iterator, HandleHash> index;
  };
  Shard& shard_of(const Handle& handle) { return shards_[HandleHash()(handle) % kShards]; }
  struct Registry;
  static Registry& registry();
  void evict(Shard& shard, std::size_t keep, std::vector<ObjectRef>& evicted) const;
  void evict(std::size_t keep, std::vector<ObjectRef>& evicted);
  std::size_t kept_by_a_shard() const;
  std::size_t most_leaving() const { return kept_by_a_shard() * kShards / 4; }

  const std::size_t capacity_;
  const std::shared_ptr<Leaving> leaving_ = std::make_shared<Leaving>();
  std::array<Shard, kShards> shards_;
};

}  // namespace stag::vfs::posix
