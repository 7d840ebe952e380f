#include "nfs/client/v3/values.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace stag::nfs::client::nfs3 {
namespace {

struct StatusName {
  v3::nfsstat3 number;
  Status status;
};
constexpr StatusName kStatuses[] = {
    {v3::NFS3_OK, Status::Ok},
    {v3::NFS3ERR_PERM, Status::NotOwner},
    {v3::NFS3ERR_NOENT, Status::NoEntry},
    {v3::NFS3ERR_IO, Status::Io},
    {v3::NFS3ERR_NXIO, Status::NoDeviceOrAddress},
    {v3::NFS3ERR_ACCES, Status::Access},
    {v3::NFS3ERR_EXIST, Status::Exists},
    {v3::NFS3ERR_XDEV, Status::CrossDevice},
    {v3::NFS3ERR_NODEV, Status::NoDevice},
    {v3::NFS3ERR_NOTDIR, Status::NotDirectory},
    {v3::NFS3ERR_ISDIR, Status::IsDirectory},
    {v3::NFS3ERR_INVAL, Status::Invalid},
    {v3::NFS3ERR_FBIG, Status::FileTooBig},
    {v3::NFS3ERR_NOSPC, Status::NoSpace},
    {v3::NFS3ERR_ROFS, Status::ReadOnly},
    {v3::NFS3ERR_MLINK, Status::TooManyLinks},
    {v3::NFS3ERR_NAMETOOLONG, Status::NameTooLong},
    {v3::NFS3ERR_NOTEMPTY, Status::NotEmpty},
    {v3::NFS3ERR_DQUOT, Status::QuotaExceeded},
    {v3::NFS3ERR_STALE, Status::Stale},
    {v3::NFS3ERR_REMOTE, Status::Remote},
    {v3::NFS3ERR_BADHANDLE, Status::BadHandle},
    {v3::NFS3ERR_NOT_SYNC, Status::NotSync},
    {v3::NFS3ERR_BAD_COOKIE, Status::BadCookie},
    {v3::NFS3ERR_NOTSUPP, Status::NotSupported},
    {v3::NFS3ERR_TOOSMALL, Status::TooSmall},
    {v3::NFS3ERR_SERVERFAULT, Status::ServerFault},
    {v3::NFS3ERR_BADTYPE, Status::BadType},
    {v3::NFS3ERR_JUKEBOX, Status::Delay},
};

FileType to_file_type(v3::ftype3 type) {
  switch (type) {
    case v3::NF3REG:
      return FileType::Regular;
    case v3::NF3DIR:
      return FileType::Directory;
    case v3::NF3BLK:
      return FileType::BlockDevice;
    case v3::NF3CHR:
      return FileType::CharacterDevice;
    case v3::NF3LNK:
      return FileType::Symlink;
    case v3::NF3SOCK:
      return FileType::Socket;
    case v3::NF3FIFO:
      return FileType::Fifo;
  }
  return FileType::Regular;
}

Time to_time(const v3::nfstime3& time) {
  return {time.seconds, time.nseconds};
}

v3::time_how to_time_how(SetTime::How how) {
  switch (how) {
    case SetTime::How::Keep:
      return v3::DONT_CHANGE;
    case SetTime::How::Now:
      return v3::SET_TO_SERVER_TIME;
    case SetTime::How::To:
      return v3::SET_TO_CLIENT_TIME;
  }
  return v3::DONT_CHANGE;
}

}  // namespace

Status to_status(std::uint32_t status) {
  const auto* found =
      std::ranges::find(kStatuses, static_cast<v3::nfsstat3>(status), &StatusName::number);
  return found == std::end(kStatuses) ? Status::Unknown : found->status;
}

v3::nfs_fh3 to_nfs_fh3(const Handle& handle) {
  v3::nfs_fh3 to;
  static_cast<void>(to.data.assign(handle.bytes()));
  return to;
}

Handle to_handle(const v3::nfs_fh3& handle) {
  return *Handle::from(handle.data.bytes());
}

std::optional<Handle> to_handle(const v3::post_op_fh3& handle) {
  if (!handle.handle_follows) return std::nullopt;
  return to_handle(handle.handle());
}

Attributes to_attributes(const v3::fattr3& attributes) {
  Attributes to;
  to.type = to_file_type(attributes.type);
  to.mode = attributes.mode;
  to.links = attributes.nlink;
  to.uid = attributes.uid;
  to.gid = attributes.gid;
  to.size = attributes.size;
  to.used = attributes.used;
  to.device = {attributes.rdev.specdata1, attributes.rdev.specdata2};
  to.file_system_id = attributes.fsid;
  to.file_id = attributes.fileid;
  to.accessed = to_time(attributes.atime);
  to.modified = to_time(attributes.mtime);
  to.changed = to_time(attributes.ctime);
  return to;
}

std::optional<Attributes> to_attributes(const v3::post_op_attr& attributes) {
  if (!attributes.attributes_follow) return std::nullopt;
  return to_attributes(attributes.attributes());
}

v3::nfstime3 to_nfstime3(const Time& time) {
  constexpr std::int64_t kLast = std::numeric_limits<std::uint32_t>::max();
  return {static_cast<std::uint32_t>(std::clamp<std::int64_t>(time.seconds, 0, kLast)),
          time.nanoseconds};
}

v3::sattr3 to_sattr3(const SetAttributes& attributes) {
  v3::sattr3 to;
  to.mode.set_it = attributes.mode.has_value();
  if (attributes.mode) to.mode.mode() = *attributes.mode;
  to.uid.set_it = attributes.uid.has_value();
  if (attributes.uid) to.uid.uid() = *attributes.uid;
  to.gid.set_it = attributes.gid.has_value();
  if (attributes.gid) to.gid.gid() = *attributes.gid;
  to.size.set_it = attributes.size.has_value();
  if (attributes.size) to.size.size() = *attributes.size;
  to.atime.set_it = to_time_how(attributes.accessed.how);
  if (to.atime.set_it == v3::SET_TO_CLIENT_TIME)
    to.atime.atime() = to_nfstime3(attributes.accessed.time);
  to.mtime.set_it = to_time_how(attributes.modified.how);
  if (to.mtime.set_it == v3::SET_TO_CLIENT_TIME)
    to.mtime.mtime() = to_nfstime3(attributes.modified.time);
  return to;
}

v3::ftype3 to_ftype3(FileType type) {
  switch (type) {
    case FileType::Regular:
      return v3::NF3REG;
    case FileType::Directory:
      return v3::NF3DIR;
    case FileType::Symlink:
      return v3::NF3LNK;
    case FileType::BlockDevice:
      return v3::NF3BLK;
    case FileType::CharacterDevice:
      return v3::NF3CHR;
    case FileType::Socket:
      return v3::NF3SOCK;
    case FileType::Fifo:
      return v3::NF3FIFO;
  }
  return v3::NF3REG;
}

}  // namespace stag::nfs::client::nfs3
