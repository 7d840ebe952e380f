// CopyEndpoint: either end of a copy, files of this machine (LocalEndpoint) or of an NFS server
// (RemoteEndpoint). The copier (copier.h) knows only CopyEndpoints; at least one of the two is
// remote.
//
// A file is written as a TempFile: under a temporary name beside its final name, which it takes,
// replacing the old file, when it is complete. A TempFile that is not published is discarded. Where
// the copier says so, an existing file is written in place instead
// (docs/decisions/0022-what-a-copy-keeps.md).
//
// Everything runs on one loop. Arguments are taken by value or outlive the Task.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/support/command.h"
#include "cli/support/date.h"
#include "nfs/client/data.h"
#include "nfs/client/protocol/types.h"
#include "nfs/client/session/url.h"

namespace stag::cli {

class Remote;

enum class Kind : std::uint8_t { File, Directory, Symlink, Other };

// Bits of a mode that must not be set before the file has its owner: setuid, setgid and sticky.
inline constexpr std::uint32_t kOwnersBits = 07000;

// Those of its owner that a directory needs while it is filled or emptied.
inline constexpr std::uint32_t kOwnersRights = 0700;

struct Owner {
  std::uint32_t uid = 0, gid = 0;
  bool operator==(const Owner&) const = default;
};
// chown(2), and servers that use it, take this number as "do not change": it cannot own a file. It
// stands also for an owner that a server has named, and whose number is not known here.
inline constexpr std::uint32_t kNoOwner = 0xffffffff;
bool can_own(const Owner& owner);

struct CopyObject {
  std::string path;              // in messages; how a LocalEndpoint reaches it
  nfs::client::Handle handle{};  // names the object for a RemoteEndpoint
  Kind kind = Kind::Other;
  std::uint32_t mode = 0;  // 07777
  std::uint32_t links = 1;
  Owner owner{};
  std::uint32_t named = 0;  // for a LocalEndpoint: so much of `path` the user has named
  std::uint64_t size = 0;
  std::uint64_t used = 0;  // bytes of storage: less than `size` when there are holes
  nfs::client::Time accessed{}, modified{}, changed{};
  std::uint64_t file_id = 0, fsid = 0;
  std::optional<nfs::client::Special> special{};  // of Kind::Other
};

// What an object has beside data and attributes.
struct Extras {
  using Xattr = std::pair<std::string, std::string>;  // name, without "user.", and value
  std::vector<Xattr> xattrs{};
  // Access control lists of one form or the other, where they say more than the mode.
  std::optional<nfs::client::Acls> acls{};
  std::optional<nfs::client::Nfs4Acl> nfs4_acl{};
  bool of_directory = false;
  bool empty() const { return xattrs.empty() && !acls && !nfs4_acl; }
  // Not: a list of one form and one of the other that allow the same.
  bool same_as(const Extras& other) const;
};
struct ExtraKinds {
  bool xattrs = false, acls = false;
  bool any() const { return xattrs || acls; }
};

struct Member {
  std::string name;
  CopyObject object;
  // Why nothing is known of the object but its path.
  std::optional<nfs::client::Error> trouble{};

  // What patterns are compared with: an unknown object may be a directory.
  Kind excluded_as() const { return trouble ? Kind::Directory : object.kind; }
};

// What has been copied so far.
struct Progress {
  std::uint64_t files = 0, directories = 0, symlinks = 0;
  std::uint64_t specials = 0;        // devices, sockets and FIFOs
  std::uint64_t skipped = 0;         // what is no directory and was to stay as it is
  std::uint64_t adjusted = 0;        // the same, but with another mode or time
  std::uint64_t removed = 0;         // of the destination, with all that was below
  std::uint64_t bytes = 0;           // of file data, holes included
  std::uint64_t expected_bytes = 0;  // of the files found so far
  std::uint64_t unlisted = 0;        // sources that may have more files than were found
  bool total_unknown = false;        // standard input, whose end nobody knows, is among them
  bool unread = false;               // the reader of standard output has gone
  // Temporary files that could not be removed, or are not known to be, for messages.
  std::vector<std::string> leftovers{};
};

// Owner, mode and, with -p, the times of something copied. Where `owner` is refused, the mode is
// set without kOwnersBits.
struct Finish {
  std::uint32_t mode = 0;
  std::optional<Owner> owner{};
  bool times = false;
  nfs::client::Time accessed{}, modified{};
};

// How a file is written.
struct TempFilePlan {
  Finish finish;
  bool sparse = false;                      // zeros become holes
  std::optional<CopyObject> existing = {};  // the file that has the name now
  bool in_place = false;                    // nothing has another name meanwhile
  std::uint64_t kept = 0;                   // bytes of `existing` that the copy begins with
  bool keep_existing = false;               // nothing that has its name by then is replaced
  bool new_name = false;                    // the same of this machine, and a failure

  // Whether the file that has the name now is the one to write to.
  bool overwrites() const { return existing && in_place; }
  // Whether the new file must have the owner of the old one, or it cannot take its place.
  bool keeps_owner() const { return existing && finish.owner == existing->owner; }
  // The mode of a new file; a file that will get another owner is closed to other users until then.
  std::uint32_t first_mode() const { return finish.owner ? 0600 : finish.mode; }
};

// What servers can do for a copy by themselves: within one, or from one to another.
struct ServerCopies {
  bool clone = true, copy = true, between = true;
  bool any() const { return clone || copy || between; }
};
// Whether a server that refuses something of one file refuses it of all.
inline bool of_all_files(const nfs::client::Error& error) {
  using nfs::client::Status;
  return error.is(Status::NotSupported) || error.is(Status::CrossDevice) ||
         error.is(Status::Unknown);
}

class TempFile {
 public:
  virtual ~TempFile() = default;
  // Nothing replaces the file before it is complete, unless it is written in place.
  virtual bool in_place() const = 0;
  // Copies the data of `source` from byte `from` on; otherwise the caller writes to sink().
  virtual Task<Outcome<Ok>> fill(nfs::client::DataSource& source, std::uint64_t from) = 0;
  virtual nfs::client::DataSink& sink() = 0;
  // Makes a hole of `range`, which is one in the source and below TempFilePlan::kept. False: there
  // can be none, and the bytes stay what they are.
  virtual Task<Outcome<bool>> punch(nfs::client::FileRange /*range*/) { co_return false; }
  // Has the server of this file share or copy the data of `source`, of the server `from`, by itself
  // (RFC 7862 section 4), and yields its length; nullopt where this file is on no server, or the
  // servers do not do that. Clears what of `ways` they do not have.
  virtual Task<Outcome<std::optional<std::uint64_t>>> copy_by_server(Remote& /*from*/,
                                                                     CopyObject /*source*/,
                                                                     ServerCopies& ways) {
    ways = {.clone = false, .copy = false, .between = false};
    co_return std::optional<std::uint64_t>();
  }
  // Whether a server that was to copy, and has not been heard of, may still write to the file: it
  // is not to be published. Another one in its place can be.
  virtual bool is_lost() const { return false; }
  // Gives the file these, before its owner and mode.
  virtual Task<Outcome<Ok>> adopt(Extras extras) = 0;
  // Gives the file its length `size`, owner, mode and times, and then its final name. False: by
  // TempFilePlan::keep_existing, something else has that name and keeps it.
  virtual Task<Outcome<bool>> publish(std::uint64_t size) = 0;
  // Removes the file; if that fails, adds it to the Progress's leftovers.
  virtual Task<void> discard() = 0;
};

class DirIterator {
 public:
  virtual ~DirIterator() = default;
  // The next entries, without "." and ".."; empty at the end. One that cannot be looked at does not
  // hide the others.
  virtual Task<Outcome<std::vector<Member>>> next() = 0;
};

enum class Follow : std::uint8_t { No, Yes };

class CopyEndpoint {
 public:
  virtual ~CopyEndpoint() = default;

  // The object at `path`; nullopt when there is none.
  virtual Task<Outcome<std::optional<CopyObject>>> find(std::string path, Follow follow) = 0;
  // The entry `name` of `directory`, not followed; nullopt when there is none.
  virtual Task<Outcome<std::optional<CopyObject>>> find_in(CopyObject directory,
                                                           std::string name) = 0;
  // For messages.
  virtual std::string shown_path(const std::string& path) const = 0;
  // Whether modes forbid this user nothing here. What a server takes root for is not known.
  virtual bool is_superuser() const { return false; }

  // Reading.
  virtual std::unique_ptr<DirIterator> members(const CopyObject& directory) = 0;
  virtual Task<Outcome<std::string>> readlink(CopyObject symlink) = 0;
  // Fails where the server, or the file system, has none of that kind.
  virtual Task<Outcome<Extras>> extras(CopyObject object, ExtraKinds kinds) = 0;
  // Moves the data of `file` from byte `from` on into `temp_file`; yields the length of the file.
  virtual Task<Outcome<std::uint64_t>> feed(CopyObject file, TempFile& temp_file,
                                            std::uint64_t from) = 0;
  // Reads from byte `offset` on until `to` is full or the file ends.
  virtual Task<Outcome<std::uint64_t>> read_at(CopyObject file, std::uint64_t offset,
                                               MutableBytes to) = 0;
  // Fails where feed() could read nothing of `file`.
  virtual Task<Outcome<Ok>> check_readable(CopyObject file);

  // Writing.
  virtual Task<Outcome<CopyObject>> mkdir(CopyObject directory, std::string name,
                                          std::uint32_t mode) = 0;
  // Both replace an existing object unless it is a directory. Errors name `name`. A symbolic link
  // gets owner and times of `finish` as far as they can be given.
  virtual Task<Outcome<Ok>> symlink(CopyObject directory, std::string name, std::string target,
                                    Finish finish) = 0;
  // A device, socket or FIFO, in place of what has that name unless it is a directory. Yields why
  // there can be none: this user may make no devices, or there are none of the kind; empty: it is
  // made.
  virtual Task<Outcome<std::string>> mknod(CopyObject directory, std::string name,
                                           nfs::client::Special special, Finish finish) = 0;
  // Empties a file that is to be written in place. Null where no new file can take the place of the
  // one that is there, and `plan` does not say that this one is written.
  virtual Task<Outcome<std::unique_ptr<TempFile>>> temp_file(CopyObject directory, std::string name,
                                                             TempFilePlan plan) = 0;
  // How many bytes at the end of a file that was not written completely may be missing in it: its
  // data need not arrive in order. Not less than any copy to here could leave out.
  virtual Task<Outcome<std::uint64_t>> unordered_bytes() = 0;
  // A further name of `file`, of this endpoint.
  virtual Task<Outcome<Ok>> link(CopyObject file, CopyObject directory, std::string name) = 0;
  virtual Task<Outcome<Ok>> finish(CopyObject object, Finish finish) = 0;
  // When it was changed last, by now.
  virtual Task<Outcome<nfs::client::Time>> modified(CopyObject object) = 0;
  // Owner and times of a symbolic link, as far as they can be given.
  virtual Task<void> finish_symlink(CopyObject link, Finish finish) = 0;
  virtual TimeRange times() const { return {}; }
  virtual Task<Outcome<Ok>> adopt(CopyObject object, Extras extras) = 0;
  // Gives the object `name` of `directory` the name `to`, which nothing has there: an object that
  // has it by then may be replaced.
  virtual Task<Outcome<Ok>> rename(CopyObject directory, std::string name, std::string to) = 0;
  // A directory must be empty.
  virtual Task<Outcome<Ok>> remove(CopyObject directory, Member member) = 0;
};

// The owner of a directory, who is no superuser, can change what is in it only where the mode
// allows it. True: this changed the mode, which is to be restored.
Task<bool> make_writable(CopyEndpoint& endpoint, CopyObject directory);

// `progress.bytes` counts the bytes that pass.
std::unique_ptr<CopyEndpoint> local_endpoint(Run& run, Progress& progress);
std::unique_ptr<CopyEndpoint> remote_endpoint(Remote& remote, Progress& progress);
// Standard input as a file to copy, and standard output as one to copy to, whatever their paths.
std::unique_ptr<CopyEndpoint> standard_endpoint(Run& run, Progress& progress);
// The device at `path` as a file to copy to, written in order like standard output. Blocks.
Outcome<std::unique_ptr<CopyEndpoint>> device_endpoint(Run& run, Progress& progress,
                                                       std::string path);

// The first hole of a file from byte `at` on, which is not empty; nullopt: there is none.
using NextHole = std::function<Task<Outcome<std::optional<nfs::client::FileRange>>>(std::uint64_t)>;
// Makes the holes of a source that begin below byte `kept` holes of `temp_file`, up to there: what
// is there already may have zeros in their place, which take storage.
Task<Outcome<Ok>> punch_holes(NextHole next_hole, TempFile& temp_file, std::uint64_t kept);

// A name that no other file has: ".stag-" and random hexadecimal digits.
std::string temporary_name();
// How many bytes of `data`, which begins at `offset` of a file, are of the same sort (all zeros or
// not) as the first of them, in whole blocks of kHoleSize.
struct Stretch {
  std::size_t length = 0;
  bool zeros = false;
};
Stretch next_stretch(Bytes data, std::uint64_t offset);

}  // namespace stag::cli
