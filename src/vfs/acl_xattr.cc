#include "vfs/acl_xattr.h"

namespace stag::vfs {
namespace {

constexpr std::uint32_t kXattrVersion = 2;
constexpr std::uint32_t kNoAclId = ~std::uint32_t{0};
constexpr std::size_t kXattrHeader = 4;
constexpr std::size_t kXattrEntry = 8;

template <class Integer>
Integer load_le(const std::byte* from) {
  Integer value = 0;
  for (std::size_t i = sizeof value; i-- > 0;)
    value = static_cast<Integer>(value << 8 | std::to_integer<Integer>(from[i]));
  return value;
}
template <class Integer>
void append_le(std::vector<std::byte>& to, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    to.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
}

bool has_id(AclEntry::Tag tag) {
  return tag == AclEntry::Tag::User || tag == AclEntry::Tag::Group;
}

}  // namespace

std::optional<Acl> acl_of_xattr(Bytes bytes) {
  if (bytes.size() < kXattrHeader || (bytes.size() - kXattrHeader) % kXattrEntry != 0)
    return std::nullopt;
  if (load_le<std::uint32_t>(bytes.data()) != kXattrVersion) return std::nullopt;
  std::vector<AclEntry> entries;
  for (Bytes rest = bytes.subspan(kXattrHeader); !rest.empty(); rest = rest.subspan(kXattrEntry)) {
    AclEntry entry;
    entry.tag = static_cast<AclEntry::Tag>(load_le<std::uint16_t>(rest.data()));
    entry.permissions = load_le<std::uint16_t>(rest.data() + 2);
    if (has_id(entry.tag)) entry.id = load_le<std::uint32_t>(rest.data() + 4);
    entries.push_back(entry);
  }
  return Acl::from(std::move(entries));
}

std::vector<std::byte> xattr_of_acl(const Acl& acl) {
  std::vector<std::byte> bytes;
  append_le(bytes, kXattrVersion);
  for (const AclEntry& entry : acl.entries()) {
    append_le(bytes, static_cast<std::uint16_t>(entry.tag));
    append_le(bytes, static_cast<std::uint16_t>(entry.permissions));
    append_le(bytes, has_id(entry.tag) ? entry.id : kNoAclId);
  }
  return bytes;
}

}  // namespace stag::vfs
