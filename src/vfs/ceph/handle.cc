#include "vfs/ceph/handle.h"

#include <array>

namespace stag::vfs::ceph {
namespace {

// The first byte; behind it are the numbers.
constexpr std::byte kLive{1};
constexpr std::byte kInSnapshot{2};
constexpr std::size_t kLiveSize = 1 + 16;
constexpr std::size_t kInSnapshotSize = kLiveSize + 8;

}  // namespace

Handle handle_of(const ObjectKey& key) {
  std::array<std::byte, kInSnapshotSize> bytes;
  const bool live = key.snapshot == ObjectKey::kNoSnapshot;
  bytes[0] = live ? kLive : kInSnapshot;
  store_be(&bytes[1], key.inode);
  store_be(&bytes[9], key.born);
  store_be(&bytes[17], key.snapshot);
  return *Handle::from(Bytes(bytes).first(live ? kLiveSize : kInSnapshotSize));
}

std::optional<ObjectKey> key_of(const Handle& handle) {
  const Bytes bytes = handle.bytes();
  const bool live = bytes.size() == kLiveSize && bytes[0] == kLive;
  if (!live && (bytes.size() != kInSnapshotSize || bytes[0] != kInSnapshot)) return std::nullopt;
  ObjectKey key{load_be<std::uint64_t>(&bytes[1]), load_be<std::uint64_t>(&bytes[9])};
  if (live) return key;
  key.snapshot = load_be<std::uint64_t>(&bytes[17]);
  if (key.snapshot == ObjectKey::kNoSnapshot) return std::nullopt;
  return key;
}

}  // namespace stag::vfs::ceph
