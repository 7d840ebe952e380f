#include "vfs/acl.h"

#include <algorithm>

#include "base/check.h"
#include "vfs/vfs.h"

namespace stag::vfs {
namespace {

using Tag = AclEntry::Tag;

constexpr std::uint32_t kAllPermissions = 7;

bool is_known(Tag tag) {
  switch (tag) {
    case Tag::Owner:
    case Tag::User:
    case Tag::OwningGroup:
    case Tag::Group:
    case Tag::Mask:
    case Tag::Others:
      return true;
  }
  return false;
}

bool is_named(const AclEntry& entry) {
  return entry.tag == Tag::User || entry.tag == Tag::Group;
}

bool is_possible(const AclEntry& entry) {
  if (!is_known(entry.tag) || entry.permissions > kAllPermissions) return false;
  return is_named(entry) ? entry.id != kNoId : entry.id == 0;
}

bool are_same_class(const AclEntry& a, const AclEntry& b) {
  return a.tag == b.tag && a.id == b.id;
}

}  // namespace

std::optional<Acl> Acl::from(std::vector<AclEntry> entries) {
  Acl acl;
  if (entries.empty()) return acl;
  if (!std::all_of(entries.begin(), entries.end(), is_possible)) return std::nullopt;
  std::sort(entries.begin(), entries.end());
  if (std::adjacent_find(entries.begin(), entries.end(), are_same_class) != entries.end())
    return std::nullopt;
  acl.entries_ = std::move(entries);
  for (const Tag tag : {Tag::Owner, Tag::OwningGroup, Tag::Others})
    if (acl.find(tag) == nullptr) return std::nullopt;
  const bool names = std::any_of(acl.entries_.begin(), acl.entries_.end(), is_named);
  if (names && acl.find(Tag::Mask) == nullptr) return std::nullopt;
  return acl;
}

Acl Acl::of_mode(std::uint32_t mode) {
  Acl acl;
  acl.entries_ = {{Tag::Owner, 0, mode >> 6 & kAllPermissions},
                  {Tag::OwningGroup, 0, mode >> 3 & kAllPermissions},
                  {Tag::Others, 0, mode & kAllPermissions}};
  return acl;
}

const AclEntry* Acl::find(Tag tag) const {
  const auto at = std::find_if(entries_.begin(), entries_.end(),
                               [tag](const AclEntry& entry) { return entry.tag == tag; });
  return at == entries_.end() ? nullptr : &*at;
}

AclEntry& Acl::group_class() {
  AclEntry* mask = find(Tag::Mask);
  return mask != nullptr ? *mask : *find(Tag::OwningGroup);
}

std::uint32_t Acl::mode() const {
  STAG_CHECK(!empty());
  const AclEntry* mask = find(Tag::Mask);
  const AclEntry& group = mask != nullptr ? *mask : *find(Tag::OwningGroup);
  return find(Tag::Owner)->permissions << 6 | group.permissions << 3 |
         find(Tag::Others)->permissions;
}

void Acl::set_mode(std::uint32_t mode) {
  if (empty()) return;
  find(Tag::Owner)->permissions = mode >> 6 & kAllPermissions;
  group_class().permissions = mode >> 3 & kAllPermissions;
  find(Tag::Others)->permissions = mode & kAllPermissions;
}

Acl Acl::inherited(std::uint32_t mode) const {
  Acl made = *this;
  if (!made.empty()) made.set_mode(made.mode() & mode);
  return made;
}

bool Acl::permits(std::uint32_t owner, std::uint32_t group, const Credentials& who,
                  std::uint32_t wanted) const {
  const AclEntry* mask = find(Tag::Mask);
  const std::uint32_t most = mask != nullptr ? mask->permissions : kAllPermissions;
  const auto allows = [wanted](std::uint32_t permissions) {
    return (permissions & wanted) == wanted;
  };
  bool is_member = false;
  for (const AclEntry& entry : entries_) {
    switch (entry.tag) {
      case Tag::Owner:
        if (who.uid == owner) return allows(entry.permissions);
        break;
      case Tag::User:
        if (who.uid == entry.id) return allows(entry.permissions & most);
        break;
      case Tag::OwningGroup:
      case Tag::Group:
        // Any one group that allows all of it will do; the others' entry is for strangers only.
        if (!who.in_group(entry.tag == Tag::Group ? entry.id : group)) break;
        if (allows(entry.permissions & most)) return true;
        is_member = true;
        break;
      case Tag::Mask:
        break;
      case Tag::Others:
        return !is_member && allows(entry.permissions);
    }
  }
  return false;
}

Operation<ObjectAcls> FileSystem::acls(CallerContext, const Handle&) {
  co_return Failure{Status::NotSupported};
}

Operation<Change> FileSystem::set_acls(CallerContext, const Handle&, const SetAcls&) {
  co_return Failure{Status::NotSupported};
}

}  // namespace stag::vfs
