// Access control lists with the meaning that the withdrawn POSIX 1003.1e gave them and that Linux
// and NFSACL kept: an ordered list of who may read, write and execute, of which the nine bits of a
// mode are a summary. An object has one such list for access and a directory may have a second, its
// default list, that new objects in it begin with.
//
// Values without behaviour towards a store; vfs.h has the operations.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vfs/types.h"

namespace stag::vfs {

struct AclEntry {
  // In canonical order, with the numbers of Linux and NFSACL.
  enum class Tag : std::uint16_t {
    Owner = 0x01,
    User = 0x02,  // the one called `id`
    OwningGroup = 0x04,
    Group = 0x08,  // the one called `id`
    Mask = 0x10,   // the most that users, groups and the owning group get
    Others = 0x20,
  };
  Tag tag = Tag::Others;
  std::uint32_t id = 0;           // of User and Group; else 0
  std::uint32_t permissions = 0;  // read 4, write 2, execute 1
  friend auto operator<=>(const AclEntry&, const AclEntry&) = default;
};

// A complete list in canonical order; or empty, which means that there is none.
class Acl {
 public:
  Acl() = default;
  // Puts the entries in order. Nothing unless they are a list: one entry each for the owner, the
  // owning group and all others, at most one for each user, group and the mask, and a mask where
  // users or groups are named. No entries at all are the empty list.
  static std::optional<Acl> from(std::vector<AclEntry> entries);
  // The list that says what the nine bits of `mode` say.
  static Acl of_mode(std::uint32_t mode);

  std::span<const AclEntry> entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  // Whether a mode says all that this list does.
  bool minimal() const { return entries_.size() <= 3; }

  // The nine bits that a mode shows of this list, which is not empty: owner, mask (the owning group
  // where there is no mask), others.
  std::uint32_t mode() const;
  // What chmod(2) does to the list. The empty one stays empty.
  void set_mode(std::uint32_t mode);
  // What a new object asked for with `mode` gets of this, the default list of its directory: no
  // more than both allow.
  Acl inherited(std::uint32_t mode) const;

  // Whether `who` gets all of `wanted` (bits as in AclEntry) of an object with this owner and
  // group. Not for root, whom no list stops. The list is not empty.
  bool permits(std::uint32_t owner, std::uint32_t group, const Credentials& who,
               std::uint32_t wanted) const;

  friend bool operator==(const Acl&, const Acl&) = default;

 private:
  const AclEntry* find(AclEntry::Tag tag) const;
  AclEntry* find(AclEntry::Tag tag) {
    return const_cast<AclEntry*>(static_cast<const Acl*>(this)->find(tag));
  }
  // What a mode calls the group's bits.
  AclEntry& group_class();

  std::vector<AclEntry> entries_;
};

// Both lists of an object. `access` is complete for objects without more than a mode, too;
// `defaults` is empty unless a directory has one.
struct Acls {
  Acl access;
  Acl defaults;
};

// What is absent stays. The empty list takes a list away: without an access list the mode, as it
// is, decides alone.
struct SetAcls {
  std::optional<Acl> access;
  std::optional<Acl> defaults;
};

}  // namespace stag::vfs
