// What CephFS knows an object by, as a handle: the inode's number, the snapshot that it is seen in,
// and the time of its birth, because numbers are given out again. The same for every client of the
// file system, so that all gateways to it understand each other's handles.
#pragma once

#include <cstdint>
#include <optional>

#include "vfs/types.h"

namespace stag::vfs::ceph {

struct ObjectKey {
  // The snapshot of what lies in none.
  static constexpr std::uint64_t kNoSnapshot = ~std::uint64_t{1};
  // That of a directory of snapshots, ".snap".
  static constexpr std::uint64_t kOfSnapshots = ~std::uint64_t{0};

  std::uint64_t inode = 0;
  std::uint64_t born = 0;  // nanoseconds since 1970
  std::uint64_t snapshot = kNoSnapshot;
  friend bool operator==(const ObjectKey&, const ObjectKey&) = default;
};

// 17 bytes, which fit into the handles of NFSv2; 25 within a snapshot.
Handle handle_of(const ObjectKey& key);
// nullopt for bytes that handle_of() does not make.
std::optional<ObjectKey> key_of(const Handle& handle);

}  // namespace stag::vfs::ceph
