// posix::Tree: the exported tree behind vfs/posix. Each public function executes the operation of
// the same name in FileSystem (vfs/vfs.h) as plain system calls on the calling thread, and may
// block.
//
// Thread: any, several at a time. Ownership: results are values; open descriptors are shared
// through the ObjectCache. Errors: a Status (vfs/status.h).
//
// Where servers go wrong, and what this class does about it:
//
// - Path names. It resolves one component at a time, relative to a descriptor, by openat2 with
//   RESOLVE_BENEATH, NO_SYMLINKS, NO_MAGICLINKS and NO_XDEV: whatever is renamed meanwhile, it
//   follows no symbolic link and crosses no mount. It uses a directory only while the directory
//   lies below the root: a directory that was moved out is Stale, and ".." of the root is the root.
//
// - Permissions. The kernel decides for the caller's user (CredentialScope), so that access control
//   lists and quotas count. The rules that NFS adds (the owner may access the data of a file, and
//   execute permission suffices to read) are checked with faccessat2; the descriptors for data are
//   opened with the server's rights and shared.
//
// - Special files. It opens regular files and directories only; it reaches other objects through
//   O_PATH descriptors.
//
// - Handles. They are the kernel's (name_to_handle_at). Where the kernel does not let the process
// open
//   those, they are inode numbers with times of birth, which a table leads back to a name
//   (inode_table.h).
//
// A file's handle goes on naming the file when it is moved, even out of the exported folder, as an
// open descriptor does: with kernel handles only directories are checked for where they lie.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/executor.h"
#include "vfs/posix/errors.h"
#include "vfs/posix/inode_table.h"
#include "vfs/posix/losses.h"
#include "vfs/posix/object.h"
#include "vfs/posix/options.h"
#include "vfs/vfs.h"

namespace stag::vfs::posix {

class Tree : public std::enable_shared_from_this<Tree> {
 public:
  // Opens the tree. Blocks. Fails with one sentence for the user.
  static Result<std::shared_ptr<Tree>, std::string> open(const Options& options);
  ~Tree();

  Handle root() const { return root_->handle; }
  // FileSystem::close_unused(), by a worker; without workers it blocks.
  void close_unused() noexcept;
  // FileSystem::identity(): file system, inode, generation and time of birth of the root folder.
  const std::string& identity() const { return identity_; }
  // FileSystem::handle_space(): handles are the kernel's, or have the inode's number.
  std::string handle_space() const { return "device " + std::to_string(device_); }
  const Limits& limits() const { return limits_; }
  std::uint64_t write_verifier_epoch() const { return losses_->epoch(); }
  bool uses_kernel_handles() const { return table_ == nullptr; }
  bool answers_at_once() const { return at_once_; }
  bool durable_names() const { return durable_names_; }

  Outcome<Attributes> attributes(const Handle& object);
  Outcome<Change> set_attributes(const Credentials& who, const Handle& object,
                                 const SetAttributes& changes, std::optional<Time> guard);
  Outcome<Access> access(const Credentials& who, const Handle& object, std::uint32_t asked);
  Outcome<Link> readlink(const Handle& symlink);
  Outcome<ReadResult> read(const Credentials& who, const Handle& file, std::uint64_t offset,
                           std::uint32_t count);
  // What a WRITE of this stability is done as.
  Stability stability_of_write(const Handle& file, Stability asked);
  Outcome<WriteResult> write(const Credentials& who, const Handle& file, std::uint64_t offset,
                             const Rope& data, Stability stability);
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

  // One page of a listing. A copy, because the sink is called on the caller's loop.
  struct Entry {
    std::string name;
    std::uint64_t file_id = 0;
    std::uint64_t cookie = 0;
    std::optional<Node> node;
  };
  struct Page {
    std::vector<Entry> entries;
    bool complete = false;  // no entry follows this page
    Listed listed;
  };
  Outcome<Page> list(const Credentials& who, const Handle& directory, const ListFrom& from);
  Outcome<Usage> usage();
  Outcome<ObjectAcls> acls(const Handle& object);
  Outcome<Change> set_acls(const Credentials& who, const Handle& object, const SetAcls& changes);

  Outcome<Sought> seek(const Credentials& who, const Handle& file, std::uint64_t offset,
                       SeekTo what);
  Outcome<Change> allocate(const Credentials& who, const Handle& file, std::uint64_t offset,
                           std::uint64_t length);
  Outcome<Change> deallocate(const Credentials& who, const Handle& file, std::uint64_t offset,
                             std::uint64_t length);
  Outcome<Change> clone(const Credentials& who, const Handle& from, const Handle& to,
                        const CopyRange& range);
  Outcome<Copied> copy(const Credentials& who, const Handle& from, const Handle& to,
                       const CopyRange& range);
  Outcome<std::string> xattr(const Credentials& who, const Handle& object, std::string_view name);
  Outcome<Change> set_xattr(const Credentials& who, const Handle& object, std::string_view name,
                            std::string_view value, XattrMode mode);
  Outcome<std::vector<std::string>> list_xattrs(const Handle& object);
  Outcome<Change> remove_xattr(const Credentials& who, const Handle& object, std::string_view name);
  // Given back on `workers`; null: wherever it is destroyed.
  Outcome<std::shared_ptr<Lease>> lease(const Handle& file, LeaseKind kind, LeaseWanted wanted,
                                        const std::shared_ptr<Executor>& workers);
  Outcome<std::unique_ptr<LocalLocks>> local_locks(const Handle& file,
                                                   const std::shared_ptr<Executor>& workers);

  // The same operations without blocking, from what is cached. nullopt when the cache does not
  // suffice, or when nothing is certain not to block (Options::at_once): the caller then uses a
  // worker.
  std::optional<Outcome<Attributes>> attributes_at_once(const Handle& object);
  std::optional<Outcome<Access>> access_at_once(const Credentials& who, const Handle& object,
                                                std::uint32_t asked);
  std::optional<Outcome<ReadResult>> read_at_once(const Credentials& who, const Handle& file,
                                                  std::uint64_t offset, std::uint32_t count);
  std::optional<Outcome<WriteResult>> write_at_once(const Credentials& who, const Handle& file,
                                                    std::uint64_t offset, const Rope& data,
                                                    Stability stability);
  std::optional<Outcome<Found>> lookup_at_once(const Credentials& who, const Handle& directory,
                                               std::string_view name);

 private:
  // Observes one change of one object: takes the attributes before it and, in finish(), after it.
  class Observation {
   public:
    Observation(const Tree& tree, ObjectRef object);
    Observation(const Observation&) = delete;
    Observation& operator=(const Observation&) = delete;
    ~Observation();
    // Without `changed` nothing has happened to the object but that it was looked at.
    Change finish(bool changed = true);
    const Outcome<Attributes>& before() const { return before_; }
    Object& object() const { return *object_; }

   private:
    const Tree& tree_;
    const ObjectRef object_;
    const ChangeWatch::Ticket ticket_;  // taken before `before_`
    const Outcome<Attributes> before_;
    bool finished_ = false;
  };
  struct Opened {
    ObjectRef object;
    Attributes attributes;
    Node node() const { return {object->handle, attributes}; }
  };

  Tree() = default;
  // Both return a sentence that says what is wrong; empty when nothing is.
  std::string open_root(const Options& options);
  std::string choose_handles(const Options& options, const struct statx& root);
  bool kernel_handles_work() const;

  // (tree.cc)
  Outcome<struct statx> stat(const UniqueFd& descriptor) const;
  Attributes attributes_of(const struct statx& stat) const;
  Outcome<Attributes> attributes_of(const Object& object) const;
  // The same when we have changed the object, which its ctime may not show.
  Outcome<Attributes> attributes_after_change(const Object& object) const;
  // Changed names and attributes are durable before the answer (RFC 1813 4.8). What can fail
  // without a loss fails before the change, in the first: a change that was made is answered so.
  // Null: nothing is to be synced, or the server may not open it.
  Outcome<SharedDescriptor> prepare_sync(Object& object);
  // Syncs what was prepared; the Status is that of a loss.
  std::optional<Status> sync(Object& object, const SharedDescriptor& prepared);
  // Where it is open already.
  std::optional<Status> sync(Object& object);
  // `sync` is fsync(2) or fdatasync(2). By the thread that has the object's syncs alone.
  std::optional<Status> flush(Object& object, const UniqueFd& opened, int (*sync)(int));
  Status lost(int error);
  Closing closing() const {
    return {workers_, at_once_, sync_workers_, losses_, cache_->leaving()};
  }

  // Handles (tree_handles.cc). resolve() needs the server's rights and is never called within a
  // CredentialScope.
  Outcome<Handle> handle_of(const UniqueFd& path, const struct statx& stat) const;
  // By what an inode differs from the one that had its number before.
  enum class TellsInodesApart : std::uint8_t { TimeOfBirth, KernelHandle, Table };
  TellsInodesApart what_tells_inodes_apart(const struct statx& root) const;
  // Of `name` in the directory, or with "" of what the descriptor is of. With a table only.
  InodeKey key_of(int descriptor, const char* name, const struct statx& stat) const;
  std::string identity_of(const Handle& root, const struct statx& stat) const;
  // The number of the file system that the root lies on; the same after a restart of the machine
  // where the file system has a lasting id.
  std::uint64_t lasting_id(const struct statx& root) const;
  Outcome<ObjectRef> resolve(const Handle& handle);
  // The root, or what the cache has; else null.
  ObjectRef find_open(const Handle& handle);
  Outcome<UniqueFd> open_by_kernel(const Handle& handle);
  class NameSearch;
  // The object of an O_PATH descriptor that a handle led to.
  Outcome<ObjectRef> keep(const Handle& handle, UniqueFd path, const struct statx& stat);
  // The object of an O_PATH descriptor, from the cache if it is there.
  Outcome<Opened> adopt(UniqueFd path);
  Outcome<ObjectRef> resolve_directory(const Handle& handle);
  std::optional<Status> directory_fault(const Object& object) const;
  bool lies_beneath_root(const UniqueFd& directory) const;
  // The object that an entry leads to, opened with the rights of the thread's current user;
  // `resolve` adds to openat2's flags.
  Outcome<Opened> open_entry(const Object& directory, std::string_view name,
                             std::uint64_t resolve = 0);
  Outcome<Opened> open_parent(const Object& directory);
  // Keep the inode table up to date, where there is one: what is remembered was found there a
  // moment ago. Never called within a CredentialScope: the files of the table belong to the
  // server's user.
  void remember(const Object& directory, std::string_view name, const Handle& object);
  void forget(const Object& directory, std::string_view name, const Handle& object);
  // One of its names was removed. If it was the last one, the object does not stay open in the
  // cache, and its handle is not that of what has its number next.
  void drop_entry(const Object& object);
  bool leads_elsewhere(const Object& directory, std::string_view name, InodeKey object) const;

  // By a worker; without workers it blocks. False: there was no memory for the job.
  bool run_by_worker(void (Tree::*work)()) noexcept;
  // By the thread that has set closing_unused_.
  void close_unused_now();
  // Closes what programs of this machine have removed. Of the threads that ask while one does, one
  // does it once more for all.
  void close_removed();
  // The same where something did not fit on the disk. Whether it is to be tried again; false on a
  // loop, which must not wait for that.
  bool make_room() noexcept;
  // A system call that takes room, with errno. It is repeated once room was made.
  template <class Call>
  auto with_room(Call call) {
    auto result = call();
    if (result < 0 && is_full(errno)) {
      const int error = errno;
      if (make_room()) return call();
      errno = error;
    }
    return result;
  }

  // Sweeps the inode table a little further, by a worker, when enough names have been recorded
  // since (tree_sweep.cc).
  void sweep_now_and_then();
  // By the thread that has set sweeping_.
  void sweep();
  void sweep_step();
  // The directory of names in the table. Stale: none of its own names leads to it any more; Delay:
  // that cannot be found out now.
  Outcome<ObjectRef> find_directory(InodeKey key);

  // Data and attributes (tree_data.cc, tree_attributes.cc).
  // The object, for use on a loop; null when it is not open, or when loops must not use any.
  ObjectRef at_hand(const Handle& handle);
  Outcome<Opened> resolve_file(const Handle& handle);
  // Whether the file is shorter than `end` bytes by now.
  bool is_cut(const Object& file, std::uint64_t end) const;
  // Reads a range that lies within the file without blocking; false when not all of it can be read
  // so.
  bool read_now(Object& file, const UniqueFd& reader, const Attributes& attributes,
                std::uint64_t offset, MutableBytes to) const;
  struct WhatToWrite {
    std::uint64_t offset;
    const Rope& data;
    Stability stability;
  };
  // `open` yields the descriptor, once the caller's permission was checked.
  template <class Writer>
  Outcome<WriteResult> write_to(const Credentials& who, const ObjectRef& object, Writer open,
                                const WhatToWrite& what);
  // Whether a check of the caller's permission takes nothing from a disk; the first one of another
  // user than the owner may.
  bool checks_at_once(const Credentials& who, const Object& object,
                      const Attributes& attributes) const;
  static void note_checked(const Credentials& who, const Object& object,
                           const Attributes& attributes);
  // Whether it takes the kernel, asked as the caller, to say whether they may move data of the
  // file.
  static bool asks_kernel(const Credentials& who, const Attributes& attributes);
  std::optional<Status> data_fault(const Credentials& who, const Object& file,
                                   const Attributes& attributes, bool writing) const;
  std::optional<Status> apply(const Credentials& who, Object& object, const Attributes& before,
                              const SetAttributes& changes);
  std::optional<Status> apply_size(const Credentials& who, Object& object, const Attributes& before,
                                   std::uint64_t size);
  std::optional<Status> apply_times(const Credentials& who, Object& object,
                                    const Attributes& before, const SetAttributes& changes);
  Outcome<Access> access_of(const Credentials& who, const Object& object,
                            std::uint32_t asked) const;

  // Ranges and extended attributes (tree_ranges.cc, tree_xattr.cc).
  // Syncs the object first, where changes are durable when they are answered.
  Outcome<Change> finish_durably(Observation& observation, const SharedDescriptor& prepared);
  Outcome<Change> reshape(const Credentials& who, const Handle& file, std::uint64_t offset,
                          std::uint64_t length, int mode);
  // Both files of a clone or copy, open, and the caller let in; `range` with its length.
  struct Pair {
    ObjectRef source;
    ObjectRef target;
    SharedDescriptor reader;
    SharedDescriptor writer;
    CopyRange range;
  };
  Outcome<Pair> open_pair(const Credentials& who, const Handle& from, const Handle& to,
                          const CopyRange& range);
  Outcome<ObjectRef> resolve_with_xattrs(const Handle& handle, std::string_view name);
  template <class Apply>
  Outcome<Change> change_xattr(const Credentials& who, const Handle& object, std::string_view name,
                               Apply apply);

  // Names (tree_names.cc, tree_moves.cc).
  Outcome<Found> find(const Credentials& who, const Object& directory, std::string_view name,
                      std::uint64_t resolve);
  Outcome<Opened> adopt_file(const UniqueFd& file);
  Outcome<Opened> create_file(const Credentials& who, Object& directory, std::string_view name,
                              const SetAttributes& attributes);
  UniqueFd make_nameless(const Credentials& who, const Object& directory,
                         const SetAttributes& attributes);
  std::optional<Outcome<Opened>> create_whole(const Credentials& who, Object& directory,
                                              std::string_view name,
                                              const SetAttributes& attributes);
  Outcome<Opened> reopen(const Credentials& who, Object& directory, std::string_view name,
                         const CreateHow& how);
  template <class Make>
  Outcome<Created> make(const Handle& directory, std::string_view name,
                        const SetAttributes& attributes, Make make);
  Outcome<Opened> finish_making(const Credentials& who, Object& directory, std::string_view name,
                                FileType type, const SetAttributes& attributes);
  static SetAttributes unset_after_making(const Credentials& who, const Attributes& made,
                                          const SetAttributes& wanted);
  Outcome<Opened> settle(const Credentials& who, Object& directory, std::string_view name,
                         Opened made, const SetAttributes& rest);
  void unmake(const Object& directory, std::string_view name, const UniqueFd& made);
  Outcome<Change> unlink(const Credentials& who, const Handle& directory, std::string_view name,
                         int flags);

  // Listing (tree_list.cc).
  std::optional<Status> open_and_collect(const Credentials& who, const Object& directory,
                                         const ListFrom& from, Page& page);
  std::optional<Status> collect(const Object& directory, int listing, const ListFrom& from,
                                Page& page);
  void add_node(const Object& directory, Entry& entry);

  ObjectRef root_;
  std::string identity_;
  std::unique_ptr<InodeTable> table_;  // null with kernel handles
  std::unique_ptr<ObjectCache> cache_;
  // The file system's, which keeps them; none: the thread that records names sweeps.
  std::weak_ptr<Executor> workers_;
  std::weak_ptr<Executor> sync_workers_;
  std::atomic<bool> closing_unused_{false};
  std::mutex closing_removed_;                           // held over system calls
  std::atomic<std::uint64_t> closing_removed_begun_{0};  // times; changed with the mutex
  std::atomic<std::int64_t> rows_due_{0};                // for the sweep to look at
  std::atomic<bool> sweeping_{false};
  InodeTable::Row swept_ = InodeTable::before_all();  // the last one; of who has set sweeping_
  std::uint64_t file_system_id_ = 0;                  // of the file system that the root lies on
  std::uint64_t reported_fsid_ = 0;                   // what attributes report instead
  std::uint64_t device_ = 0;
  std::uint64_t root_inode_ = 0;
  TellsInodesApart apart_by_ = TellsInodesApart::TimeOfBirth;
  Limits limits_;
  bool durable_names_ = true;
  bool at_once_ = false;
  bool in_memory_ = false;  // no read waits for a disk
  bool sees_local_programs_ = true;
  bool is_local_ = false;     // the file system is one of this machine
  Losses* losses_ = nullptr;  // of the file system
};

}  // namespace stag::vfs::posix
