#include "nfs/client/v2/values.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace stag::nfs::client::nfs2 {

namespace {

constexpr std::uint32_t kBlock = 512;  // bytes; the unit of `blocks`
constexpr std::uint32_t kTypeBits = 0170000;
// SunOS sends a FIFO as a character device with this number.
constexpr std::uint32_t kFifoDevice = 0xffffffff;

// The statuses of RFC 1094 2.3.1, and further ones that servers use: EAGAIN and other numbers of
// UNIX.
struct StatusNumber {
  std::uint32_t number;
  Status status;
};
constexpr StatusNumber kStatuses[] = {
    {0, Status::Ok},
    {v2::NFSERR_PERM, Status::NotOwner},
    {v2::NFSERR_NOENT, Status::NoEntry},
    {v2::NFSERR_IO, Status::Io},
    {v2::NFSERR_NXIO, Status::NoDeviceOrAddress},
    {v2::NFSERR_EAGAIN, Status::Delay},
    {v2::NFSERR_ACCES, Status::Access},
    {v2::NFSERR_EXIST, Status::Exists},
    {v2::NFSERR_XDEV, Status::CrossDevice},
    {v2::NFSERR_NODEV, Status::NoDevice},
    {v2::NFSERR_NOTDIR, Status::NotDirectory},
    {v2::NFSERR_ISDIR, Status::IsDirectory},
    {v2::NFSERR_INVAL, Status::Invalid},
    {v2::NFSERR_FBIG, Status::FileTooBig},
    {v2::NFSERR_NOSPC, Status::NoSpace},
    {v2::NFSERR_ROFS, Status::ReadOnly},
    {v2::NFSERR_MLINK, Status::TooManyLinks},
    {v2::NFSERR_OPNOTSUPP, Status::NotSupported},
    {v2::NFSERR_NAMETOOLONG, Status::NameTooLong},
    {v2::NFSERR_NOTEMPTY, Status::NotEmpty},
    {v2::NFSERR_DQUOT, Status::QuotaExceeded},
    {v2::NFSERR_STALE, Status::Stale},
    {v2::NFSERR_REMOTE, Status::Remote},
    {v2::NFSERR_WFLUSH, Status::Io},
};

FileType to_file_type(const v2::fattr& attributes) {
  switch (attributes.type) {
    case v2::NFREG:
      return FileType::Regular;
    case v2::NFDIR:
      return FileType::Directory;
    case v2::NFBLK:
      return FileType::BlockDevice;
    case v2::NFCHR:
      return attributes.rdev == kFifoDevice ? FileType::Fifo : FileType::CharacterDevice;
    case v2::NFLNK:
      return FileType::Symlink;
    case v2::NFSOCK:
      return FileType::Socket;
    case v2::NFFIFO:
      return FileType::Fifo;
    case v2::NFNON:
    case v2::NFBAD:
      break;
  }
  // RFC 1094 2.3.5: an object without a type has it in the mode bits.
  return (attributes.mode & kTypeBits) == 0010000 ? FileType::Fifo : FileType::Socket;
}

Time to_time(const v2::timeval& time) {
  return {time.seconds, std::min(time.useconds, 999'999u) * 1000};
}

}  // namespace

Status to_status(std::uint32_t status) {
  const auto* found = std::ranges::find(kStatuses, status, &StatusNumber::number);
  return found == std::end(kStatuses) ? Status::Unknown : found->status;
}

Attributes to_attributes(const v2::fattr& attributes) {
  Attributes to;
  to.type = to_file_type(attributes);
  to.mode = attributes.mode & 07777;
  to.links = attributes.nlink;
  to.uid = attributes.uid;
  to.gid = attributes.gid;
  to.size = attributes.size;
  to.used = std::uint64_t{attributes.blocks} * kBlock;
  if (to.type == FileType::BlockDevice || to.type == FileType::CharacterDevice)
    to.device = {attributes.rdev >> 8 & 0xfff,
                 (attributes.rdev & 0xff) | (attributes.rdev >> 12 & 0xfff00)};
  to.file_system_id = attributes.fsid;
  to.file_id = attributes.fileid;
  to.accessed = to_time(attributes.atime);
  to.modified = to_time(attributes.mtime);
  to.changed = to_time(attributes.ctime);
  return to;
}

Handle to_handle(const v2::fhandle& handle) {
  return *Handle::from(handle);
}

v2::timeval to_timeval(const Time& time) {
  // The number behind it means "do not change" (RFC 1094 2.3.6).
  constexpr std::int64_t kLast = std::numeric_limits<std::uint32_t>::max() - 1;
  return {static_cast<std::uint32_t>(std::clamp<std::int64_t>(time.seconds, 0, kLast)),
          time.nanoseconds / 1000};
}

std::uint32_t to_rdev(const Device& device) {
  return (device.minor & 0xff) | (device.major & 0xfff) << 8 | (device.minor & ~0xffu) << 12;
}

Outcome<v2::fhandle> to_fhandle(OperationContext context, const Handle& handle) {
  v2::fhandle to{};
  const Bytes bytes = handle.bytes();
  if (bytes.size() != to.size()) return Failure{Error::of_status(context, Status::BadHandle)};
  std::copy(bytes.begin(), bytes.end(), to.begin());
  return to;
}

Outcome<v2::diropargs> to_diropargs(OperationContext context, const Handle& directory,
                                    std::string_view name) {
  const Outcome<v2::fhandle> handle = to_fhandle(context, directory);
  if (!handle) return Failure{handle.error()};
  if (name.size() > v2::MAXNAMLEN) return Failure{Error::of_status(context, Status::NameTooLong)};
  return v2::diropargs{*handle, std::string(name)};
}

Outcome<v2::sattr> to_sattr(OperationContext context, const SetAttributes& attributes) {
  v2::sattr to{kKeep, kKeep, kKeep, kKeep, kKeepTime, kKeepTime};
  if (attributes.mode) to.mode = *attributes.mode & 07777;
  if (attributes.uid) to.uid = *attributes.uid;
  if (attributes.gid) to.gid = *attributes.gid;
  if (attributes.size.value_or(0) >= kKeep)
    return Failure{Error::of_status(context, Status::FileTooBig)};
  if (attributes.size) to.size = static_cast<std::uint32_t>(*attributes.size);
  if (attributes.accessed.how == SetTime::How::To) to.atime = to_timeval(attributes.accessed.time);
  if (attributes.modified.how == SetTime::How::To) to.mtime = to_timeval(attributes.modified.time);
  return to;
}

}  // namespace stag::nfs::client::nfs2
