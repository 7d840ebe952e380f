#include "nfs/server/file_handle.h"

#include <algorithm>
#include <string>

namespace stag::nfs {

namespace {

constexpr std::byte kFormat{1};
constexpr std::size_t kPrefix = 5;
constexpr std::size_t kMac = 8;
static_assert(kPrefix + vfs::Handle::kMaxSize + kMac <= FileHandles::kMaxSize);

}  // namespace

FileHandles::Sealed FileHandles::seal(std::uint32_t export_id, const vfs::Handle& object) const {
  Sealed sealed;
  sealed.data[0] = kFormat;
  store_be(sealed.data.data() + 1, export_id);
  const Bytes inner = object.bytes();
  std::copy(inner.begin(), inner.end(), sealed.data.begin() + kPrefix);
  const std::size_t signed_size = kPrefix + inner.size();
  store_be(sealed.data.data() + signed_size, siphash(key_, Bytes(sealed.data).first(signed_size)));
  sealed.size = signed_size + kMac;
  return sealed;
}

std::optional<FileHandles::Opened> FileHandles::open(Bytes handle) const {
  if (handle.size() < kPrefix + kMac || handle[0] != kFormat) return std::nullopt;
  const Bytes signed_part = handle.first(handle.size() - kMac);
  const auto claimed = load_be<std::uint64_t>(handle.data() + signed_part.size());
  // One comparison of whole words: no byte-by-byte exit that a clock could see.
  if ((claimed ^ siphash(key_, signed_part)) != 0) return std::nullopt;
  const auto object = vfs::Handle::from(signed_part.subspan(kPrefix));
  if (!object) return std::nullopt;
  return Opened{load_be<std::uint32_t>(handle.data() + 1), *object};
}

std::uint32_t FileHandles::export_id(std::string_view path) const {
  return static_cast<std::uint32_t>(siphash(key_, bytes_of(path)));
}

std::uint64_t FileHandles::file_system_id(std::string_view path) const {
  return std::max<std::uint64_t>(1, siphash(key_, bytes_of("fsid " + std::string(path))));
}

}  // namespace stag::nfs
