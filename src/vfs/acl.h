// Access control lists with the meaning that the withdrawn POSIX 1003.1e gave them and that Linux
// and NFSACL kept: an ordered list of entries that say which user or group may read, write and
// execute; the nine bits of a mode summarise it. Every object has one list for access. A directory
// may have a second one, its default list, which new objects in it begin with.
//
// Pure values; vfs/vfs.h has the operations of a store.
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
    User = 0x02,  // the user `id`
    OwningGroup = 0x04,
    Group = 0x08,  // the group `id`
    Mask = 0x10,   // the most permissions that User, Group and OwningGroup entries give
    Others = 0x20,
  };
  Tag tag = Tag::Others;
  std::uint32_t id = 0;           // of User and Group; else 0
  std::uint32_t permissions = 0;  // bits: read 4, write 2, execute 1
  friend auto operator<=>(const AclEntry&, const AclEntry&) = default;
};

// A complete list in canonical order; or the empty list, which means that the object has no list.
class Acl {
 public:
  Acl() = default;
  // Makes a list of entries in any order. nullopt unless they are complete: one entry each for the
  // owner, the owning group and all others, at most one for each user and group and for the mask,
  // and a mask if there are User or Group entries. No entries at all make the empty list.
  static std::optional<Acl> from(std::vector<AclEntry> entries);
  // The list with the same meaning as the nine bits of `mode`.
  static Acl of_mode(std::uint32_t mode);

  std::span<const AclEntry> entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  // Whether a mode has the same meaning as this list.
  bool minimal() const { return entries_.size() <= 3; }

  // The nine mode bits of this list, which is not empty: those of the owner, of the mask (of the
  // owning group if there is no mask), and of the others.
  std::uint32_t mode() const;
  // Changes the list as chmod(2) does. The empty list stays empty.
  void set_mode(std::uint32_t mode);
  // The access list of a new object that is created with `mode` in a directory with this default
  // list: it allows no more than both do.
  Acl inherited(std::uint32_t mode) const;

  // Whether this list, which is not empty, gives `who` all of `wanted` (bits as in AclEntry) on an
  // object with this owner and group. Not called for root, whom no list stops.
  bool permits(std::uint32_t owner, std::uint32_t group, const Credentials& who,
               std::uint32_t wanted) const;

  friend bool operator==(const Acl&, const Acl&) = default;

 private:
  const AclEntry* find(AclEntry::Tag tag) const;
  AclEntry* find(AclEntry::Tag tag) {
    return const_cast<AclEntry*>(static_cast<const Acl*>(this)->find(tag));
  }
  // The entry that the group bits of a mode stand for.
  AclEntry& group_class();

  std::vector<AclEntry> entries_;
};

// Both lists of an object. `access` is never empty: an object with nothing but a mode has the list
// of_mode(). `defaults` is empty unless a directory has a default list.
struct Acls {
  Acl access;
  Acl defaults;
};

// The changes of set_acls(). An absent list stays as it is. An empty list removes the object's
// list: without an access list the mode decides alone.
struct SetAcls {
  std::optional<Acl> access;
  std::optional<Acl> defaults;
};

}  // namespace stag::vfs
