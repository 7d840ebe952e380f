// From lists of NFSv4 to those of vfs.
#include <map>

#include "nfs/acl/acl_map.h"
#include "nfs/acl/owner_name.h"

namespace stag::nfs::nfs4 {

namespace {

using Tag = vfs::AclEntry::Tag;

constexpr std::uint32_t kInheritable = v4::ACE4_FILE_INHERIT_ACE | v4::ACE4_DIRECTORY_INHERIT_ACE;
constexpr std::uint32_t kKnownAceFlags =
    kInheritable | v4::ACE4_INHERIT_ONLY_ACE | v4::ACE4_IDENTIFIER_GROUP;

// What was decided so far for a user. The first entry that names a bit decides it.
struct Decided {
  std::uint32_t allowed = 0;
  std::uint32_t denied = 0;
  void allow(std::uint32_t mask) { allowed |= mask & ~denied; }
  void deny(std::uint32_t mask) { denied |= mask & ~allowed; }
};

// One list as its entries are taken. The reader does not know who is in a group or is the owner:
// what denies one of them denies all that may be the same.
class Reader {
 public:
  v4::nfsstat4 take(const v4::nfsace4& ace) {
    const bool allows = ace.type == v4::ACE4_ACCESS_ALLOWED_ACE_TYPE;
    if (ace.who == "EVERYONE@") {
      for_all([&](Decided& each) { decide(each, allows, ace.access_mask); });
    } else if (ace.who == "OWNER@") {
      decide(owner_, allows, ace.access_mask);
    } else if (ace.who == "GROUP@") {
      decide_group(group_, allows, ace.access_mask);
    } else {
      const auto id = owner_id(ace.who);
      if (!id) return v4::NFS4ERR_BADOWNER;
      if (ace.flag & v4::ACE4_IDENTIFIER_GROUP) {
        decide_group(groups_.try_emplace(*id, everyone_).first->second, allows, ace.access_mask);
      } else {
        decide_user(users_.try_emplace(*id, everyone_).first->second, allows, ace.access_mask);
      }
    }
    any_ = true;
    return v4::NFS4_OK;
  }

  bool any() const { return any_; }
  vfs::Acl acl(bool directory) const {
    std::vector<vfs::AclEntry> entries;
    std::uint32_t mask = 0;
    const auto add = [&](Tag tag, std::uint32_t id, const Decided& decided) {
      const std::uint32_t permissions = permissions_of(decided.allowed, directory);
      entries.push_back({tag, id, permissions});
      if (tag == Tag::User || tag == Tag::Group || tag == Tag::OwningGroup) mask |= permissions;
    };
    add(Tag::Owner, 0, owner_);
    for (const auto& [id, decided] : users_) add(Tag::User, id, decided);
    add(Tag::OwningGroup, 0, group_);
    for (const auto& [id, decided] : groups_) add(Tag::Group, id, decided);
    if (!users_.empty() || !groups_.empty()) entries.push_back({Tag::Mask, 0, mask});
    add(Tag::Others, 0, others_);
    return *vfs::Acl::from(std::move(entries));
  }

 private:
  static std::uint32_t permissions_of(std::uint32_t allowed, bool directory) {
    const std::uint32_t write = v4::ACE4_WRITE_DATA | v4::ACE4_APPEND_DATA |
                                (directory ? v4::ACE4_DELETE_CHILD : std::uint32_t{0});
    return (allowed & v4::ACE4_READ_DATA ? 4u : 0u) | ((allowed & write) == write ? 2u : 0u) |
           (allowed & v4::ACE4_EXECUTE ? 1u : 0u);
  }
  static void decide(Decided& decided, bool allows, std::uint32_t mask) {
    allows ? decided.allow(mask) : decided.deny(mask);
  }
  void decide_user(Decided& user, bool allows, std::uint32_t mask) {
    decide(user, allows, mask);
    // The owner may be this user.
    if (!allows) owner_.deny(user.denied);
  }
  void decide_group(Decided& group, bool allows, std::uint32_t mask) {
    decide(group, allows, mask);
    if (allows) return;
    const std::uint32_t denied = group.denied;
    owner_.deny(denied);
    group_.deny(denied);
    everyone_.deny(denied);
    for (auto& [id, each] : users_) each.deny(denied);
    for (auto& [id, each] : groups_) each.deny(denied);
  }
  template <class Function>
  void for_all(Function function) {
    for (Decided* each : {&owner_, &group_, &others_, &everyone_}) function(*each);
    for (auto& [id, each] : users_) function(each);
    for (auto& [id, each] : groups_) function(each);
  }

  bool any_ = false;
  Decided owner_;
  Decided group_;
  Decided others_;
  Decided everyone_;  // that a user or group begins with who is named for the first time
  std::map<std::uint32_t, Decided> users_;
  std::map<std::uint32_t, Decided> groups_;
};

v4::nfsstat4 check(const v4::nfsace4& ace, bool directory) {
  if (ace.type > v4::ACE4_ACCESS_DENIED_ACE_TYPE || (ace.flag & ~kKnownAceFlags) != 0)
    return v4::NFS4ERR_ATTRNOTSUPP;
  const bool inherits = (ace.flag & kInheritable) != 0;
  if (inherits && !directory) return v4::NFS4ERR_INVAL;
  if (!inherits && (ace.flag & v4::ACE4_INHERIT_ONLY_ACE) != 0) return v4::NFS4ERR_INVAL;
  return v4::NFS4_OK;
}

}  // namespace

Result<vfs::SetAcls, v4::nfsstat4> from_aces(const Aces& aces, bool directory) {
  Reader access;
  Reader defaults;
  for (const v4::nfsace4& ace : aces) {
    v4::nfsstat4 status = check(ace, directory);
    if (status == v4::NFS4_OK && (ace.flag & kInheritable) != 0) status = defaults.take(ace);
    if (status == v4::NFS4_OK && (ace.flag & v4::ACE4_INHERIT_ONLY_ACE) == 0)
      status = access.take(ace);
    if (status != v4::NFS4_OK) return Failure{status};
  }
  vfs::SetAcls changes;
  changes.access = access.acl(directory);
  if (directory) changes.defaults = defaults.any() ? defaults.acl(directory) : vfs::Acl();
  return changes;
}

}  // namespace stag::nfs::nfs4
