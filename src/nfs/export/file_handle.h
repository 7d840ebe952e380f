// File handles as clients see them (RFC 1813 2.3.3): export, object, and a keyed MAC that cannot be
// made without the server's key. A client can therefore use only handles that the server gave out,
// and they reach only objects of their export.
//
//   byte 0        format, 1
//   bytes 1..4    export id, of the export's name and the identity of its tree
//   then          the vfs handle, up to 40 bytes
//   last 8        SipHash-2-4 of all before
//
// NFSv2 has handles of exactly 32 bytes (RFC 1094 2.3.3):
//
//   byte 0        0x20 + length of the vfs handle, which is at most 19
//   bytes 1..4    export id
//   bytes 5..23   the vfs handle and zeros
//   bytes 24..31  SipHash-2-4 of all before
#pragma once

#include <cstdint>
#include <optional>

#include "base/inline_vector.h"
#include "base/siphash.h"
#include "vfs/types.h"

namespace stag::nfs {

class FileHandles {
 public:
  static constexpr std::size_t kMaxSize = 64;

  explicit FileHandles(const SipKey& key) : key_(key) {}

  struct Sealed {
    std::array<std::byte, kMaxSize> data;
    std::size_t size = 0;
    Bytes bytes() const { return Bytes(data).first(size); }
  };
  Sealed seal(std::uint32_t export_id, const vfs::Handle& object) const;

  static constexpr std::size_t kSize2 = 32;
  using Sealed2 = std::array<std::byte, kSize2>;
  // For NFSv2; nullopt when the object's handle is too long for it.
  std::optional<Sealed2> seal2(std::uint32_t export_id, const vfs::Handle& object) const;

  struct Opened {
    std::uint32_t export_id = 0;
    vfs::Handle object;
  };
  // Opens a handle of either form; nullopt when this server did not make it. Takes the same time
  // wherever the MAC differs.
  std::optional<Opened> open(Bytes handle) const;
  // The same, without a copy: `object`, at most vfs::Handle::kMaxSize bytes, is a part of `handle`.
  struct Parts {
    std::uint32_t export_id = 0;
    Bytes object;
  };
  std::optional<Parts> parts_of(Bytes handle) const;

  // The id of an export follows from its name and from vfs::FileSystem::identity(): handles stay
  // good when the table is reordered, and are stale once another tree has the name.
  std::uint32_t export_id(std::string_view path, std::string_view identity = {}) const;
  // A longer one, which is not in the handles; never 0.
  std::uint64_t file_system_id(std::string_view path) const;

 private:
  bool made(Bytes handle) const;

  SipKey key_;
};

}  // namespace stag::nfs
