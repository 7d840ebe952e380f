// FileSystem: the files of one NFS server, as coroutines. Every operation under its name, whatever
// version of NFS does it (protocol/protocol.h), and on top of them the walk along a path, listings,
// and bulk transfers that keep several operations in flight.
//
// Objects are named by Handles and by (directory Handle, name); walk() finds the Handle of a path.
// Names and paths are bytes; no encoding is implied. Errors are values (error.h); the ones that any
// operation can have are Call, Nfs and Protocol. A Handle whose object is gone gives
// Status::Stale: walk to it again.
//
// Thread: the Channel's loop. The Channel outlives the FileSystem, and the FileSystem its Tasks.
// Arguments are taken by value; memory passed as Bytes is the caller's until the Task has ended,
// also when it is cancelled.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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
  std::uint32_t list = 128u << 10;  // of one READDIR or READDIRPLUS reply
};

struct FileSystemOptions {
  CallerOptions calls{};
  TransferSizes sizes{};     // wishes; adopt_sizes() cuts them to what the server takes
  std::uint32_t window = 8;  // operations in flight of one read_file() or write_file(), at least 1
  std::uint32_t max_links = 40;  // symbolic links that one walk() follows
};

enum class Links : std::uint8_t { Follow, FollowAllButLast };

class FileSystem {
 public:
  // `root_path`: what the server calls `root`, "/export/data"; absolute symbolic links below it are
  // followed, others lead out.
  FileSystem(rpc::Channel& channel, const Handle& root, std::string root_path,
             const FileSystemOptions& options = {});

  const Handle& root() const { return root_; }
  const std::string& root_path() const { return root_path_; }
  const TransferSizes& sizes() const { return sizes_; }
  rpc::Channel& channel() const;
  // Asks the server for its limits and keeps to what the server takes. Once, before the first
  // transfer.
  Task<Outcome<Ok>> adopt_sizes();

  // The object at `path`, from the root on (or from `directory`). Components are separated by one
  // or more '/', leading ones too; "." and ".." mean what they do everywhere. The client resolves
  // the links. Links: a circle, too many, or one that leads out.
  Task<Outcome<Node>> walk(std::string path, Links links = Links::Follow);
  Task<Outcome<Node>> walk_from(Handle directory, std::string path, Links links = Links::Follow);

  // Attributes and names. access() yields those of the bits `asked` (client::access) that the
  // server grants; `guard` makes setattr() fail with Status::NotSync unless the object was last
  // changed then.
  Task<Outcome<Attributes>> getattr(Handle object);
  Task<Outcome<Ok>> setattr(Handle object, SetAttributes attributes,
                            std::optional<Time> guard = std::nullopt);
  Task<Outcome<Node>> lookup(Handle directory, std::string name);
  Task<Outcome<std::uint32_t>> access(Handle object, std::uint32_t asked);
  // `size` of its attributes, where they are known, makes room for no longer text than that
  // (RFC 8267 section 3).
  Task<Outcome<std::string>> readlink(Handle symlink, std::optional<std::uint64_t> size = {});

  // One READ. At most sizes().read bytes are asked for; the server may give fewer, `eof` says
  // whether the file ends there. The data is in `to` afterwards, put there by the server itself
  // where the transport can.
  Task<Outcome<ReadPart>> read(Handle file, std::uint64_t offset, MutableBytes to);
  // One WRITE of at most sizes().write bytes. The server may take fewer, never none.
  Task<Outcome<WritePart>> write(Handle file, std::uint64_t offset, Bytes data,
                                 Stability stable = Stability::FileSync);
  // Count 0: to the end. Unstable data is safe when the verifier is that of its WRITEs.
  Task<Outcome<Verifier>> commit(Handle file, std::uint64_t offset = 0, std::uint32_t count = 0);

  // Bulk transfers with up to `window` operations in flight; yield the number of bytes.
  //
  // The whole file, as it is while it is read. `size`: what the caller knows it to be; else it is
  // asked for. Errors of the sink end the transfer.
  Task<Outcome<std::uint64_t>> read_file(Handle file, DataSink& sink,
                                         std::optional<std::uint64_t> size = std::nullopt);
  // Bytes from `offset` on, as many as `to` holds or the file has.
  Task<Outcome<std::uint64_t>> read_into(Handle file, std::uint64_t offset, MutableBytes to);
  // Everything the source has, from `offset` on; durable when this returns: written unstably,
  // committed once, and written again when the server has restarted in between (RFC 1813 3.3.7,
  // 3.3.21). Truncates nothing; a hole at the end sets the size. The result counts holes.
  Task<Outcome<std::uint64_t>> write_file(Handle file, DataSource& source,
                                          std::uint64_t offset = 0);
  Task<Outcome<std::uint64_t>> write_from(Handle file, std::uint64_t offset, Bytes from);

  // Making and unmaking names.
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

  // The entries of a directory, in batches.
  Listing list(const Handle& directory, Listing::Detail detail = Listing::Detail::Attributes,
               std::uint64_t most = Listing::kMostEntries) const;

  // Facts about the file system, of the root unless told.
  Task<Outcome<FileSystemUsage>> usage(std::optional<Handle> object = std::nullopt);
  Task<Outcome<FileSystemInfo>> info(std::optional<Handle> object = std::nullopt);
  Task<Outcome<NameLimits>> name_limits(std::optional<Handle> object = std::nullopt);

  // Access control lists: with versions 2 and 3 by NFSACL on the same connection (RFC 8267 5.2); a
  // server without it fails the call. How large a list is cannot be known: at most `reply_max`
  // bytes of results are provided for at first, and more when that was too little.
  Task<Outcome<Acls>> acls(Handle object, std::uint32_t reply_max = kAclReplyMax);
  // Entries in any order. An empty access list leaves the mode alone; only directories have
  // defaults, and `with_defaults` replaces them.
  Task<Outcome<Ok>> set_acls(Handle object, Acls acls, bool with_defaults = false);

  // A round trip, by the NULL procedure.
  Task<Outcome<Ok>> ping();

 private:
  friend class Walk;

  // `shown`: what an error calls it.
  Task<Outcome<Node>> find(Handle directory, std::string name, std::string shown);
  Task<Outcome<Node>> completed(const Handle& directory, const std::string& name, const Made& made);
  Task<Outcome<Node>> with_attributes(const Handle& handle,
                                      const std::optional<Attributes>& attributes);

  std::shared_ptr<Protocol> protocol_;
  Handle root_;
  std::string root_path_;
  FileSystemOptions options_;
  TransferSizes sizes_;
};

}  // namespace stag::nfs::client
