#include "nfs/export/file_handle.h"

#include <algorithm>
#include <string>

namespace stag::nfs {

namespace {

constexpr std::byte kFormat{1};
constexpr std::size_t kPrefix = 5;
constexpr std::size_t kMac = 8;
constexpr std::size_t kMost = kPrefix + vfs::Handle::kMaxSize + kMac;
static_assert(kMost <= FileHandles::kMaxSize);

// The form for NFSv2: the format includes the length of the vfs handle, and zeros follow the
// handle.
constexpr std::size_t kFormat2 = 0x20;
constexpr std::size_t kRoom2 = FileHandles::kSize2 - kPrefix - kMac;

std::size_t room_used2(std::byte format) {
  return std::to_integer<std::size_t>(format) - kFormat2;
}
bool is_form2(Bytes handle) {
  return handle.size() == FileHandles::kSize2 && handle[0] >= std::byte{kFormat2} &&
         room_used2(handle[0]) <= kRoom2;
}

// Not 0 where `size` bytes, eight or more, differ. Looks at all of them, wherever they do.
std::uint64_t difference(const std::byte* a, const std::byte* b, std::size_t size) {
  const auto at = [=](std::size_t offset) {
    return load_be<std::uint64_t>(a + offset) ^ load_be<std::uint64_t>(b + offset);
  };
  std::uint64_t differs = at(size - 8);
  for (std::size_t offset = 0; offset + 8 < size; offset += 8) differs |= at(offset);
  return differs;
}

// A handle whose MAC this thread has found right, which will be so as long as the key is the same.
// Most calls name an object that one of the last has named.
struct Proven {
  SipKey key;
  std::array<std::byte, kMost> handle;
  std::size_t size;  // 0: none
};
constexpr std::size_t kProven = 64;
constinit thread_local std::array<Proven, kProven> proven{};

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

std::optional<FileHandles::Sealed2> FileHandles::seal2(std::uint32_t export_id,
                                                       const vfs::Handle& object) const {
  const Bytes inner = object.bytes();
  if (inner.size() > kRoom2) return std::nullopt;
  Sealed2 sealed{};
  sealed[0] = static_cast<std::byte>(kFormat2 + inner.size());
  store_be(sealed.data() + 1, export_id);
  std::copy(inner.begin(), inner.end(), sealed.begin() + kPrefix);
  constexpr std::size_t kSigned = kSize2 - kMac;
  store_be(sealed.data() + kSigned, siphash(key_, Bytes(sealed).first(kSigned)));
  return sealed;
}

// Comparisons of whole words: no byte-by-byte exit that a clock could see. The place of a handle is
// by its MAC, which nobody chooses who has no key.
bool FileHandles::made(Bytes handle) const {
  Proven& known = proven[std::to_integer<std::size_t>(handle.back()) % kProven];
  if (known.size == handle.size() &&
      (difference(known.handle.data(), handle.data(), handle.size()) |
       difference(known.key.data(), key_.data(), key_.size())) == 0)
    return true;
  const Bytes signed_part = handle.first(handle.size() - kMac);
  const auto claimed = load_be<std::uint64_t>(handle.data() + signed_part.size());
  if ((claimed ^ siphash(key_, signed_part)) != 0) return false;
  known.key = key_;
  std::ranges::copy(handle, known.handle.begin());
  known.size = handle.size();
  return true;
}

std::optional<FileHandles::Parts> FileHandles::parts_of(Bytes handle) const {
  if (handle.size() < kPrefix + kMac || handle.size() > kMost) return std::nullopt;
  const bool form2 = is_form2(handle);
  if ((handle[0] != kFormat && !form2) || !made(handle)) return std::nullopt;
  const std::size_t length = form2 ? room_used2(handle[0]) : handle.size() - kPrefix - kMac;
  return Parts{load_be<std::uint32_t>(handle.data() + 1), handle.subspan(kPrefix, length)};
}

std::optional<FileHandles::Opened> FileHandles::open(Bytes handle) const {
  const auto parts = parts_of(handle);
  if (!parts) return std::nullopt;
  return Opened{parts->export_id, *vfs::Handle::from(parts->object)};
}

std::uint32_t FileHandles::export_id(std::string_view path, std::string_view identity) const {
  std::string text(path);
  // No path has a NUL.
  if (!identity.empty()) (text += '\0') += identity;
  return static_cast<std::uint32_t>(siphash(key_, bytes_of(text)));
}

std::uint64_t FileHandles::file_system_id(std::string_view path) const {
  return std::max<std::uint64_t>(1, siphash(key_, bytes_of("fsid " + std::string(path))));
}

}  // namespace stag::nfs
