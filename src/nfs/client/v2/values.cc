#include "nfs/client/v2/values.h"

#include <algorithm>

namespace stag::nfs::client::nfs2 {

namespace {

constexpr std::uint32_t kBlock = 512;  // What servers count `blocks` in.
constexpr std::uint32_t kTypeBits = 0170000;
// SunOS says FIFO so: a character device with this number.
constexpr std::uint32_t kFifoDevice = 0xffffffff;

v3::ftype3 to_ftype3(const v2::fattr& attributes) {
  switch (attributes.type) {
    case v2::NFREG:
      return v3::NF3REG;
    case v2::NFDIR:
      return v3::NF3DIR;
    case v2::NFBLK:
      return v3::NF3BLK;
    case v2::NFCHR:
      return attributes.rdev == kFifoDevice ? v3::NF3FIFO : v3::NF3CHR;
    case v2::NFLNK:
      return v3::NF3LNK;
    case v2::NFSOCK:
      return v3::NF3SOCK;
    case v2::NFFIFO:
      return v3::NF3FIFO;
    case v2::NFNON:
    case v2::NFBAD:
      break;
  }
  // RFC 1094 2.3.5: what has no type says in the mode bits what it is.
  return (attributes.mode & kTypeBits) == 0010000 ? v3::NF3FIFO : v3::NF3SOCK;
}

v3::nfstime3 to_nfstime3(const v2::timeval& time) {
  return {time.seconds, std::min(time.useconds, 999'999u) * 1000};
}

}  // namespace

v3::nfsstat3 to_nfsstat3(v2::nfsstat status) {
  switch (status) {
    case v2::NFSERR_WFLUSH:
      return v3::NFS3ERR_IO;
    case v2::NFSERR_EAGAIN:
      return v3::NFS3ERR_JUKEBOX;
    case v2::NFSERR_OPNOTSUPP:
      return v3::NFS3ERR_NOTSUPP;
    default:
      return static_cast<v3::nfsstat3>(status);  // The numbers are the same.
  }
}

v3::fattr3 to_fattr3(const v2::fattr& attributes) {
  v3::fattr3 to;
  to.type = to_ftype3(attributes);
  to.mode = attributes.mode & 07777;
  to.nlink = attributes.nlink;
  to.uid = attributes.uid;
  to.gid = attributes.gid;
  to.size = attributes.size;
  to.used = std::uint64_t{attributes.blocks} * kBlock;
  if (to.type == v3::NF3BLK || to.type == v3::NF3CHR)
    to.rdev = {attributes.rdev >> 8 & 0xfff,
               (attributes.rdev & 0xff) | (attributes.rdev >> 12 & 0xfff00)};
  to.fsid = attributes.fsid;
  to.fileid = attributes.fileid;
  to.atime = to_nfstime3(attributes.atime);
  to.mtime = to_nfstime3(attributes.mtime);
  to.ctime = to_nfstime3(attributes.ctime);
  return to;
}

v3::post_op_attr to_post_op_attr(const v2::fattr& attributes) {
  v3::post_op_attr to;
  to.attributes_follow = true;
  to.attributes() = to_fattr3(attributes);
  return to;
}

v3::nfs_fh3 to_nfs_fh3(const v2::fhandle& handle) {
  v3::nfs_fh3 to;
  STAG_CHECK(to.data.assign(handle));
  return to;
}

v3::post_op_fh3 to_post_op_fh3(const v2::fhandle& handle) {
  v3::post_op_fh3 to;
  to.handle_follows = true;
  to.handle() = to_nfs_fh3(handle);
  return to;
}

v2::timeval to_timeval(const v3::nfstime3& time) {
  return {time.seconds, time.nseconds / 1000};
}

std::uint32_t to_rdev(const v3::specdata3& device) {
  return (device.specdata2 & 0xff) | (device.specdata1 & 0xfff) << 8 |
         (device.specdata2 & ~0xffu) << 12;
}

Outcome<v2::fhandle> to_fhandle(Doing doing, const v3::nfs_fh3& handle) {
  v2::fhandle to{};
  if (handle.data.size() != to.size())
    return Failure{Error::of_status(doing, v3::NFS3ERR_BADHANDLE)};
  std::copy_n(handle.data.data(), to.size(), to.begin());
  return to;
}

Outcome<v2::diropargs> to_diropargs(Doing doing, const v3::diropargs3& entry) {
  const Outcome<v2::fhandle> directory = to_fhandle(doing, entry.dir);
  if (!directory) return Failure{directory.error()};
  if (entry.name.size() > v2::MAXNAMLEN)
    return Failure{Error::of_status(doing, v3::NFS3ERR_NAMETOOLONG)};
  return v2::diropargs{*directory, entry.name};
}

Outcome<v2::sattr> to_sattr(Doing doing, const v3::sattr3& attributes) {
  v2::sattr to{kKeep, kKeep, kKeep, kKeep, kKeepTime, kKeepTime};
  if (attributes.mode.set_it) to.mode = attributes.mode.mode() & 07777;
  if (attributes.uid.set_it) to.uid = attributes.uid.uid();
  if (attributes.gid.set_it) to.gid = attributes.gid.gid();
  if (attributes.size.set_it) {
    if (attributes.size.size() >= kKeep) return Failure{Error::of_status(doing, v3::NFS3ERR_FBIG)};
    to.size = static_cast<std::uint32_t>(attributes.size.size());
  }
  const v3::set_atime& atime = attributes.atime;
  const v3::set_mtime& mtime = attributes.mtime;
  if (atime.set_it == v3::SET_TO_CLIENT_TIME) to.atime = to_timeval(atime.atime());
  if (mtime.set_it == v3::SET_TO_CLIENT_TIME) to.mtime = to_timeval(mtime.mtime());
  return to;
}

}  // namespace stag::nfs::client::nfs2
