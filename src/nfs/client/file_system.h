// FileSystem: the files of one NFS server, as coroutines. It has every operation under one name,
// whatever version of NFS carries it out, and on top of them walks along paths, listings, and bulk
// transfers that keep several operations in flight.
//
// Names. An object is named by its Handle or by (directory Handle, name); walk() finds the Handle
// of a path. Names and paths are bytes; no encoding is implied.
//
// Errors are values (protocol/error.h). Every operation can fail with Kind::Call, Kind::Nfs and
// Kind::Protocol. A Handle whose object is gone gives Status::Stale: walk to the object again.
//
// Thread: the Channel's loop. Ownership: the Channel outlives the FileSystem, and the FileSystem
// its Tasks. Arguments are taken by value; memory passed as Bytes or MutableBytes stays in use
// until the Task has ended, also when it is cancelled.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nfs/client/acl.h"
#include "nfs/client/data.h"
#include "nfs/client/listing.h"
#include "nfs/client/protocol/options.h"
#include "nfs/client/protocol/types.h"

namespace stag::nfs::client {

class Protocol;
class Walk;
struct Made;

// Bytes.
struct TransferSizes {
  std::uint32_t read = 1u << 20;    // of one READ
  std::uint32_t write = 1u << 20;   // of one WRITE
  std::uint32_t list = 128u << 10;  // of the reply to one READDIR (version 3: or READDIRPLUS)
};

struct FileSystemOptions {
  ProtocolOptions calls{};
  TransferSizes sizes{};     // upper bounds; adopt_sizes() lowers them to what the server takes
  std::uint32_t window = 8;  // operations in flight of one read_file() or write_file(), at least 1
  std::uint32_t max_links = 40;  // symbolic links that one walk() follows
  // The credentials of MOUNT and of probes (NULL calls) when those of NFS are protected by
  // Kerberos; nullopt: `calls.credentials`.
  std::optional<rpc::Credentials> mount_credentials{};
};

// Which symbolic links walk() follows.
enum class Links : std::uint8_t { Follow, FollowAllButLast };

class FileSystem {
 public:
  // `root_path` is the server's path of `root`, for example "/export/data": walk() follows absolute
  // symbolic links that begin with it; other absolute links lead out of the tree. `options.calls`
  // names version 2 or 3; version 4 needs a Session.
  FileSystem(rpc::Channel& channel, const Handle& root, std::string root_path,
             const FileSystemOptions& options = {});
  // Internal: for Session.
  FileSystem(std::shared_ptr<Protocol> protocol, const Handle& root, std::string root_path,
             const FileSystemOptions& options = {});
  // The same files with other options: with another timeout, or another way to cancel. Shares what
  // the server keeps for this client.
  FileSystem with(const FileSystemOptions& options) const;

  const Handle& root() const { return root_; }
  const std::string& root_path() const { return root_path_; }
  // Sets what the client does before it gives back a file that the server has delegated for writing
  // (RFC 8881 section 10.4.4), in versions 4.1 and 4.2 with delegations; empty: nothing. `flush`
  // writes the program's data of the file. It yields false when it could not and the data is not
  // lost; the client then calls it again, for as long as a lease. close() of the Session waits for
  // it.
  void set_flush(std::function<Task<bool>(Handle file)> flush);
  // How long a server that hears nothing from this client keeps its opens, locks and delegations;
  // zero in versions 2 and 3, whose servers keep none.
  Duration lease() const;
  // The sizes in use.
  const TransferSizes& sizes() const { return sizes_; }
  rpc::Channel& channel() const;
  // Asks the server for its limits (version 3: FSINFO, version 4: attributes of the root) and
  // lowers sizes() to them. Called once, before the first transfer.
  Task<Outcome<Ok>> adopt_sizes();

  // Finds the object at `path`, starting at the root or at `directory`. One or more '/' separate
  // the components, and may also stand in front; "." and ".." have their usual meaning. The client
  // follows the symbolic links. Kind::Links: links form a circle, are too many, or lead out of the
  // tree.
  Task<Outcome<Node>> walk(std::string path, Links links = Links::Follow);
  Task<Outcome<Node>> walk_from(Handle directory, std::string path, Links links = Links::Follow);

  // Attributes and names. access() yields those of the bits `asked` (client::access) that the
  // server grants. With `guard`, setattr() fails with Status::NotSync unless `guard` is the
  // object's ctime. The size of a file that is open is set by the open, as data is written.
  Task<Outcome<Attributes>> getattr(Handle object);
  Task<Outcome<Ok>> setattr(File object, SetAttributes attributes,
                            std::optional<Time> guard = std::nullopt);
  // setattr(), and the attributes that the object has then.
  Task<Outcome<Attributes>> change(File object, SetAttributes attributes);
  Task<Outcome<Node>> lookup(Handle directory, std::string name);
  Task<Outcome<std::uint32_t>> access(Handle object, std::uint32_t asked);
  // The text of a symbolic link. `size`, if the caller knows it from the link's attributes, limits
  // the memory that is provided for the text (RFC 8267 section 3).
  Task<Outcome<std::string>> readlink(Handle symlink, std::optional<std::uint64_t> size = {});

  // One READ of at most sizes().read bytes into `to`, from byte `offset` on. The server may return
  // fewer; ReadPart::eof says whether the file ends there. On RDMA the server writes straight into
  // `to`.
  Task<Outcome<ReadPart>> read(File file, std::uint64_t offset, MutableBytes to);
  // READs of several parts of one file, one for each of `ranges`; yields the result of each, in
  // their order, as read() does. Up to ProtocolOptions::reads_at_once of them go in one call,
  // together at most sizes().read bytes, and up to `window` calls are in flight. The first error
  // is that of all.
  Task<Outcome<std::vector<ReadPart>>> read_several(File file, std::vector<ReadRange> ranges);
  // One WRITE of at most sizes().write bytes of `data`. The server may take fewer, but never none.
  Task<Outcome<WritePart>> write(File file, std::uint64_t offset, Bytes data,
                                 Stability stable = Stability::FileSync);
  // Makes unstable data of the range durable; count 0: to the end of the file. The data is safe if
  // the verifier equals that of its WRITEs (RFC 1813 3.3.21).
  Task<Outcome<Verifier>> commit(Handle file, std::uint64_t offset = 0, std::uint32_t count = 0);

  // Opens a file: for `asked`, of the bits kRead and kModify of client::access, or kExecute alone.
  // In version 4 the server keeps the open, also over its restarts. Version 4.0 can open a file
  // only by the name that it was found by: Status::Stale when others have renamed it. In versions 2
  // and 3, and for kExecute, the client only checks the permissions. The caller closes what it
  // opens. Status::StateLost, from any operation by an open: the server has given the open up, or
  // locks by it.
  Task<Outcome<Opened>> open(Handle file, std::uint32_t asked);
  // Creates a file, or takes an existing one as `mode` says, and opens it, even where the
  // permissions of a new file would not let its creator open it.
  Task<Outcome<Opened>> create_open(Handle directory, std::string name, SetAttributes attributes,
                                    CreateMode mode, std::uint32_t asked);
  // Gives the open and its locks back. If the server does not answer, they end with the lease.
  Task<Outcome<Ok>> close(File file);

  // Byte-range locks, by an open, for reading or writing as the file is open (RFC 8881 section 9):
  // has_locks() says whether opens of this version can have locks; if not, lock() fails with
  // Status::NotSupported. lock() does not wait: it fails with Status::Locked when another owner has
  // a conflicting lock. A new lock replaces the owner's earlier locks of the same bytes. After the
  // server has given up a lock, every operation by its open fails with Status::StateLost, until
  // unlock() covers what was locked, or close().
  bool has_locks() const;
  Task<Outcome<Ok>> lock(File file, LockOwner owner, FileLock wanted);
  Task<Outcome<Ok>> unlock(File file, LockOwner owner, FileLock range);
  // All of `range` in pieces, in order: which of them the owner has locked by these opens of one
  // file. Empty where the server keeps no locks. Asks no server.
  std::vector<LockPiece> locks_within(const std::vector<File>& opens, LockOwner owner,
                                      FileLock range) const;
  // A lock of another owner that conflicts with `wanted`; nullopt: there is none.
  Task<Outcome<std::optional<FileLock>>> test_lock(File file, LockOwner owner, FileLock wanted);

  // Bulk transfers with up to `window` operations in flight. They yield the number of bytes.
  //
  // Reads the whole file. A file that changes meanwhile is read partly old and partly new. `size`:
  // the file's size, if the caller knows it; else it is asked for. An error of the sink ends the
  // transfer.
  Task<Outcome<std::uint64_t>> read_file(Handle file, DataSink& sink,
                                         std::optional<std::uint64_t> size = std::nullopt);
  // Reads from byte `offset` on until `to` is full or the file ends.
  Task<Outcome<std::uint64_t>> read_into(Handle file, std::uint64_t offset, MutableBytes to);
  // Writes everything that the source has, from byte `offset` on, and makes it durable: writes with
  // Stability::Unstable, commits once, and writes again if the server has restarted in between
  // (RFC 1813 3.3.7, 3.3.21). Does not truncate; a hole at the end sets the size. The result counts
  // holes. When the transfer is interrupted, the file may have gaps within the last two windows of
  // WRITEs before its end; the server has answered everything before those.
  Task<Outcome<std::uint64_t>> write_file(Handle file, DataSource& source,
                                          std::uint64_t offset = 0);
  Task<Outcome<std::uint64_t>> write_from(Handle file, std::uint64_t offset, Bytes from);

  // Create, remove and rename objects. An absent attribute gets the server's default. create() and
  // remove() are for all that is no directory; mkdir(), symlink(), mknod() and link() fail with
  // Status::Exists when the name is taken, rmdir() with Status::NotEmpty. rename() replaces an
  // object that has the new name, if it is of the same kind and no directory with entries.
  Task<Outcome<Node>> create(Handle directory, std::string name, SetAttributes attributes,
                             CreateMode mode = CreateMode::Unchecked);
  Task<Outcome<Node>> mkdir(Handle directory, std::string name, SetAttributes attributes);
  Task<Outcome<Node>> symlink(Handle directory, std::string name, std::string target,
                              SetAttributes attributes = {});
  Task<Outcome<Node>> mknod(Handle directory, std::string name, Special special,
                            SetAttributes attributes);
  Task<Outcome<Ok>> remove(Handle directory, std::string name);
  Task<Outcome<Ok>> rmdir(Handle directory, std::string name);
  Task<Outcome<Ok>> rename(Handle from_directory, std::string from, Handle to_directory,
                           std::string to);
  Task<Outcome<Ok>> link(Handle file, Handle directory, std::string name);

  // Lists a directory in batches; fails after `most` entries (listing.h). The FileSystem may be
  // gone before the Listing.
  Listing list(const Handle& directory, Listing::Detail detail = Listing::Detail::Attributes,
               std::uint64_t most = Listing::kMostEntries) const;

  // Facts about the file system that `object` lies on; nullopt: the root.
  Task<Outcome<FileSystemUsage>> usage(std::optional<Handle> object = std::nullopt);
  Task<Outcome<FileSystemInfo>> info(std::optional<Handle> object = std::nullopt);
  Task<Outcome<NameLimits>> name_limits(std::optional<Handle> object = std::nullopt);

  // Access control lists of POSIX, by every version: NFS versions 2 and 3 use NFSACL on the same
  // connection (RFC 8267 section 5.2), version 4 its attribute `acl`. A server or file system
  // without lists fails the call (means_no_acls()). By version 4 the lists allow no more than the
  // server's list does, of which reading, writing and executing are kept; Status::NotSupported
  // where there are no such: a user or group who has a name and no number, an entry that audits.
  // The size of a list is not known in advance: the first call provides memory for `reply_max`
  // bytes of results, a further one for more; a session says how large a reply can be.
  Task<Outcome<Acls>> acls(Handle object, std::uint32_t reply_max = kAclReplyMax);
  // Sets the lists; entries may stand in any order. An empty access list leaves the mode as it is.
  // Only directories have default lists; `with_defaults` replaces them. By version 4 this takes up
  // to three calls, and another client's change between them may be lost.
  Task<Outcome<Ok>> set_acls(Handle object, Acls acls, bool with_defaults = false);

  // The native form of version 4: its list, entry by entry, as the server has it; set_nfs4_acl()
  // replaces it. Other versions: Status::NotSupported. `reply_max` as for acls().
  Task<Outcome<Nfs4Acl>> nfs4_acl(Handle object, std::uint32_t reply_max = kAclReplyMax);
  Task<Outcome<Ok>> set_nfs4_acl(Handle object, Nfs4Acl acl);

  // Parts of files, and extended attributes: NFS version 4.2 (RFC 7862, RFC 8276). Fail with
  // Status::NotSupported where version or server do not have them.
  //
  // Where the first byte of data, or of a hole, is, from `offset` on; nullopt: there is none.
  Task<Outcome<std::optional<std::uint64_t>>> seek(Handle file, std::uint64_t offset, Content what);
  // One READ_PLUS of at most sizes().read bytes into `to`, from byte `offset` on: holes come as
  // their length alone and are zeros in `to`. A server may tell of a hole as of data. On RDMA the
  // data comes within the Reply and is copied (RFC 8267 section 6.1): read() is faster where there
  // is no hole.
  Task<Outcome<SparsePart>> read_plus(Handle file, std::uint64_t offset, MutableBytes to);
  // Reserves space for a range, or makes a hole of it, which reads as zeros.
  Task<Outcome<Ok>> allocate(File file, FileRange range);
  Task<Outcome<Ok>> deallocate(File file, FileRange range);
  // Copies a range of one file to another one within the server, or from another server that has
  // given permission (notify_copy()), in as many operations as it takes, and makes it durable;
  // yields the bytes. A range that goes beyond the end of `from` is Status::Invalid.
  // `watch.progress` reports how far the copy is, and `watch.cancel` ends it. With
  // ProtocolOptions::delegations or `offloads` the server may answer before the copy has ended, and
  // report the end later; the client gives up a copy that makes no progress for
  // ProtocolOptions::timeout.
  Task<Outcome<std::uint64_t>> copy_range(CopySource from, FileRange range, File to,
                                          std::uint64_t to_offset);
  Task<Outcome<std::uint64_t>> copy_range(CopySource from, FileRange range, File to,
                                          std::uint64_t to_offset, CopyWatch watch);
  // Asks this server to let the server at `reader`, whose host is numeric, read a file that is open
  // here for reading; the result is a source for copy_range() at that server. The permission ends
  // when the file is closed, or has not been used for the time of a lease. Fails with
  // Status::Delay at once where the server would have the client ask again.
  Task<Outcome<CopySource>> notify_copy(File file, Address reader);
  // As read(), for a server that copies a file of this one: `from` is what notify_copy() has
  // returned to the client that asked for the copy. Version 4.1 and later.
  Task<Outcome<ReadPart>> read_notified(CopySource from, std::uint64_t offset, MutableBytes to);
  // Makes a range of `to` share the storage of a range of `from`, within the server: all of it or
  // nothing.
  Task<Outcome<Ok>> clone_range(Handle from, FileRange range, File to, std::uint64_t to_offset);
  // Extended attributes of users, named without "user." in front; values are bytes.
  Task<Outcome<std::string>> xattr(Handle object, std::string name);
  Task<Outcome<Ok>> set_xattr(Handle object, std::string name, std::string value,
                              XattrMode mode = XattrMode::Either);
  Task<Outcome<std::vector<std::string>>> list_xattrs(Handle object);
  Task<Outcome<Ok>> remove_xattr(Handle object, std::string name);

  // One round trip: calls the NULL procedure.
  Task<Outcome<Ok>> ping();

 private:
  friend class Walk;

  // `shown`: the name of the object in error sentences.
  Task<Outcome<Node>> find(Handle directory, std::string name, std::string shown);
  Task<Outcome<Node>> completed_file(Handle directory, std::string name, Made made,
                                     SetAttributes attributes, CreateMode mode);
  Task<Outcome<Node>> completed(const Handle& directory, const std::string& name, Made made);
  Task<Outcome<Node>> with_attributes(const Handle& handle,
                                      const std::optional<Attributes>& attributes);

  std::shared_ptr<Protocol> protocol_;
  Handle root_;
  std::string root_path_;
  FileSystemOptions options_;
  TransferSizes sizes_;
};

}  // namespace stag::nfs::client
