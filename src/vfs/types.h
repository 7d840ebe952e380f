// The value types of vfs: the caller, handles, attributes, and changes of attributes.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "vfs/groups.h"

namespace stag {
class Loop;
struct WorkerTime;
}  // namespace stag

namespace stag::vfs {

// (uid_t)-1 and (gid_t)-1: "leave it as it is" to chown(2) and setfsuid(2), so that no user and no
// group has this number.
inline constexpr std::uint32_t kNoId = 0xffffffff;

// The user that an operation acts for, already squashed and mapped by the server. uid 0 passes
// every permission check, as on a local disk.
struct Credentials {
  std::uint32_t uid = 65534;
  std::uint32_t gid = 65534;
  Groups groups{};

  bool in_group(std::uint32_t group) const { return gid == group || groups.has(group); }
};

// The caller of one operation: the loop that the operation ends on, and the user. All that is
// referred to outlives the operation.
struct CallerContext {
  Loop& loop;
  const Credentials& credentials;
  // The client whose share of the store's workers the operation takes, most often a connection
  // (Executor::Job::client). Compared, never dereferenced.
  const void* client = nullptr;
  // Gets what the operation waits for workers and takes there; null: nobody wants to know.
  WorkerTime* worker_time = nullptr;
};

// Names one object of one FileSystem for as long as the object exists, across renames and, for
// stores that persist, restarts. Opaque bytes; equal handles name the same object. A server wraps
// them (export id, keyed MAC) into file handles of at most 64 bytes (NFSv3). vfs/memory uses 16
// bytes, vfs/posix 10 to 18 on ext4, xfs and tmpfs (18 with its inode table), so that the 14 bytes
// of a wrapping fit the 32 bytes of NFSv2 as well.
class Handle {
 public:
  static constexpr std::size_t kMaxSize = 40;

  Handle() = default;
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
  friend bool operator==(const Handle& a, const Handle& b) {
    return text_of(a.bytes()) == text_of(b.bytes());
  }

 private:
  std::array<std::byte, kMaxSize> bytes_{};
  std::uint8_t size_ = 0;
};

// For unordered containers.
struct HandleHash {
  std::size_t operator()(const Handle& handle) const {
    return std::hash<std::string_view>()(text_of(handle.bytes()));
  }
};

// Time since 1970-01-01 00:00 UTC.
struct Time {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;  // below 1,000,000,000
  friend auto operator<=>(const Time&, const Time&) = default;
};

enum class FileType : std::uint8_t {
  Regular,
  Directory,
  Symlink,
  Fifo,
  Socket,
  BlockDevice,
  CharacterDevice
};

struct Device {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

struct Attributes {
  FileType type = FileType::Regular;
  std::uint32_t mode = 0;  // the 12 permission bits only: 07777
  std::uint32_t links = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t size = 0;  // bytes; of a symlink, the length of its text
  std::uint64_t used = 0;  // bytes of storage
  Device device;           // of block and character devices
  std::uint64_t file_system_id = 0;
  std::uint64_t file_id = 0;  // unique in the file system; never reused while the handle is valid
  Time accessed;
  Time modified;
  Time changed;
  std::uint64_t change = 0;     // differs whenever data or attributes changed (NFSv4 change)
  std::optional<Time> created;  // absent where the store does not know it
};

// Sets a time: not at all, to the store's present time, or to a value.
struct SetTime {
  enum class How : std::uint8_t { Keep, Now, To };
  How how = How::Keep;
  Time time;  // How::To only
};

// The changes of set_attributes() and of the creating operations. An absent attribute keeps its
// value, or gets the store's default in a new object.
struct SetAttributes {
  std::optional<std::uint32_t> mode;  // 07777
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::uint64_t> size;  // truncates or extends with zeros; of regular files only
  SetTime accessed;
  SetTime modified;
};

// The attributes before a change that a client compares with its cache (weak cache consistency,
// RFC 1813 2.3.8).
struct BeforeChange {
  std::uint64_t size = 0;
  Time modified;
  Time changed;
  std::uint64_t change = 0;  // as in Attributes
};
// What changed in one object. `before` and `after` are absent when the store could not observe them
// together with the change.
struct Change {
  std::optional<BeforeChange> before;
  std::optional<Attributes> after;
  // Attributes::change as it was seen before, also where other changes may lie between; nullopt
  // when `before` has it, or it is not known.
  std::optional<std::uint64_t> change_before{};
};

inline BeforeChange before_of(const Attributes& attributes) {
  return {attributes.size, attributes.modified, attributes.changed, attributes.change};
}

// Access bits, with the values of RFC 1813 3.3.4.
namespace access {
inline constexpr std::uint32_t kRead = 0x01;
inline constexpr std::uint32_t kLookup = 0x02;  // directories only
inline constexpr std::uint32_t kModify = 0x04;
inline constexpr std::uint32_t kExtend = 0x08;
inline constexpr std::uint32_t kDelete = 0x10;   // of entries in a directory
inline constexpr std::uint32_t kExecute = 0x20;  // never for directories
inline constexpr std::uint32_t kAll = 0x3f;
}  // namespace access

// How durable written data is when the write is answered (RFC 1813 3.3.7 stable_how), in rising
// order: it may be lost in a crash; data is durable; data and attributes are durable.
enum class Stability : std::uint8_t { Unstable, DataSync, FileSync };

// Eight opaque bytes: of an exclusive create (RFC 1813 3.3.8) or of a listing (3.3.16).
using Verifier = std::array<std::byte, 8>;

}  // namespace stag::vfs
