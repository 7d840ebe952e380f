// vfs: the interface that a store implements to be served. One FileSystem is one exported tree.
//
// Vocabulary. Objects are named by Handles, entries by (directory handle, name). Names are bytes:
// anything but '/' and NUL, no encoding implied. No operation follows a symbolic link or leaves the
// tree, and ".." of the root is the root.
//
// Permissions. The store checks every operation against the caller's Credentials by the rules that
// NFS servers keep: the owner may read and write a file whatever its mode bits say, and execute
// permission suffices to read (RFC 1813 section 4.4), because the client has done the check that
// open(2) does. uid 0 passes every check; the server squashes it where an export wants that.
//
// Threads. Any number of loops may call a FileSystem at the same time. Each operation begins and
// ends on the caller's loop (CallerContext::loop); in between it may run on other threads, and it
// may have ended when the call returns (vfs/operation.h).
//
// Ownership. Arguments passed by reference (handles, names, credentials) outlive the Operation, as
// they do when the caller awaits the call expression. The Buffers that read() yields never change
// afterwards, whatever is written meanwhile: they go to the wire as they are. write() takes its
// Rope over: a store may keep owned Buffers as its own storage instead of copying them, so the
// caller gives them away. The store copies borrowed Buffers before the Operation ends.
//
// Errors. A Status says why an operation failed; on failure nothing has changed, unless the Status
// is Io. A protocol that wants attributes next to an error calls attributes(). Every operation can
// fail with Stale, BadHandle, Io, Delay or TooManyObjects; the comments below name the further
// Statuses that are not obvious.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/rope.h"
#include "vfs/acl.h"
#include "vfs/local.h"
#include "vfs/operation.h"
#include "vfs/status.h"
#include "vfs/types.h"

namespace stag::vfs {

// An object found or made.
struct Node {
  Handle handle;
  Attributes attributes;
};

// The results of the operations, in the order of FileSystem's functions.
struct Found {
  Node node;
  std::optional<Attributes> directory;  // of the directory searched
};

struct ReadResult {
  Rope data;
  bool eof = false;  // the data ends at or beyond the end of the file
  Attributes attributes;
};

struct WriteResult {
  std::uint32_t count = 0;  // bytes written; fewer than asked only when the store ran full
  Stability committed = Stability::Unstable;
  Change file;
};

struct Created {
  Node node;
  Change directory;
};

struct Renamed {
  Change from;
  Change to;
};

struct Linked {
  Attributes attributes;  // of the file that got one more name
  Change directory;
};

struct Link {
  std::string target;
  Attributes attributes;
};

struct Access {
  std::uint32_t granted = 0;  // those of the requested bits (vfs::access) that are granted
  Attributes attributes;
};

struct ObjectAcls {
  Acls acls;
  Attributes attributes;
};

// What seek() looks for. Beyond the end of a file everything is a hole.
enum class SeekTo : std::uint8_t { Data, Hole };

struct Sought {
  std::uint64_t offset = 0;
  bool eof = false;  // none before the end of the file; `offset` is that end
};

// A range that goes from one place of a file to another place of it, or of another file; bytes.
struct CopyRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t length = 0;  // 0: all that follows `from`
};

struct Copied {
  std::uint64_t count = 0;  // bytes; it may be fewer than asked for, which is no error
  Stability committed = Stability::Unstable;
  Change file;  // the one that is copied to
};

// How set_xattr() treats the name.
enum class XattrMode : std::uint8_t {
  Either,
  Create,   // Exists when it is there
  Replace,  // NoEntry when it is not
};

// How create() treats a name that is taken (RFC 1813 3.3.8).
enum class CreateMode : std::uint8_t {
  Unchecked,  // opens the existing regular file, applying only `size` of the attributes
  Guarded,    // fails with Exists
  // Fails with Exists, unless the file was made with the same verifier: then the call is a
  // repetition, succeeds and sets nothing again. The store keeps the verifier durably, in the times
  // of the file, so a client sets the times afterwards.
  Exclusive,
};

struct CreateHow {
  CreateMode mode = CreateMode::Guarded;
  // With Exclusive, size and times fail with Invalid.
  SetAttributes attributes;
  Verifier verifier{};  // Exclusive only
};

// The object that mknod() makes: Fifo, Socket, BlockDevice or CharacterDevice. The last two have a
// device number, and only root may make them.
struct Special {
  FileType type = FileType::Fifo;
  Device device;
};

// One entry of a listing. `name` and `node` are valid during the sink's call only.
struct DirectoryEntry {
  std::string_view name;
  std::uint64_t file_id = 0;
  std::uint64_t cookie = 0;  // ListFrom::cookie for the entries after this one; never 0
  // Null without ListFrom::with_nodes, and when the entry was removed meanwhile or cannot be
  // reached (a mount point).
  const Node* node = nullptr;
};

// Receives the entries of one page of a listing.
class DirectorySink {
 public:
  // Takes one entry. False when the entry does not fit: it was not taken, and the page ends before
  // it.
  virtual bool entry(const DirectoryEntry& entry) = 0;

 protected:
  ~DirectorySink() = default;
};

struct ListFrom {
  std::uint64_t cookie = 0;  // the entry to continue after; 0: from the start
  // Listed::verifier of the page that the cookie comes from. Not checked when it is absent (NFSv2
  // has none) or the cookie is 0.
  std::optional<Verifier> verifier;
  bool with_nodes = false;  // entries have handles and attributes
  // Bytes that the store prepares at most for the sink; an entry counts its name and 24 bytes, with
  // nodes 160.
  std::uint32_t budget = 64 * 1024;
};

struct Listed {
  bool eof = false;     // the last entry of the directory was taken by the sink
  Verifier verifier{};  // for cookies of this listing
  Attributes directory;
};

// Space and objects, in bytes and counts (RFC 1813 3.3.18).
struct Usage {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t available_bytes = 0;  // that the caller may use
  std::uint64_t total_files = 0;
  std::uint64_t free_files = 0;
  std::uint64_t available_files = 0;
};

// Properties of a store, the same for all its objects (RFC 1813 3.3.19, 3.3.20). The server chooses
// the transfer sizes.
struct Limits {
  std::uint64_t max_file_size = 0;  // bytes
  Time time_granularity{0, 1};
  std::uint32_t max_links = 0;   // names of one file
  std::uint32_t max_name = 255;  // bytes
  bool hard_links = true;
  bool symlinks = true;
  bool times_can_be_set = true;
  bool chown_restricted = true;  // only root gives files away
  bool case_insensitive = false;
  bool case_preserving = true;
  bool read_only = false;
  bool xattrs = false;            // extended attributes of users
  std::uint32_t clone_block = 1;  // bytes; clones begin and end at multiples of it
};

inline constexpr std::size_t kLargestXattr = 64 * 1024;

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // The root directory; constant.
  virtual Handle root() const = 0;
  // Bytes that distinguish this tree from every other tree in which the same handles could name
  // something; a server binds the handles that it gives out to them. The same for the same tree
  // after restarts of process and machine. Empty where no other store accepts this store's handles.
  virtual std::string identity() const { return {}; }
  // Bytes that this store has in common with those others whose handles, where they are equal, name
  // the same object: trees of one file system. Good while the process runs. Empty: no other store
  // has a handle in common with this one.
  virtual std::string handle_space() const { return {}; }
  virtual Limits limits() const = 0;
  // Rises whenever data written Unstable may have been lost without a restart (a failed sync). A
  // server makes its write verifier of this number and of one that changes with each start of the
  // process (RFC 1813 3.3.7).
  virtual std::uint64_t write_verifier_epoch() const { return 0; }

  // The server of the store calls this every ten seconds or so: what no client has used since the
  // last time but one, such as files that are kept open, is let go. Does not block. Thread: any,
  // but one.
  virtual void close_unused() noexcept {}

  // The user as whom the store acts for this caller. A store that cannot switch users acts as the
  // user of its process.
  virtual const Credentials& acting_as(const Credentials& caller) const { return caller; }

  // The attributes of `object`; Stale when its handle names nothing any more.
  virtual Operation<Attributes> attributes(CallerContext caller, const Handle& object) = 0;
  // Sets the attributes that are present in `changes`. With `guard`: fails with NotSync unless the
  // object's ctime equals it (RFC 1813 3.3.2). Errors: Perm, Access, Invalid (size of an object
  // that is no regular file; IsDirectory of a directory), NotSupported (mode of a symlink),
  // NoSpace, FileTooBig, ReadOnly.
  virtual Operation<Change> set_attributes(CallerContext caller, const Handle& object,
                                           const SetAttributes& changes,
                                           std::optional<Time> guard) = 0;
  // The object that `name` leads to. "." is the directory itself, ".." its parent.
  virtual Operation<Found> lookup(CallerContext caller, const Handle& directory,
                                  std::string_view name) = 0;
  // Which of the bits `asked` (vfs::access) the caller has on `object`.
  virtual Operation<Access> access(CallerContext caller, const Handle& object,
                                   std::uint32_t asked) = 0;
  // The text of a symbolic link. NotSymlink.
  virtual Operation<Link> readlink(CallerContext caller, const Handle& symlink) = 0;

  // Reads at most `count` bytes from byte `offset` on; fewer only at the end of the file. Errors:
  // IsDirectory; Invalid when `file` is no regular file.
  virtual Operation<ReadResult> read(CallerContext caller, const Handle& file, std::uint64_t offset,
                                     std::uint32_t count) = 0;
  // Writes `data` from byte `offset` on, at least as durably as `stability` says. Errors:
  // FileTooBig, NoSpace, QuotaExceeded.
  virtual Operation<WriteResult> write(CallerContext caller, const Handle& file,
                                       std::uint64_t offset, Rope data, Stability stability) = 0;
  // Makes the data in the range [offset, offset + count) durable; count 0: to the end of the file.
  virtual Operation<Change> commit(CallerContext caller, const Handle& file, std::uint64_t offset,
                                   std::uint32_t count) = 0;
  // Memory of `bytes` bytes for data that is going to be written, so that a transport can place the
  // data where it will stay. Optional: write() takes any Rope. Throws std::bad_alloc.
  virtual Block placement(std::size_t bytes) { return Block::allocate(bytes); }

  // The creating operations make an object called `name` in `directory`. Errors: Exists,
  // NotDirectory, NameTooLong, NoSpace, Access. "." and ".." fail with Exists; the empty name and
  // names with '/' or NUL fail with Access (RFC 1813 section 3.2), also in lookup, remove, rmdir
  // and rename.
  virtual Operation<Created> create(CallerContext caller, const Handle& directory,
                                    std::string_view name, const CreateHow& how) = 0;
  virtual Operation<Created> mkdir(CallerContext caller, const Handle& directory,
                                   std::string_view name, const SetAttributes& attributes) = 0;
  virtual Operation<Created> symlink(CallerContext caller, const Handle& directory,
                                     std::string_view name, std::string_view target,
                                     const SetAttributes& attributes) = 0;
  virtual Operation<Created> mknod(CallerContext caller, const Handle& directory,
                                   std::string_view name, Special special,
                                   const SetAttributes& attributes) = 0;
  // Gives `file` one more name. Errors: IsDirectory when `file` is a directory, TooManyLinks.
  virtual Operation<Linked> link(CallerContext caller, const Handle& file, const Handle& directory,
                                 std::string_view name) = 0;

  // Removes the name of an object that is no directory; IsDirectory otherwise. "." and ".." fail
  // with Invalid, as in rmdir and rename.
  virtual Operation<Change> remove(CallerContext caller, const Handle& directory,
                                   std::string_view name) = 0;
  // Removes an empty directory. Errors: NotEmpty, NotDirectory.
  virtual Operation<Change> rmdir(CallerContext caller, const Handle& directory,
                                  std::string_view name) = 0;
  // Moves an entry, and replaces a target of the same kind atomically (RFC 1813 3.3.14). Errors:
  // Exists when only one of the two is a directory; NotEmpty; Invalid when a directory would move
  // into itself. When both names lead to the same file, nothing happens.
  virtual Operation<Renamed> rename(CallerContext caller, const Handle& from_directory,
                                    std::string_view from, const Handle& to_directory,
                                    std::string_view to) = 0;

  // Lists one page of `directory`. An entry that exists from the first page to the last is listed
  // exactly once, "." and ".." included, whatever entries come and go meanwhile. The sink is called
  // on the caller's loop, before the Operation ends. Errors: BadCookie.
  virtual Operation<Listed> list(CallerContext caller, const Handle& directory, ListFrom from,
                                 DirectorySink& sink) = 0;

  // Space and object counts of the file system.
  virtual Operation<Usage> usage(CallerContext caller) = 0;

  // The access control lists of `object`; every caller may read them. A store without lists fails
  // with NotSupported, as this default does. A store with lists honours them in every operation,
  // and gives new objects the default list of their directory.
  virtual Operation<ObjectAcls> acls(CallerContext caller, const Handle& object);
  // Replaces the lists that are present in `changes`; the mode follows the access list. Errors:
  // Perm unless the caller is the owner or root; Access for a default list of an object that is no
  // directory; NotSupported for symlinks; NoSpace.
  virtual Operation<Change> set_acls(CallerContext caller, const Handle& object,
                                     const SetAcls& changes);

  // Ranges of regular files (IsDirectory, Invalid otherwise). A store may lack any of these: it
  // says NotSupported then, as all the defaults do.
  //
  // The first place at or after `offset` that is what is looked for. Invalid when `offset` is not
  // before the end of the file.
  virtual Operation<Sought> seek(CallerContext caller, const Handle& file, std::uint64_t offset,
                                 SeekTo what);
  // Afterwards writes to the range do not fail for want of space; a file that ends within or before
  // it grows. Invalid for no bytes, FileTooBig, NoSpace, QuotaExceeded.
  virtual Operation<Change> allocate(CallerContext caller, const Handle& file, std::uint64_t offset,
                                     std::uint64_t length);
  // The range reads as zeros and gives its storage back; the size stays.
  virtual Operation<Change> deallocate(CallerContext caller, const Handle& file,
                                       std::uint64_t offset, std::uint64_t length);
  // The range of `to` becomes that of `from`, all at once, and shares its storage. Invalid when the
  // range does not lie within `from`, overlaps itself, or does not fit the blocks of the store;
  // NotSupported also where that is more than the store shares at once.
  virtual Operation<Change> clone(CallerContext caller, const Handle& from, const Handle& to,
                                  CopyRange range);
  // As clone(), but `to` gets storage of its own. Not atomic: programs may see a part of the copy,
  // and the store may copy less than the range.
  virtual Operation<Copied> copy(CallerContext caller, const Handle& from, const Handle& to,
                                 CopyRange range);

  // Extended attributes of users (RFC 8276), of regular files and directories; NotSupported of
  // other objects. A name is 1 to 250 bytes without NUL: Invalid, NameTooLong. To read one takes
  // permission to read the object, to change one permission to write. NoEntry.
  virtual Operation<std::string> xattr(CallerContext caller, const Handle& object,
                                       std::string_view name);
  // At most kLargestXattr bytes, else FileTooBig; NoSpace, QuotaExceeded.
  virtual Operation<Change> set_xattr(CallerContext caller, const Handle& object,
                                      std::string_view name, std::string_view value,
                                      XattrMode mode);
  // The names, in no order. Anybody who has the handle may look.
  virtual Operation<std::vector<std::string>> list_xattrs(CallerContext caller,
                                                          const Handle& object);
  virtual Operation<Change> remove_xattr(CallerContext caller, const Handle& object,
                                         std::string_view name);

  // Programs of the same machine that use a regular file without asking the server. NotSupported,
  // as these defaults say, of a store that nobody else uses, or that is told not to look.
  //
  // A lease: a program that wants the file waits until the lease is given back, but not for ever.
  // `wanted` is called at most once, with the time that the program waits, on whatever thread,
  // perhaps while lease() still runs or just after the Lease is gone; it must only post. A lease
  // does not stop its own server: where an operation cannot be done beside it the lease ends, as if
  // a program wanted the file. Delay where the file is in use; Access where there are no leases.
  virtual Operation<std::shared_ptr<Lease>> lease(CallerContext caller, const Handle& file,
                                                  LeaseKind kind, LeaseWanted wanted);
  // Byte-range locks that local programs see; none yet. One at a time of each file.
  virtual Operation<std::unique_ptr<LocalLocks>> local_locks(CallerContext caller,
                                                             const Handle& file);
};

}  // namespace stag::vfs
