#include "vfs/memory/inode.h"

namespace stag::vfs::memory {

Attributes Inode::attributes(std::uint64_t file_system_id) const {
  std::uint64_t size = data.size(), used = data.stored();
  if (type == FileType::Symlink) size = target.size();
  if (is_directory()) size = used = 4096 + 64 * entries->size();
  return {.type = type,
          .mode = mode,
          .links = links,
          .uid = uid,
          .gid = gid,
          .size = size,
          .used = used,
          .device = device,
          .file_system_id = file_system_id,
          .file_id = id,
          .accessed = accessed,
          .modified = modified,
          .changed = changed,
          .change = change,
          .created = created};
}

void Inode::touch_data(Time now) {
  modified = now;
  touch(now);
}

void Inode::touch(Time now) {
  changed = now;
  ++change;
}

bool permits(const Inode& inode, const Credentials& credentials, std::uint32_t wanted) {
  if (is_root(credentials)) {
    const bool executing = (wanted & kMayExecute) != 0 && !inode.is_directory();
    return !executing || (inode.mode & 0111) != 0;
  }
  if (inode.has_access_acl())
    return inode.acls->access.permits(inode.uid, inode.gid, credentials, wanted);
  std::uint32_t bits = inode.mode;
  if (credentials.uid == inode.uid)
    bits >>= 6;
  else if (credentials.in_group(inode.gid))
    bits >>= 3;
  return (bits & wanted) == wanted;
}

bool may_read_data(const Inode& inode, const Credentials& credentials) {
  return owns(inode, credentials) || permits(inode, credentials, kMayRead) ||
         permits(inode, credentials, kMayExecute);
}

bool may_write_data(const Inode& inode, const Credentials& credentials) {
  return owns(inode, credentials) || permits(inode, credentials, kMayWrite);
}

std::optional<Status> unlink_refusal(const Inode& directory, const Inode& child,
                                     const Credentials& credentials) {
  if (!permits(directory, credentials, kMayWrite | kMayExecute)) return Status::Access;
  if ((directory.mode & kSticky) == 0) return std::nullopt;
  if (owns(directory, credentials) || owns(child, credentials)) return std::nullopt;
  return Status::Perm;
}

std::uint32_t granted(const Inode& inode, const Credentials& credentials) {
  std::uint32_t bits = 0;
  if (permits(inode, credentials, kMayRead)) bits |= access::kRead;
  if (inode.is_directory()) {
    if (permits(inode, credentials, kMayExecute)) bits |= access::kLookup;
    if (permits(inode, credentials, kMayWrite | kMayExecute))
      bits |= access::kModify | access::kExtend | access::kDelete;
    return bits;
  }
  if (permits(inode, credentials, kMayWrite)) bits |= access::kModify | access::kExtend;
  if (permits(inode, credentials, kMayExecute)) bits |= access::kExecute;
  return bits;
}

void drop_set_id(Inode& inode) {
  if (inode.type != FileType::Regular) return;
  inode.mode &= ~kSetUid;
  // Without group execute the bit means mandatory locking, not identity.
  if ((inode.mode & 0010) != 0) inode.mode &= ~kSetGid;
}

}  // namespace stag::vfs::memory
