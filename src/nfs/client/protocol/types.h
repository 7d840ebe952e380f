// The value types of the NFS client, which belong to no version of NFS.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace stag::nfs::client {

// A file handle: the server's name of an object. Opaque bytes; equal Handles name the same object.
class Handle {
 public:
  // Of NFS version 4; version 3 has at most 64 bytes, version 2 has 32.
  static constexpr std::size_t kMaxSize = 128;

  Handle() {}  // empty; the bytes beyond size() are undefined
  // nullopt when `bytes` is longer than kMaxSize.
  static std::optional<Handle> from(Bytes bytes) {
    if (bytes.size() > kMaxSize) return std::nullopt;
    Handle handle;
    std::copy(bytes.begin(), bytes.end(), handle.bytes_.begin());
    handle.size_ = static_cast<std::uint8_t>(bytes.size());
    return handle;
  }

  Bytes bytes() const { return Bytes(bytes_).first(size_); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  friend bool operator==(const Handle& a, const Handle& b) {
    return std::ranges::equal(a.bytes(), b.bytes());
  }

 private:
  std::array<std::byte, kMaxSize> bytes_;
  std::uint8_t size_ = 0;
};

// Time since 1970-01-01 00:00 UTC.
struct Time {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;  // below 1,000,000,000
  friend auto operator<=>(const Time&, const Time&) = default;
};

// The numbers are those of NFS versions 3 and 4 (RFC 1813 2.5, ftype3).
enum class FileType : std::uint8_t {
  Regular = 1,
  Directory,
  BlockDevice,
  CharacterDevice,
  Symlink,
  Socket,
  Fifo,
};

struct Device {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

struct Attributes {
  FileType type = FileType::Regular;
  std::uint32_t mode = 0;  // 07777
  std::uint32_t links = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  // The server has named an owner whose number is not known here; `uid` or `gid` is nobody's then.
  bool uid_unknown = false, gid_unknown = false;
  std::uint64_t size = 0;  // bytes
  std::uint64_t used = 0;  // bytes of storage
  Device device{};         // of BlockDevice and CharacterDevice
  std::uint64_t file_system_id = 0;
  std::uint64_t file_id = 0;
  std::uint64_t change = 0;  // of version 4 (RFC 8881 5.8.1.4): another one after each change
  Time accessed{};
  Time modified{};
  Time changed{};
  friend bool operator==(const Attributes&, const Attributes&) = default;
};

// What creating an object has made of its directory (RFC 8881 3.3.5): its Attributes::change before
// and after. `atomic`: nobody else changed it in between.
struct DirectoryChange {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  bool atomic = false;
};

// An object with its attributes as of the last Reply that carried them.
struct Node {
  Handle handle;
  Attributes attributes;
  DirectoryChange directory{};  // of a new object; zeros when the server does not send it
};

// Sets a time: not at all, to the server's present time, or to a value.
struct SetTime {
  enum class How : std::uint8_t { Keep, Now, To };
  How how = How::Keep;
  Time time{};  // How::To only

  static SetTime now() { return {How::Now, {}}; }
  static SetTime to(Time time) { return {How::To, time}; }
};

// A file, and the open by which it is used. Without an open (0) the server checks the permissions
// of each READ and WRITE.
struct File {
  Handle handle;
  std::uint64_t open = 0;

  File() = default;
  File(const Handle& of, std::uint64_t by = 0) : handle(of), open(by) {}
};

// What open() gives.
struct Opened {
  File file;
  Attributes attributes;
  DirectoryChange directory{};  // of a new file; zeros when the server does not send it
  bool times_due = false;       // the caller sets the times (CreateMode::ExclusiveButTimes)
};

// The owner of byte-range locks: locks of one owner do not conflict with each other.
struct LockOwner {
  std::uint64_t space = 0;   // tells apart owners of different kinds that have the same number
  std::uint64_t number = 0;  // for example of a process
};

// A lock of bytes of a file.
struct FileLock {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // 0: to the end of the file, however far it grows
  bool exclusive = false;
};
// A part of a range. If `held`, the owner has locked it, in the mode of `lock`; else only the range
// of `lock` has a meaning.
struct LockPiece {
  FileLock lock{};
  bool held = false;
};

// The changes of setattr() and of the creating operations. An absent attribute keeps its value, or
// gets the server's default in a new object.
struct SetAttributes {
  std::optional<std::uint32_t> mode{};  // 07777
  std::optional<std::uint32_t> uid{};
  std::optional<std::uint32_t> gid{};
  std::optional<std::uint64_t> size{};  // truncates or extends with zeros
  SetTime accessed{};
  SetTime modified{};
};

// How create() treats a name that is taken.
enum class CreateMode : std::uint8_t {
  Unchecked,  // opens the existing file; of the attributes only `size` is applied to it
  Guarded,    // fails with Status::Exists
  // Fails with Status::Exists, but succeeds if the call is a repetition (RFC 1813 3.3.8); the
  // client sets the attributes afterwards.
  Exclusive,
  // The same, but the times are left to the caller, who sets them soon: until then the server may
  // keep something else there.
  ExclusiveButTimes,
};
inline bool is_exclusive(CreateMode mode) {
  return mode == CreateMode::Exclusive || mode == CreateMode::ExclusiveButTimes;
}

// The object that mknod() makes.
struct Special {
  FileType type = FileType::Fifo;  // Fifo, Socket, BlockDevice or CharacterDevice
  Device device{};                 // of BlockDevice and CharacterDevice
};

// One entry of a directory. Never "." or "..".
struct Entry {
  std::string name;
  std::uint64_t file_id = 0;
  // nullopt with Listing::Detail::Names, and where the server does not send them.
  std::optional<Attributes> attributes{};
  std::optional<Handle> handle{};
};

// How durable written data is when the server answers (RFC 1813 3.3.7, stable_how).
enum class Stability : std::uint8_t { Unstable, DataSync, FileSync };

// A write verifier: differs from the last one when the server may have lost unstable data.
using Verifier = std::array<std::byte, 8>;

struct ReadPart {
  std::uint32_t count = 0;  // bytes
  bool eof = false;         // the file ends behind these bytes
};

// A part of a file to be read; the data comes to `to`.
struct ReadRange {
  std::uint64_t offset = 0;  // bytes
  MutableBytes to{};
};

struct WritePart {
  std::uint32_t count = 0;  // bytes
  Stability committed = Stability::Unstable;
  Verifier verifier{};
};

// One of the ways in which other servers reach a server (RFC 7862 section 16.1, netloc4),
// unchecked.
struct ServerLocation {
  enum class Kind : std::uint8_t { Name, Url, Address };
  Kind kind = Kind::Name;
  std::string where{};  // a host name, a URL, or a universal address (RFC 5665 section 5.2)
  std::string netid{};  // of Address: how it is reached there, for example "tcp6"
  friend bool operator==(const ServerLocation&, const ServerLocation&) = default;
};

// The permission that FileSystem::notify_copy() obtains from one server, so that another server may
// read a file of it.
struct CopyNotice {
  std::array<std::byte, 16> stateid{};  // opaque: names the permission at the server of the file
  std::vector<ServerLocation> locations{};  // where the other server reaches that one
};

// Where a server copies from: a file of its own, or a file of another server.
struct CopySource {
  CopySource(const Handle& of) : file(of) {}

  Handle file;
  std::optional<CopyNotice> notice{};  // nullopt: a file of its own
};

// What a server has copied (RFC 7862 15.2).
struct CopyPart {
  std::uint64_t count = 0;  // bytes
  Stability committed = Stability::Unstable;
  Verifier verifier{};
};

// A part of a file, or the place where one is copied to.
struct FileRange {
  std::uint64_t offset = 0;  // bytes
  std::uint64_t length = 0;
};

// What FileSystem::read_plus() has read, as ReadPart has it, and which of these bytes lie in holes:
// in order, not empty, no two of them adjacent.
struct SparsePart {
  std::uint32_t count = 0;  // bytes
  bool eof = false;         // the file ends behind these bytes
  std::vector<FileRange> holes{};
};

// What FileSystem::seek() looks for (of stores: vfs::SeekTo).
enum class Content : std::uint8_t { Data, Hole };

// What set_xattr() does when the name is there, or is not.
enum class XattrMode : std::uint8_t { Either, Create, Replace };

// The permission bits of FileSystem::access() (RFC 1813 3.3.4).
namespace access {
inline constexpr std::uint32_t kRead = 0x01;
inline constexpr std::uint32_t kLookup = 0x02;
inline constexpr std::uint32_t kModify = 0x04;
inline constexpr std::uint32_t kExtend = 0x08;
inline constexpr std::uint32_t kDelete = 0x10;
inline constexpr std::uint32_t kExecute = 0x20;
}  // namespace access

// Space and object counts of a file system.
struct FileSystemUsage {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t available_bytes = 0;  // that this user may use
  std::uint64_t total_files = 0;
  std::uint64_t free_files = 0;
  std::uint64_t available_files = 0;
};

// Limits and properties of a file system (FSINFO, RFC 1813 3.3.19); a limit of 0 is unknown.
struct FileSystemInfo {
  std::uint32_t read_max = 0;  // bytes of one READ
  std::uint32_t read_preferred = 0;
  std::uint32_t write_max = 0;  // bytes of one WRITE
  std::uint32_t write_preferred = 0;
  std::uint32_t list_preferred = 0;  // bytes of one reply to a listing
  std::uint64_t max_file_size = 0;
  Time time_granularity{};
  bool hard_links = false;
  bool symlinks = false;
  bool times_can_be_set = false;
};

// Limits on names (PATHCONF, RFC 1813 3.3.20).
struct NameLimits {
  std::uint32_t max_links = 0;  // 0: unknown
  std::uint32_t max_name = 0;   // bytes
  bool no_truncation = false;   // longer names are refused, not cut
  bool chown_restricted = false;
  bool case_insensitive = false;
  bool case_preserving = false;
};

// Why a server refuses an operation. The statuses of all NFS versions and of MOUNT map to these.
enum class Status : std::uint8_t {
  Ok,
  NotOwner,
  NoEntry,
  Io,
  NoDeviceOrAddress,
  Access,
  Exists,
  CrossDevice,
  NoDevice,
  NotDirectory,
  IsDirectory,
  Invalid,
  FileTooBig,
  NoSpace,
  ReadOnly,
  TooManyLinks,
  NameTooLong,
  NotEmpty,
  QuotaExceeded,
  Stale,
  Remote,
  BadHandle,
  NotSync,  // the guard of setattr() is not the object's ctime
  BadCookie,
  NotSupported,
  TooSmall,
  ServerFault,
  BadType,
  Delay,    // NFS3ERR_JUKEBOX: not now; the client tries again later
  NoXattr,  // there is no extended attribute of that name
  XattrTooBig,
  Locked,     // another owner holds a lock
  StateLost,  // the server has given up the open, or locks by it, and others may have had the file
  InUse,      // another owner has it open or locked in a way that denies this use of it
  Moved,      // its file system is on another server (RFC 8881 section 11: a referral)
  WrongSecurity,  // the export takes other security flavors than that of the call
  Unknown,        // a number that no RFC defines
};

// One entry of an access control list (POSIX 1003.1e draft 17).
struct AclEntry {
  // The numbers of NFSACL and of Linux's extended attributes.
  enum Tag : std::uint32_t {
    kUserObject = 0x01,
    kUser = 0x02,
    kGroupObject = 0x04,
    kGroup = 0x08,
    kMask = 0x10,
    kOther = 0x20,
  };
  std::uint32_t tag = kUserObject;
  std::uint32_t id = 0;           // of kUser and kGroup
  std::uint32_t permissions = 0;  // bits: 4 read, 2 write, 1 execute
  friend bool operator==(const AclEntry&, const AclEntry&) = default;
};

// Bytes of the longest results of GETACL: both lists with as many entries as NFSACL carries.
inline constexpr std::uint32_t kAclReplyMax = 24688;

// One entry of an access control list of version 4, in the numbers of RFC 8881 section 6.2.1.
struct Nfs4Ace {
  std::uint32_t type = 0;  // 0 allows, 1 denies, 2 audits, 3 alarms
  std::uint32_t flags = 0;
  std::uint32_t mask = 0;
  std::string who;  // "OWNER@", "GROUP@", "EVERYONE@", a number, or a name of the server's domain
  friend bool operator==(const Nfs4Ace&, const Nfs4Ace&) = default;
};
using Nfs4Acl = std::vector<Nfs4Ace>;

// The lists of an object. Those from a server are in canonical order.
struct Acls {
  std::vector<AclEntry> access;  // three entries if the object has nothing but a mode
  std::vector<AclEntry>
      defaults;  // the list that new objects in a directory begin with; may be empty
  // Whether the lists say more than a mode does.
  bool beyond_mode() const { return access.size() > 3 || !defaults.empty(); }
};

}  // namespace stag::nfs::client
