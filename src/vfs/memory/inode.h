// Inode: one object of the memory store, and its permission checks. Not synchronised; the store has
// locked the object's shard.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "vfs/acl.h"
#include "vfs/memory/directory_table.h"
#include "vfs/memory/file_data.h"
#include "vfs/status.h"
#include "vfs/types.h"

namespace stag::vfs::memory {

inline constexpr std::uint32_t kSetUid = 04000;
inline constexpr std::uint32_t kSetGid = 02000;
inline constexpr std::uint32_t kSticky = 01000;
inline constexpr std::uint32_t kModeBits = 07777;

struct Inode {
  InodeId id = 0;
  InodeId parent = 0;  // of a directory; the root is its own
  FileType type = FileType::Regular;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t links = 1;
  Device device;
  Time accessed;
  Time modified;
  Time changed;
  Time created;
  std::uint64_t change = 1;
  FileData data;                            // of a regular file
  std::string target;                       // of a symlink
  std::unique_ptr<DirectoryTable> entries;  // of a directory
  // The lists that say more than the mode; null when there are none. `access` may be empty, and is
  // never minimal().
  std::unique_ptr<Acls> acls;
  using Xattrs = std::map<std::string, std::string, std::less<>>;
  std::unique_ptr<Xattrs> xattrs;  // null: none

  bool is_directory() const { return type == FileType::Directory; }
  bool has_access_acl() const { return acls != nullptr && !acls->access.empty(); }
  Attributes attributes(std::uint64_t file_system_id) const;
  // The state of a regular file before a change.
  BeforeChange before() const { return {data.size(), modified, changed, change}; }

  // The data or the entries changed.
  void touch_data(Time now);
  // Attributes or links changed.
  void touch(Time now);
};

// Permission bits as in a mode, shifted to the right.
inline constexpr std::uint32_t kMayRead = 4;
inline constexpr std::uint32_t kMayWrite = 2;
inline constexpr std::uint32_t kMayExecute = 1;

// The check of open(2): one class of mode bits decides, or the access list if there is one; root
// passes, unless it wants to execute a file that no class may execute.
bool permits(const Inode& inode, const Credentials& credentials, std::uint32_t wanted);

inline bool is_root(const Credentials& credentials) {
  return credentials.uid == 0;
}
inline bool owns(const Inode& inode, const Credentials& credentials) {
  return is_root(credentials) || credentials.uid == inode.uid;
}
// The client's open(2) has checked already, so the owner passes whatever the mode says now, and
// execute permission suffices for reading (RFC 1813 4.4).
bool may_read_data(const Inode& inode, const Credentials& credentials);
bool may_write_data(const Inode& inode, const Credentials& credentials);
// Why an entry that leads to `child` may not be taken out of `directory`: Access, or Perm when it
// is for the sticky bit alone.
std::optional<Status> unlink_refusal(const Inode& directory, const Inode& child,
                                     const Credentials& credentials);

// The bits of vfs::access granted.
std::uint32_t granted(const Inode& inode, const Credentials& credentials);

// A write or chown takes set-user-id and set-group-id away, as on a local disk.
void drop_set_id(Inode& inode);

}  // namespace stag::vfs::memory
