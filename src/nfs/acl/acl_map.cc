#include "nfs/acl/acl_map.h"

#include "nfs/acl/owner_name.h"

namespace stag::nfs::nfs4 {

namespace {

using Tag = vfs::AclEntry::Tag;

constexpr std::uint32_t kRead = 4;
constexpr std::uint32_t kWrite = 2;
constexpr std::uint32_t kExecute = 1;
constexpr std::uint32_t kAllPermissions = kRead | kWrite | kExecute;

constexpr std::uint32_t kWriteBits = v4::ACE4_WRITE_DATA | v4::ACE4_APPEND_DATA;
// What nobody is denied, and what owners are not.
constexpr std::uint32_t kAnyone =
    v4::ACE4_READ_ATTRIBUTES | v4::ACE4_READ_ACL | v4::ACE4_SYNCHRONIZE;
constexpr std::uint32_t kOwner = v4::ACE4_WRITE_ATTRIBUTES | v4::ACE4_WRITE_ACL;
constexpr std::uint32_t kInherit = v4::ACE4_FILE_INHERIT_ACE | v4::ACE4_DIRECTORY_INHERIT_ACE;

std::uint32_t mask_of(std::uint32_t permissions, bool directory) {
  std::uint32_t mask = 0;
  if (permissions & kRead) mask |= v4::ACE4_READ_DATA;
  if (permissions & kWrite) mask |= kWriteBits | (directory ? v4::ACE4_DELETE_CHILD : 0);
  if (permissions & kExecute) mask |= v4::ACE4_EXECUTE;
  return mask;
}

// One list of vfs as entries of NFSv4, which are looked at in order until all is allowed or
// something denied: so an entry is denied what it does not have and a later one would give.
class Writer {
 public:
  Writer(const vfs::Acl& acl, std::uint32_t flags, bool directory, Aces& to)
      : acl_(acl), flags_(flags), directory_(directory), to_(to) {
    for (const vfs::AclEntry& entry : acl.entries())
      if (entry.tag == Tag::Mask) limit_ = entry.permissions;
    for (const vfs::AclEntry& entry : acl.entries()) {
      if (entry.tag == Tag::User) users_ |= effective(entry);
      if (entry.tag == Tag::OwningGroup || entry.tag == Tag::Group) groups_ |= effective(entry);
      if (entry.tag == Tag::Others) others_ = entry.permissions;
    }
  }

  void write() {
    for (const vfs::AclEntry& entry : acl_.entries()) {
      if (entry.tag != Tag::Owner && entry.tag != Tag::User) continue;
      const std::uint32_t later = groups_ | others_ | (entry.tag == Tag::Owner ? users_ : 0);
      deny(entry, later & ~effective(entry));
      allow(entry);
    }
    // A user may be in several groups: what any of them is allowed counts before what one is not.
    for (const vfs::AclEntry& entry : acl_.entries())
      if (is_group(entry)) allow(entry);
    for (const vfs::AclEntry& entry : acl_.entries())
      if (is_group(entry)) deny(entry, others_ & ~effective(entry));
    for (const vfs::AclEntry& entry : acl_.entries())
      if (entry.tag == Tag::Others) allow(entry);
  }

 private:
  static bool is_group(const vfs::AclEntry& entry) {
    return entry.tag == Tag::OwningGroup || entry.tag == Tag::Group;
  }
  std::uint32_t effective(const vfs::AclEntry& entry) const {
    return entry.tag == Tag::Owner || entry.tag == Tag::Others ? entry.permissions
                                                               : entry.permissions & limit_;
  }
  void deny(const vfs::AclEntry& entry, std::uint32_t permissions) {
    if (permissions != 0)
      add(entry, v4::ACE4_ACCESS_DENIED_ACE_TYPE, mask_of(permissions, directory_));
  }
  void allow(const vfs::AclEntry& entry) {
    const std::uint32_t always = entry.tag == Tag::Owner ? kAnyone | kOwner : kAnyone;
    add(entry, v4::ACE4_ACCESS_ALLOWED_ACE_TYPE, always | mask_of(effective(entry), directory_));
  }
  void add(const vfs::AclEntry& entry, std::uint32_t type, std::uint32_t mask) {
    const std::uint32_t group = is_group(entry) ? v4::ACE4_IDENTIFIER_GROUP : 0;
    to_.push_back({type, flags_ | group, mask, who(entry)});
  }
  static std::string who(const vfs::AclEntry& entry) {
    if (entry.tag == Tag::Owner) return "OWNER@";
    if (entry.tag == Tag::OwningGroup) return "GROUP@";
    if (entry.tag == Tag::Others) return "EVERYONE@";
    return owner_name(entry.id);
  }

  const vfs::Acl& acl_;
  const std::uint32_t flags_;
  const bool directory_;
  Aces& to_;
  std::uint32_t limit_ = kAllPermissions;
  std::uint32_t users_ = 0;
  std::uint32_t groups_ = 0;
  std::uint32_t others_ = 0;
};

}  // namespace

Aces to_aces(const vfs::Acls& acls, bool directory) {
  Aces aces;
  Writer(acls.access, 0, directory, aces).write();
  if (!acls.defaults.empty())
    Writer(acls.defaults, kInherit | v4::ACE4_INHERIT_ONLY_ACE, directory, aces).write();
  return aces;
}

}  // namespace stag::nfs::nfs4
