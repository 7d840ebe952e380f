// The nouns of vfs: who asks, what an object is named by, what is known about it and what may be
// changed.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/inline_vector.h"

namespace stag {
class Loop;
}

namespace stag::vfs {

// Who asks, already squashed and mapped by the server. uid 0 passes every permission check, as on a
// local disk.
struct Credentials {
  std::uint32_t uid = 65534;
  std::uint32_t gid = 65534;
  InlineVector<std::uint32_t, 16>
      groups;  // supplementary; AUTH_SYS carries at most 16 (RFC 5531 appendix A)

  bool in_group(std::uint32_t group) const {
    return gid == group || std::find(groups.begin(), groups.end(), group) != groups.end();
  }
};

// The asking side of one operation: the loop its coroutine is resumed on and the user it acts for.
// Both outlive it.
struct CallerContext {
  Loop& loop;
  const Credentials& credentials;
  // Whose share of the store's workers it takes, most often a connection; only compared.
  const void* client = nullptr;
};

// Names one object of one FileSystem for as long as the object exists, across renames and, for
// stores that persist, restarts. Opaque bytes; equal handles name the same object. A server wraps
// them (export id, keyed MAC) to at most the 64 bytes of NFSv3. vfs/memory uses 16 bytes and
// vfs/posix on ext4, xfs and tmpfs 10 to 18 (18 with its inode table), which leaves room for a
// wrapping of 14 bytes within the 32 of NFSv2.
class Handle {
 public:
  static constexpr std::size_t kMaxSize = 40;

  Handle() = default;
  // Nothing when `bytes` is longer than any handle.
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
    return std::ranges::equal(a.bytes(), b.bytes());
  }

 private:
  std::array<std::byte, kMaxSize> bytes_{};
  std::uint8_t size_ = 0;
};

struct HandleHash {
  std::size_t operator()(const Handle& handle) const {
    return std::hash<std::string_view>()(text_of(handle.bytes()));
  }
};

// Since 1970-01-01 UTC.
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

// A time to be set: left alone, the store's own now, or a value.
struct SetTime {
  enum class How : std::uint8_t { Keep, Now, To };
  How how = How::Keep;
  Time time;  // How::To only
};

// What set_attributes and the creating operations change; what is absent stays, or gets the store's
// default.
struct SetAttributes {
  std::optional<std::uint32_t> mode;  // 07777
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::uint64_t> size;  // truncates or extends with zeros; of regular files only
  SetTime accessed;
  SetTime modified;
};

// Weak cache consistency (RFC 1813 2.3.8): what a client compares with its cache. `before` is
// absent when the store could not observe it next to the change.
struct BeforeChange {
  std::uint64_t size = 0;
  Time modified;
  Time changed;
  std::uint64_t change = 0;  // as in Attributes
};
struct Change {
  std::optional<BeforeChange> before;
  std::optional<Attributes> after;
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

// How far a write has to be on the medium before it is answered (RFC 1813 3.3.7 stable_how), in
// rising order.
enum class Stability : std::uint8_t { Unstable, DataSync, FileSync };

using Verifier = std::array<std::byte, 8>;

}  // namespace stag::vfs
