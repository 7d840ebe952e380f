// Protocol: the interface between FileSystem and the version of NFS that the server speaks: one
// function for each operation, in types of no version (types.h). v2/, v3/ and v4/ implement it.
// Walks, listings and bulk transfers consist of several operations; they stand above it and are the
// same for all versions.
//
// Every operation takes the OperationContext for the sentence of its errors. Contexts, names and
// memory are views; what they refer to outlives the Task. A Handle that is too long for the version
// fails with BadHandle.
//
// Thread: the Channel's loop. The Channel outlives the Protocol, and the Protocol its Tasks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nfs/client/protocol/error.h"
#include "nfs/client/protocol/options.h"
#include "nfs/client/protocol/types.h"

namespace stag::nfs::client {

// The results of LOOKUP.
struct Found {
  Handle handle;
  std::optional<Attributes> attributes;  // where the server gives them
};

// A new object, as far as the Reply of the creating operation describes it.
struct Made {
  std::optional<Handle> handle;
  std::optional<Attributes> attributes;
  std::uint64_t open = 0;  // of File
  // Of an exclusive creation: the attributes were set with it, but for the times.
  bool attributes_set = false;
  DirectoryChange directory{};
};

// Where a listing goes on; opaque to the client.
struct ListPosition {
  std::uint64_t cookie = 0;
  Verifier verifier{};
};

struct ListedEntry {
  Entry entry;
  std::uint64_t cookie = 0;  // of the next page
};

// One reply, "." and ".." included.
struct ListedPart {
  std::vector<ListedEntry> entries;
  Verifier verifier{};
  bool eof = false;
};

class Protocol {
 public:
  virtual ~Protocol() = default;

  virtual rpc::Channel& channel() const = 0;
  // The same files, with the same client ID and session where the version has them, for calls with
  // other options.
  virtual std::shared_ptr<Protocol> with(const ProtocolOptions& options) const = 0;
  // Gives back what the server keeps for this client. No operation is in progress; called once,
  // whichever of them share it.
  virtual Task<void> close() { co_return; }
  // What is done before a file that was delegated to this client for writing is given back (RFC
  // 8881 section 10.4.4): what its user keeps of writes has to be safe by then. False: it is not,
  // and may still be written again. Empty: nothing.
  using Flush = std::function<Task<bool>(Handle file)>;
  virtual void set_flush(Flush) {}
  // FileSystem::lease().
  virtual Duration lease() const { return {}; }
  // A round trip.
  virtual Task<Outcome<Ok>> ping(OperationContext context) = 0;

  virtual Task<Outcome<Attributes>> getattr(OperationContext context, Handle object) = 0;
  // With a `guard`, NotSync unless the object was last changed then. Yields the attributes
  // afterwards where the Reply has them. The size is set by the open, if there is one.
  virtual Task<Outcome<std::optional<Attributes>>> setattr(OperationContext context, File object,
                                                           SetAttributes attributes,
                                                           std::optional<Time> guard) = 0;
  virtual Task<Outcome<Found>> lookup(OperationContext context, Handle directory,
                                      std::string_view name) = 0;
  // Yields those of the bits `asked` (client::access) that the server grants.
  virtual Task<Outcome<std::uint32_t>> access(OperationContext context, Handle object,
                                              std::uint32_t asked) = 0;
  // `size`: the size among the link's attributes, if the caller knows it.
  virtual Task<Outcome<std::string>> readlink(OperationContext context, Handle symlink,
                                              std::optional<std::uint64_t> size) = 0;

  // As many bytes as `to` holds, or fewer.
  virtual Task<Outcome<ReadPart>> read(OperationContext context, File file, std::uint64_t offset,
                                       MutableBytes to) = 0;
  // How many of them read_several() takes, at least 1.
  virtual std::size_t reads_at_once() const { return 1; }
  // As many READs by one call, in order; one that fails fails all. Here: the first of `ranges`.
  virtual Task<Outcome<std::vector<ReadPart>>> read_several(OperationContext context, File file,
                                                            std::vector<ReadRange> ranges);
  // Writes `data` or a part of it, at least one byte unless `data` is empty.
  virtual Task<Outcome<WritePart>> write(OperationContext context, File file, std::uint64_t offset,
                                         Bytes data, Stability stable) = 0;
  virtual Task<Outcome<Verifier>> commit(OperationContext context, Handle file,
                                         std::uint64_t offset, std::uint32_t count) = 0;

  // Where is_exclusive(mode), the times, and the attributes unless Made::attributes_set, are for
  // the caller to set.
  virtual Task<Outcome<Made>> create(OperationContext context, Handle directory,
                                     std::string_view name, SetAttributes attributes,
                                     CreateMode mode) = 0;
  // Opens, as FileSystem has it; here, without state: only the permissions are checked.
  virtual Task<Outcome<Opened>> open(OperationContext context, Handle file, std::uint32_t asked);
  virtual Task<Outcome<Made>> create_open(OperationContext context, Handle directory,
                                          std::string_view name, SetAttributes attributes,
                                          CreateMode mode, std::uint32_t asked);
  virtual Task<Outcome<Ok>> close(OperationContext context, File file);
  // Whether open() gives opens that can hold locks.
  virtual bool has_locks() const { return false; }
  // FileSystem::locks_within().
  virtual std::vector<LockPiece> locks_within(const std::vector<File>& opens, LockOwner owner,
                                              FileLock range) const;
  // NotSupported without an open.
  virtual Task<Outcome<Ok>> lock(OperationContext context, File file, LockOwner owner,
                                 FileLock wanted);
  virtual Task<Outcome<Ok>> unlock(OperationContext context, File file, LockOwner owner,
                                   FileLock range);
  virtual Task<Outcome<std::optional<FileLock>>> test_lock(OperationContext context, File file,
                                                           LockOwner owner, FileLock wanted);
  virtual Task<Outcome<Made>> mkdir(OperationContext context, Handle directory,
                                    std::string_view name, SetAttributes attributes) = 0;
  virtual Task<Outcome<Made>> symlink(OperationContext context, Handle directory,
                                      std::string_view name, std::string target,
                                      SetAttributes attributes) = 0;
  virtual Task<Outcome<Made>> mknod(OperationContext context, Handle directory,
                                    std::string_view name, Special special,
                                    SetAttributes attributes) = 0;
  virtual Task<Outcome<Ok>> remove(OperationContext context, Handle directory,
                                   std::string_view name) = 0;
  virtual Task<Outcome<Ok>> rmdir(OperationContext context, Handle directory,
                                  std::string_view name) = 0;
  virtual Task<Outcome<Ok>> rename(OperationContext context, Handle from_directory,
                                   std::string_view from, Handle to_directory,
                                   std::string_view to) = 0;
  virtual Task<Outcome<Ok>> link(OperationContext context, Handle file, Handle directory,
                                 std::string_view name) = 0;

  // In a reply of about `size` bytes. NotSupported with attributes where the server, or the
  // version, has names only; TooSmall when not one entry fits.
  virtual Task<Outcome<ListedPart>> list(OperationContext context, Handle directory,
                                         ListPosition from, bool with_attributes,
                                         std::uint32_t size) = 0;

  virtual Task<Outcome<FileSystemUsage>> usage(OperationContext context, Handle object) = 0;
  virtual Task<Outcome<FileSystemInfo>> info(OperationContext context, Handle object) = 0;
  virtual Task<Outcome<NameLimits>> name_limits(OperationContext context, Handle object) = 0;

  // Lists of POSIX. `reply_max`: bytes of results that are provided for at first.
  virtual Task<Outcome<Acls>> acls(OperationContext context, Handle object,
                                   std::uint32_t reply_max) = 0;
  virtual Task<Outcome<Ok>> set_acls(OperationContext context, Handle object, Acls acls,
                                     bool with_defaults) = 0;

  // The list of version 4: entries in their order, which decide one after the other. Elsewhere
  // NotSupported.
  virtual Task<Outcome<Nfs4Acl>> nfs4_acl(OperationContext context, Handle object,
                                          std::uint32_t reply_max);
  virtual Task<Outcome<Ok>> set_nfs4_acl(OperationContext context, Handle object, Nfs4Acl acl);

  // Of version 4.2 (RFC 7862, RFC 8276); elsewhere NotSupported, as here.
  //
  // Where the first byte of `what` is, from `offset` on; nullopt: there is none.
  virtual Task<Outcome<std::optional<std::uint64_t>>> seek(OperationContext context, Handle file,
                                                           std::uint64_t offset, Content what);
  virtual Task<Outcome<SparsePart>> read_plus(OperationContext context, Handle file,
                                              std::uint64_t offset, MutableBytes to);
  virtual Task<Outcome<Ok>> allocate(OperationContext context, File file, FileRange range);
  virtual Task<Outcome<Ok>> deallocate(OperationContext context, File file, FileRange range);
  // Leave for the server at `reader` to copy a file of this one, while it is open for reading.
  virtual Task<Outcome<CopySource>> notify_copy(OperationContext context, File file,
                                                Address reader);
  // READ as the server that was given leave, of a file of this one.
  virtual Task<Outcome<ReadPart>> read_notified(OperationContext context, CopySource from,
                                                std::uint64_t offset, MutableBytes to);
  // A length of 0: to the end of the file. The server may copy less, but never nothing where there
  // is something; `clone` does all or nothing. `watch` outlives the Task.
  virtual Task<Outcome<CopyPart>> copy(OperationContext context, CopySource from, FileRange range,
                                       File to, std::uint64_t to_offset, const CopyWatch& watch);
  virtual Task<Outcome<Ok>> clone(OperationContext context, Handle from, FileRange range, File to,
                                  std::uint64_t to_offset);
  // Extended attributes of users: names without "user.".
  virtual Task<Outcome<std::string>> xattr(OperationContext context, Handle object,
                                           std::string_view name);
  virtual Task<Outcome<Ok>> set_xattr(OperationContext context, Handle object,
                                      std::string_view name, Bytes value, XattrMode mode);
  virtual Task<Outcome<std::vector<std::string>>> list_xattrs(OperationContext context,
                                                              Handle object);
  virtual Task<Outcome<Ok>> remove_xattr(OperationContext context, Handle object,
                                         std::string_view name);
};

}  // namespace stag::nfs::client
