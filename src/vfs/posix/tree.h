// The exported tree behind vfs/posix: every operation of FileSystem as plain system calls on the
// calling thread, which may block. vfs/vfs.h says what each does.
//
// Where servers go wrong, and what is done here about it:
// - Names are resolved one component at a time, relative to a descriptor, by openat2 with
// RESOLVE_BENEATH,
//   NO_SYMLINKS, NO_MAGICLINKS and NO_XDEV: whatever is renamed meanwhile, no symlink is followed
//   and no mount crossed. A directory is used only while its path lies below the root's: one that
//   was moved out is stale, and ".." of the root is the root.
// - Permission is the kernel's decision, taken as the caller (CredentialScope), so ACLs and quotas
// count. What NFS adds,
//   the owner's right to the data of its file and reading what one may execute, is checked with
//   faccessat2; the data descriptors themselves are opened as the server and shared.
// - Only regular files and directories are ever opened; everything else is reached through O_PATH
// descriptors.
// - Handles are the kernel's (name_to_handle_at) or, where it does not let us open them, inode
// numbers with their time
//   of birth that a table leads back to a name (inode_table.h).
//
// A handle of a file keeps naming that file when somebody moves it, as an open descriptor does,
// also out of the exported folder: with kernel handles a file that is no directory is not asked
// where it lies.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/executor.h"
#include "vfs/posix/inode_table.h"
#include "vfs/posix/object.h"
#include "vfs/vfs.h"

namespace stag::vfs::posix {

enum class HandleKind : std::uint8_t {
  Automatic,  // Kernel where it works, else Table
  Kernel,
  Table,
};

// What is answered on the caller's loop, where that takes no waiting, and what by workers.
enum class AtOnce : std::uint8_t {
  Automatic,  // Always on disks and in memory of this machine (residence.h), else Never
  Always,
  Never,
};

struct Options {
  std::string root;  // an existing directory
  // Where the table of inodes is kept; empty keeps it in memory: handles do not survive a restart
  // then.
  std::string state_directory;
  HandleKind handles = HandleKind::Automatic;
  // Objects kept open, up to three descriptors each; 0 takes what the limit on open files suggests.
  std::size_t cached_objects = 0;
  // Makes changes of names and attributes durable before they are answered, as NFS wants (RFC
  // 1813 4.8). Without it a crash of the machine may undo what clients were told.
  bool durable_names = true;
  AtOnce at_once = AtOnce::Automatic;
  // Where the store may block: what ends in an fsync, and everything else. Null: on the threads of
  // the caller's loop. A caller's client counts as theirs (vfs::CallerContext).
  std::shared_ptr<Executor> workers{};
  std::shared_ptr<Executor> sync_workers{};
  // What attributes give as file_system_id; 0: the number of the file system below.
  std::uint64_t file_system_id = 0;
};

class Tree {
 public:
  // Fails with one sentence for the user.
  static Result<std::unique_ptr<Tree>, std::string> open(const Options& options);
  ~Tree();

  Handle root() const { return root_->handle; }
  // Of the root folder: its file system, inode, generation and time of birth.
  const std::string& identity() const { return identity_; }
  const Limits& limits() const { return limits_; }
  std::uint64_t write_verifier_epoch() const { return losses_.load(); }
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

  // One page of a listing, copied: the sink is called elsewhere.
  struct Entry {
    std::string name;
    std::uint64_t file_id = 0;
    std::uint64_t cookie = 0;
    std::optional<Node> node;
  };
  struct Page {
    std::vector<Entry> entries;
    bool complete = false;  // nothing follows
    Listed listed;
  };
  Outcome<Page> list(const Credentials& who, const Handle& directory, const ListFrom& from);
  Outcome<Usage> usage();
  Outcome<ObjectAcls> acls(const Handle& object);
  Outcome<Change> set_acls(const Credentials& who, const Handle& object, const SetAcls& changes);

  // Answers that need no blocking, from what is cached; nothing when that does not suffice, and
  // never where not even that is certain not to block (Options::at_once).
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
  // One change of one object, from the attributes before it to those after.
  class Observation {
   public:
    Observation(const Tree& tree, ObjectRef object);
    Observation(const Observation&) = delete;
    Observation& operator=(const Observation&) = delete;
    ~Observation();
    Change finish();
    const Outcome<Attributes>& before() const { return before_; }
    Object& object() const { return *object_; }

   private:
    const Tree& tree_;
    const ObjectRef object_;
    const ChangeWatch::Ticket ticket_;  // taken before the look
    const Outcome<Attributes> before_;
    bool finished_ = false;
  };
  struct Opened {
    ObjectRef object;
    Attributes attributes;
    Node node() const { return {object->handle, attributes}; }
  };

  Tree() = default;
  // Both answer with what is wrong, or nothing.
  std::string open_root(const Options& options);
  std::string choose_handles(const Options& options, const struct statx& root);
  bool kernel_handles_work() const;

  // (tree.cc)
  Outcome<struct statx> stat(const Descriptor& descriptor) const;
  Attributes attributes_of(const struct statx& stat) const;
  Outcome<Attributes> attributes_of(const Object& object) const;
  std::optional<Status> sync(Object& object);
  std::optional<Status> sync_names(Object& directory);
  Status lost(int error);
  static bool is_loss(std::optional<Status> fault);

  // Handles (tree_handles.cc). resolve() wants the server's rights: never within a CredentialScope.
  Outcome<Handle> handle_of(const Descriptor& path, const struct statx& stat) const;
  std::string identity_of(const Handle& root, const struct statx& stat) const;
  // Of the file system below, the same after the machine has started again where that can be.
  std::uint64_t lasting_id(const struct statx& root) const;
  Outcome<ObjectRef> resolve(const Handle& handle, unsigned depth = 0);
  Outcome<Descriptor> open_by_kernel(const Handle& handle);
  Outcome<Descriptor> open_by_table(InodeKey key, unsigned depth);
  // The object under a path descriptor, perhaps cached before.
  Outcome<Opened> adopt(Descriptor path);
  Outcome<ObjectRef> resolve_directory(const Handle& handle);
  std::optional<Status> directory_fault(const Object& object) const;
  bool lies_beneath_root(const Descriptor& directory) const;
  // The object an entry leads to, as the thread's current user sees it; `resolve` adds to openat2's
  // flags.
  Outcome<Opened> open_entry(const Object& directory, std::string_view name,
                             std::uint64_t resolve = 0);
  Outcome<Opened> open_parent(const Object& directory);
  // The table's part, where it is used. Never within a CredentialScope: its files are the server's.
  std::optional<Status> remember(const Object& directory, std::string_view name,
                                 const Handle& object);
  void forget(const Object& directory, std::string_view name);

  // Data and attributes (tree_data.cc, tree_attributes.cc).
  // The object if it may be asked on a loop; null when it is not open or nothing may be.
  ObjectRef at_hand(const Handle& handle);
  Outcome<Opened> resolve_file(const Handle& handle);
  // Whether the file has become shorter than `end` meanwhile.
  bool is_cut(const Object& file, std::uint64_t end) const;
  // All of a range that lies within the file, without blocking; false when that cannot be.
  bool read_now(Object& file, const Descriptor& reader, const Attributes& attributes,
                std::uint64_t offset, MutableBytes to) const;
  struct WhatToWrite {
    std::uint64_t offset;
    const Rope& data;
    Stability stability;
  };
  // `open` gives the descriptor when the caller has been let in.
  template <class Writer>
  Outcome<WriteResult> write_to(const Credentials& who, const ObjectRef& object, Writer open,
                                const WhatToWrite& what);
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

  // Names (tree_names.cc, tree_moves.cc).
  Outcome<Found> find(const Credentials& who, const Object& directory, std::string_view name,
                      std::uint64_t resolve);
  Outcome<Opened> create_file(const Credentials& who, Object& directory, std::string_view name,
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
  void unmake(const Object& directory, std::string_view name, const Descriptor& made);
  Outcome<Change> unlink(const Credentials& who, const Handle& directory, std::string_view name,
                         int flags);
  Outcome<Handle> entry_handle(const Object& directory, std::string_view name);

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
  std::uint64_t file_system_id_ = 0;  // of the file system below
  std::uint64_t reported_fsid_ = 0;   // what attributes give instead
  std::uint64_t device_ = 0;
  Limits limits_;
  bool durable_names_ = true;
  bool at_once_ = false;
  bool in_memory_ = false;  // reading never waits for a disk
  std::atomic<std::uint64_t> losses_{0};
};

}  // namespace stag::vfs::posix
