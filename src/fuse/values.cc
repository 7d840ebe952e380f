#include "fuse/values.h"

#define FUSE_USE_VERSION 314
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

namespace stag::fuse {
namespace {

using nfs::client::AclEntry;
using nfs::client::Attributes;
using nfs::client::Error;
using nfs::client::FileType;
using nfs::client::SetAttributes;
using nfs::client::SetTime;
using nfs::client::Status;
using nfs::client::Time;
namespace rights = nfs::client::access;

constexpr std::uint32_t kBlock = 512;  // of st_blocks
constexpr int kOpenForExec = 0x20;     // __FMODE_EXEC, as the kernel passes it on

int errno_of(Status status) {
  switch (status) {
    case Status::Ok:
      return 0;
    case Status::NotOwner:
      return EPERM;
    case Status::NoEntry:
      return ENOENT;
    case Status::NoDeviceOrAddress:
      return ENXIO;
    case Status::Access:
    case Status::WrongSecurity:
      return EACCES;
    case Status::Exists:
      return EEXIST;
    case Status::CrossDevice:
      return EXDEV;
    case Status::NoDevice:
      return ENODEV;
    case Status::NotDirectory:
      return ENOTDIR;
    case Status::IsDirectory:
      return EISDIR;
    case Status::Invalid:
    case Status::BadType:
      return EINVAL;
    case Status::FileTooBig:
      return EFBIG;
    case Status::NoSpace:
      return ENOSPC;
    case Status::ReadOnly:
      return EROFS;
    case Status::TooManyLinks:
      return EMLINK;
    case Status::NameTooLong:
      return ENAMETOOLONG;
    case Status::NotEmpty:
      return ENOTEMPTY;
    case Status::QuotaExceeded:
      return EDQUOT;
    case Status::Stale:
    case Status::BadHandle:
      return ESTALE;
    case Status::Remote:
    case Status::Moved:
      return EREMOTE;
    case Status::NotSupported:
      return EOPNOTSUPP;
    case Status::NoXattr:
      return ENODATA;
    case Status::XattrTooBig:
      return E2BIG;
    case Status::Locked:
      return EAGAIN;
    case Status::InUse:
      return EBUSY;
    case Status::Delay:  // for longer than it is waited for; few programs expect EAGAIN of files
    case Status::Io:
    case Status::NotSync:
    case Status::BadCookie:
    case Status::TooSmall:
    case Status::ServerFault:
    case Status::StateLost:
    case Status::Unknown:
      break;
  }
  return EIO;
}

mode_t type_bits(FileType type) {
  switch (type) {
    case FileType::Regular:
      return S_IFREG;
    case FileType::Directory:
      return S_IFDIR;
    case FileType::BlockDevice:
      return S_IFBLK;
    case FileType::CharacterDevice:
      return S_IFCHR;
    case FileType::Symlink:
      return S_IFLNK;
    case FileType::Socket:
      return S_IFSOCK;
    case FileType::Fifo:
      return S_IFIFO;
  }
  return S_IFREG;
}

timespec timespec_of(Time time) {
  return {.tv_sec = time.seconds, .tv_nsec = static_cast<long>(time.nanoseconds)};
}

SetTime time_of(const timespec& time, bool set, bool now) {
  if (now) return SetTime::now();
  if (!set) return {};
  return SetTime::to({time.tv_sec, static_cast<std::uint32_t>(time.tv_nsec)});
}

// Linux's own client says the same where a user has no ticket, or one that has expired, or where
// the server does not believe the user.
int errno_of(const rpc::CallError& error) {
  if (error.kind == rpc::CallError::Kind::Answered)
    return error.status.reply == oncrpc::ReplyStat::MSG_DENIED &&
                   error.status.reject == oncrpc::RejectStat::AUTH_ERROR
               ? EACCES
               : EIO;
  switch (error.reason) {
    case Reason::Cancelled:
      return EINTR;
    case Reason::GssTicketExpired:
      return EKEYEXPIRED;
    case Reason::GssNoTicket:
    case Reason::GssClockSkew:
    case Reason::GssWrongRealm:
    case Reason::GssKdcUnreachable:
    case Reason::GssServerUnknown:
    case Reason::GssNoKeytab:
    case Reason::GssServerKeyWrong:
    case Reason::GssServerRefused:
    case Reason::GssFailed:
      return EACCES;
    default:
      return EIO;
  }
}

// Numbers that lie together far apart: the finalizer of splitmix64.
std::uint64_t scattered(std::uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

// To readdir(3) an entry with the number 0 is none, and its name is left out: who copies the
// directory, or removes elsewhere what is not in it, would never know of it.
ino_t number_of(std::uint64_t file_id) {
  return file_id == 0 ? 1 : file_id;
}

}  // namespace

int errno_of(const Error& error) {
  switch (error.kind) {
    case Error::Kind::Nfs:
    case Error::Kind::Mount:
      return errno_of(error.status);
    case Error::Kind::Links:
      return ELOOP;
    case Error::Kind::Call:
      return errno_of(error.call);
    case Error::Kind::Url:
    case Error::Kind::Protocol:
    case Error::Kind::Local:
      break;
  }
  return EIO;
}

struct stat stat_of(const Attributes& attributes, std::uint32_t block, std::uint64_t home) {
  struct stat to {};
  const std::uint64_t moved =
      attributes.file_system_id == home ? 0 : scattered(attributes.file_system_id);
  to.st_ino = number_of(attributes.file_id + moved);
  to.st_mode = type_bits(attributes.type) | (attributes.mode & 07777);
  to.st_nlink = attributes.links;
  to.st_uid = attributes.uid;
  to.st_gid = attributes.gid;
  to.st_rdev = makedev(attributes.device.major, attributes.device.minor);
  to.st_size = static_cast<off_t>(attributes.size);
  to.st_blksize = static_cast<blksize_t>(block);
  to.st_blocks = static_cast<blkcnt_t>(attributes.used / kBlock + (attributes.used % kBlock != 0));
  to.st_atim = timespec_of(attributes.accessed);
  to.st_mtim = timespec_of(attributes.modified);
  to.st_ctim = timespec_of(attributes.changed);
  return to;
}

struct stat stat_of_untold(std::uint64_t file_id) {
  struct stat to {};
  to.st_ino = number_of(file_id);
  return to;
}

SetAttributes changes_of(const struct stat& wanted, int to_set) {
  SetAttributes changes;
  if (to_set & FUSE_SET_ATTR_MODE) changes.mode = wanted.st_mode & 07777;
  if (to_set & FUSE_SET_ATTR_UID) changes.uid = wanted.st_uid;
  if (to_set & FUSE_SET_ATTR_GID) changes.gid = wanted.st_gid;
  if (to_set & FUSE_SET_ATTR_SIZE) changes.size = static_cast<std::uint64_t>(wanted.st_size);
  changes.accessed = time_of(wanted.st_atim, (to_set & FUSE_SET_ATTR_ATIME) != 0,
                             (to_set & FUSE_SET_ATTR_ATIME_NOW) != 0);
  changes.modified = time_of(wanted.st_mtim, (to_set & FUSE_SET_ATTR_MTIME) != 0,
                             (to_set & FUSE_SET_ATTR_MTIME_NOW) != 0);
  return changes;
}

std::uint32_t access_of_open(int flags) {
  if (flags & kOpenForExec) return rights::kExecute;
  switch (flags & O_ACCMODE) {
    case O_RDONLY:
      return rights::kRead;
    case O_WRONLY:
      return rights::kModify;
    default:
      return rights::kRead | rights::kModify;
  }
}

std::uint32_t access_of_mask(int mask, bool directory) {
  std::uint32_t asked = 0;
  if (mask & R_OK) asked |= rights::kRead;
  if (mask & W_OK) asked |= rights::kModify | rights::kExtend;
  if (mask & X_OK) asked |= directory ? rights::kLookup : rights::kExecute;
  return asked;
}

bool grants(std::uint32_t granted, int mask, bool directory) {
  if ((mask & R_OK) && !(granted & rights::kRead)) return false;
  // Servers grant one of the two where the other means nothing.
  if ((mask & W_OK) && !(granted & (rights::kModify | rights::kExtend))) return false;
  return !(mask & X_OK) || (granted & (directory ? rights::kLookup : rights::kExecute));
}

std::optional<std::uint64_t> sought_in_data(std::uint64_t size, std::uint64_t offset, int whence) {
  if (offset >= size) return std::nullopt;
  return whence == SEEK_DATA ? offset : size;
}

std::string xattr_of(const std::vector<AclEntry>& list) {
  // The kernel judges by the first entry that is about who asks.
  std::vector<AclEntry> sorted = list;
  std::ranges::stable_sort(sorted, {}, &AclEntry::tag);
  std::string bytes;
  const auto append = [&bytes](auto value) {
    for (std::size_t i = 0; i < sizeof(value); ++i)
      bytes.push_back(static_cast<char>(value >> 8 * i));
  };
  append(std::uint32_t{POSIX_ACL_XATTR_VERSION});
  for (const AclEntry& entry : sorted) {
    const bool named = entry.tag == AclEntry::kUser || entry.tag == AclEntry::kGroup;
    append(static_cast<std::uint16_t>(entry.tag));
    append(static_cast<std::uint16_t>(entry.permissions));
    append(named ? entry.id : static_cast<std::uint32_t>(ACL_UNDEFINED_ID));
  }
  return bytes;
}

std::optional<std::vector<AclEntry>> list_of_xattr(std::string_view bytes) {
  constexpr std::size_t kVersionBytes = 4, kEntryBytes = 8;
  const auto number = [&bytes](std::size_t at, std::size_t size) {
    std::uint32_t value = 0;
    for (std::size_t i = size; i-- > 0;)
      value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
    return value;
  };
  if (bytes.size() < kVersionBytes || (bytes.size() - kVersionBytes) % kEntryBytes != 0)
    return std::nullopt;
  if (number(0, kVersionBytes) != POSIX_ACL_XATTR_VERSION) return std::nullopt;
  std::vector<AclEntry> list;
  for (std::size_t at = kVersionBytes; at < bytes.size(); at += kEntryBytes) {
    AclEntry entry{number(at, 2), number(at + 4, 4), number(at + 2, 2)};
    const bool named = entry.tag == AclEntry::kUser || entry.tag == AclEntry::kGroup;
    const bool known = named || entry.tag == AclEntry::kUserObject ||
                       entry.tag == AclEntry::kGroupObject || entry.tag == AclEntry::kMask ||
                       entry.tag == AclEntry::kOther;
    const bool unset = entry.id == static_cast<std::uint32_t>(ACL_UNDEFINED_ID);
    if (!known || entry.permissions > S_IRWXO || (named && unset)) return std::nullopt;
    if (!named) entry.id = 0;
    list.push_back(entry);
  }
  return list;
}

std::string one_word(std::string_view text) {
  std::string word;
  for (const char c : text) {
    if (c == ',' || c == '\\') word.push_back('\\');
    word.push_back(c);
  }
  return word;
}

}  // namespace stag::fuse
