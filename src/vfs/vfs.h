// vfs: what a storage owner implements to be served. One FileSystem is one exported tree.
//
// Vocabulary. Objects are named by Handles, entries by (directory handle, name). Names are bytes:
// anything but '/' and NUL, no encoding implied. No operation follows a symbolic link or leaves the
// tree, and ".." of the root is the root.
//
// Permissions. Every operation is checked for the caller's Credentials with the rules NFS servers
// keep: the owner may read and write a file whatever its mode bits say, and execute permission
// suffices to read (RFC 1813 4.4), because the client has done the check that open(2) does. uid 0
// passes every check; squashing it is the server's business.
//
// Threads. A FileSystem may be called from any number of loops at once. Each operation starts and
// ends on the caller's loop; it may be elsewhere in between, and it may be done when the call
// returns (vfs/operation.h). Arguments passed by reference (handles, names, credentials) must
// outlive the Operation; co_await on the call expression does that.
//
// Data. What read() yields never changes afterwards, whatever is written meanwhile: its Buffers go
// to the wire as they are. write() takes the Rope over; a store may keep owned Buffers as its own
// storage instead of copying them, so who passes an owned Buffer gives it away. Borrowed Buffers
// are copied before the Operation ends.
//
// Errors. A Status says why; on failure nothing has changed, unless the Status is Io. Attributes
// that a protocol wants next to an error are asked for with attributes(). Statuses that any
// operation can give: Stale, BadHandle, Io, Delay, TooManyObjects; the others are named where they
// are not obvious.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/buffer.h"
#include "base/rope.h"
#include "vfs/acl.h"
#include "vfs/operation.h"
#include "vfs/status.h"
#include "vfs/types.h"

namespace stag::vfs {

// An object found or made.
struct Node {
  Handle handle;
  Attributes attributes;
};

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
  std::uint32_t granted = 0;  // the asked bits that are granted
  Attributes attributes;
};

struct ObjectAcls {
  Acls acls;
  Attributes attributes;
};

// How create() treats a name that is taken (RFC 1813 3.3.8).
enum class CreateMode : std::uint8_t {
  Unchecked,  // opens the existing regular file, applying only `size` of the attributes
  Guarded,    // Exists
  // Exists, unless it was made by the same verifier: then this is a repeat and succeeds, and sets
  // nothing again. The verifier is kept durably, in the times of the file, so a client sets the
  // times afterwards.
  Exclusive,
};

struct CreateHow {
  CreateMode mode = CreateMode::Guarded;
  // With Exclusive neither size nor times, which are Invalid there.
  SetAttributes attributes;
  Verifier verifier{};  // Exclusive only
};

// What mknod() makes: Fifo, Socket, BlockDevice or CharacterDevice, the last two with a device
// number and by root only.
struct Special {
  FileType type = FileType::Fifo;
  Device device;
};

// One entry of a listing. `name` is valid during the sink's call only.
struct DirectoryEntry {
  std::string_view name;
  std::uint64_t file_id = 0;
  std::uint64_t cookie = 0;  // where a later listing goes on after this entry; never 0
  // With `with_nodes` only, and even then absent when the entry vanished meanwhile or cannot be
  // reached (a mount point).
  const Node* node = nullptr;
};

class DirectorySink {
 public:
  // False: there is no room, the entry was not taken and the listing ends before it.
  virtual bool entry(const DirectoryEntry& entry) = 0;

 protected:
  ~DirectorySink() = default;
};

struct ListFrom {
  std::uint64_t cookie = 0;  // 0: from the start
  // Of the listing the cookie comes from; absent (NFSv2 has none) or with cookie 0 it is not
  // checked.
  std::optional<Verifier> verifier;
  bool with_nodes = false;
  // About how many bytes of names the sink can take; the store prepares no more than that (each
  // entry counts its name and 24 bytes, with nodes 160).
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
  std::uint64_t available_bytes = 0;  // to the caller
  std::uint64_t total_files = 0;
  std::uint64_t free_files = 0;
  std::uint64_t available_files = 0;
};

// What the store can do, the same for all objects of it (RFC 1813 3.3.19, 3.3.20). Transfer sizes
// are the server's.
struct Limits {
  std::uint64_t max_file_size = 0;
  Time time_granularity{0, 1};
  std::uint32_t max_links = 0;
  std::uint32_t max_name = 255;
  bool hard_links = true;
  bool symlinks = true;
  bool times_can_be_set = true;
  bool chown_restricted = true;  // only root gives files away
  bool case_insensitive = false;
  bool case_preserving = true;
  bool read_only = false;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual Handle root() const = 0;
  // What tells this tree from every other in which the same handles could mean something: a server
  // binds the handles that it gives out to it. The same for the same tree after restarts of the
  // process and of the machine. Empty where handles are never good in another store.
  virtual std::string identity() const { return {}; }
  virtual Limits limits() const = 0;
  // Rises whenever data written Unstable may have been lost without a restart (a failed sync). A
  // server makes its write verifier of this and of something that changes with each start of the
  // process.
  virtual std::uint64_t write_verifier_epoch() const { return 0; }

  // Also the way to ask whether a handle (still) names something.
  virtual Operation<Attributes> attributes(CallerContext caller, const Handle& object) = 0;
  // With `guard`, NotSync unless the object's ctime equals it. Perm, Access, Invalid (size of
  // something not a regular file; IsDirectory of a directory), NotSupported (mode of a symlink),
  // NoSpace, FileTooBig, ReadOnly.
  virtual Operation<Change> set_attributes(CallerContext caller, const Handle& object,
                                           const SetAttributes& changes,
                                           std::optional<Time> guard) = 0;
  // "." is the directory itself, ".." its parent.
  virtual Operation<Found> lookup(CallerContext caller, const Handle& directory,
                                  std::string_view name) = 0;
  virtual Operation<Access> access(CallerContext caller, const Handle& object,
                                   std::uint32_t asked) = 0;
  virtual Operation<Link> readlink(CallerContext caller, const Handle& symlink) = 0;

  // At most `count` bytes; fewer only at the end of the file. IsDirectory, Invalid when it is no
  // regular file.
  virtual Operation<ReadResult> read(CallerContext caller, const Handle& file, std::uint64_t offset,
                                     std::uint32_t count) = 0;
  // At least as stable as `stability`. FileTooBig, NoSpace, QuotaExceeded.
  virtual Operation<WriteResult> write(CallerContext caller, const Handle& file,
                                       std::uint64_t offset, Rope data, Stability stability) = 0;
  // Makes what was written to the range durable; count 0 means to the end of the file.
  virtual Operation<Change> commit(CallerContext caller, const Handle& file, std::uint64_t offset,
                                   std::uint32_t count) = 0;
  // Memory for data that is going to be written, so that a transport can place it where it will
  // stay. No promise is attached: write() takes any Rope.
  virtual Block placement(std::size_t bytes) { return Block::allocate(bytes); }

  // The creating operations: Exists, NotDirectory, NameTooLong, NoSpace, Access. "." and ".." are
  // Exists; the empty name and names with '/' or NUL are Access (RFC 1813 3.2), also in lookup,
  // remove, rmdir and rename.
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
  // The file gets the name too. IsDirectory of directories, TooManyLinks.
  virtual Operation<Linked> link(CallerContext caller, const Handle& file, const Handle& directory,
                                 std::string_view name) = 0;

  // Anything but a directory; IsDirectory otherwise. "." and ".." are Invalid, as in rmdir and
  // rename.
  virtual Operation<Change> remove(CallerContext caller, const Handle& directory,
                                   std::string_view name) = 0;
  // NotEmpty.
  virtual Operation<Change> rmdir(CallerContext caller, const Handle& directory,
                                  std::string_view name) = 0;
  // Replaces a compatible target atomically (RFC 1813 3.3.14): Exists when only one of the two is a
  // directory, NotEmpty, Invalid when a directory would move into itself. Two names of the same
  // file: nothing happens.
  virtual Operation<Renamed> rename(CallerContext caller, const Handle& from_directory,
                                    std::string_view from, const Handle& to_directory,
                                    std::string_view to) = 0;

  // Every entry that is there from the first page to the last is listed exactly once, "." and ".."
  // included, whatever comes and goes meanwhile. The sink is called on the caller's loop, within
  // the Operation. BadCookie.
  virtual Operation<Listed> list(CallerContext caller, const Handle& directory, ListFrom from,
                                 DirectorySink& sink) = 0;

  virtual Operation<Usage> usage(CallerContext caller) = 0;

  // Access control lists. A store without them says NotSupported, as this default does; one with
  // them honours them in every operation, and gives new objects the default list of their
  // directory. Anybody who has the handle may look.
  virtual Operation<ObjectAcls> acls(CallerContext caller, const Handle& object);
  // The mode follows the access list. Perm for anybody but the owner and root; Access for a default
  // list of anything but a directory, NotSupported for symlinks; NoSpace.
  virtual Operation<Change> set_acls(CallerContext caller, const Handle& object,
                                     const SetAcls& changes);
};

}  // namespace stag::vfs
