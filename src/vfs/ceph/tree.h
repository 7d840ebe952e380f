// ceph::Tree: the exported tree behind vfs/ceph. Each public function executes the operation of the
// same name in FileSystem (vfs/vfs.h) by calls of libcephfs on the calling thread, and blocks as
// long as the cluster takes.
//
// Thread: any, several at a time. Ownership: results are values. Errors: a Status (vfs/status.h).
//
// - Names. libcephfs checks the caller's permissions on directories, with access control lists, and
//   follows no symbolic link here. The root is that of the mount, so that ".." ends there.
//
// - Data. The rules that NFS adds (the owner may access the data of a file, and execute permission
//   suffices to read) are checked here; the files are opened as root.
//
// - Changes. Other clients of the cluster change the same objects, unseen. So a Change has what was
//   there after it, and never claims that what was there before belongs to it.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "vfs/ceph/mount.h"
#include "vfs/ceph/name_turns.h"
#include "vfs/ceph/open_files.h"
#include "vfs/vfs.h"

namespace stag::vfs::ceph {

class Tree {
 public:
  // Mounts the file system. Blocks. Fails with one sentence for the user.
  static Result<std::unique_ptr<Tree>, std::string> open(const Options& options);

  Handle root() const { return root_handle_; }
  const std::string& identity() const { return identity_; }
  const std::string& handle_space() const { return handle_space_; }
  std::uint64_t write_verifier_epoch() const { return losses_.load(); }
  bool durable_names() const { return durable_names_; }
  static Limits limits();

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
  Outcome<Change> deallocate(const Credentials& who, const Handle& file, std::uint64_t offset,
                             std::uint64_t length);
  Outcome<std::string> xattr(const Credentials& who, const Handle& object, std::string_view name);
  Outcome<Change> set_xattr(const Credentials& who, const Handle& object, std::string_view name,
                            std::string_view value, XattrMode mode);
  Outcome<std::vector<std::string>> list_xattrs(const Handle& object);
  Outcome<Change> remove_xattr(const Credentials& who, const Handle& object, std::string_view name);

  // Closes the files that nobody has used since the last time but one: each has rights that other
  // clients of the cluster wait for, and one that was removed elsewhere is there as long as it is
  // open here.
  void close_unused();

 private:
  // An object that is there.
  struct Object {
    InodeRef inode;
    Handle handle;
    Attributes attributes;
    Node node() const { return {handle, attributes}; }
  };

  explicit Tree(const Options& options)
      : file_system_id_(options.file_system_id), durable_names_(options.durable_names) {}
  std::string open_root();

  // Handles, attributes and permissions (tree.cc).
  Outcome<Object> adopt(InodeRef inode, const Stat& stat) const;
  Outcome<Object> object_of(InodeRef inode) const;
  Outcome<Object> resolve(const Handle& handle) const;
  Outcome<Object> resolve_directory(const Handle& handle) const;
  Outcome<Object> resolve_file(const Handle& handle) const;
  Attributes attributes_of(const Stat& stat) const;
  Outcome<Stat> stat(Inode* inode) const;
  Change change_of(const Object& before) const;
  bool permitted(const Credentials& who, const Object& object, std::uint32_t wanted) const;
  std::optional<Status> data_fault(const Credentials& who, const Object& file, bool writing) const;
  std::optional<Status> sync(const Object& object);
  std::optional<Status> sync_change(const Object& object);

  // Changing attributes (tree_attributes.cc).
  std::optional<Status> apply(const Credentials& who, const Object& object,
                              const SetAttributes& changes);
  // The mode that a file with set-id bits has once it gets another owner, or other data from
  // a user who is not root; nullopt when there is nothing to lose.
  static std::optional<std::uint32_t> mode_without_ids(const Attributes& object);

  // Entries that are found and made (tree_names.cc).
  Outcome<Object> find(const Permissions& who, const Object& directory,
                       std::string_view name) const;
  Outcome<Object> find_in_turn(const Permissions& who, const Object& directory,
                               std::string_view name) const;
  template <class Make>
  Outcome<Created> make(const Handle& directory, std::string_view name,
                        const SetAttributes& attributes, Make make);
  template <class Call>
  Outcome<Object> made_by_call(const Credentials& who, const SetAttributes& attributes, Call call);
  Outcome<Object> make_file(const Credentials& who, const Object& directory, std::string_view name,
                            const SetAttributes& attributes);
  Outcome<Object> reopen(const Credentials& who, const Object& directory, std::string_view name,
                         const CreateHow& how);
  // Removed and moved (tree_moves.cc).
  template <class Remove>
  Outcome<Change> unlink(const Credentials& who, const Handle& directory, std::string_view name,
                         Remove remove);
  // What a rename took and replaced.
  struct Move {
    std::optional<Object> replaced;
    bool nothing = false;  // both names lead to one file
  };
  Outcome<Move> move(const Credentials& who, const Object& source, std::string_view from,
                     const Object& target, std::string_view to);
  void refresh(const Object& directory) const;
  void close_if_gone(const Object& object);

  // Listing (tree_list.cc).
  std::optional<Status> collect(ceph_dir_result* listing, const Object& directory,
                                const ListFrom& from, Page& page) const;

  // Extended attributes (tree_xattr.cc).
  Outcome<std::string> read_xattr(const Object& object, const char* name,
                                  const UserPerm* who) const;
  Outcome<Object> resolve_with_xattrs(const Handle& handle, std::string_view name) const;
  template <class Apply>
  Outcome<Change> change_xattr(const Credentials& who, const Handle& object, std::string_view name,
                               Apply apply);
  Outcome<Acl> read_acl(const Object& object, const char* which) const;
  std::optional<Status> write_acl(const UserPerm* who, const Object& object, const char* which,
                                  const Acl& acl);
  std::optional<Status> write_acls(const UserPerm* who, const Object& object,
                                   const SetAcls& changes);

  std::unique_ptr<Mount> mount_;
  mutable NameTurns names_;
  // Losses of data, counted from a number of this mount's own: with another mount goes what it had
  // cached, though handles stay good.
  std::atomic<std::uint64_t> losses_{0};
  std::unique_ptr<OpenFiles> readers_;
  std::unique_ptr<OpenFiles> writers_;
  Handle root_handle_;
  std::uint64_t root_inode_ = 0;
  std::string identity_;
  std::string handle_space_;
  std::uint64_t file_system_id_;
  const bool durable_names_;
};

}  // namespace stag::vfs::ceph
