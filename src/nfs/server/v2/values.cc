#include "nfs/server/v2/values.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace stag::nfs::nfs2 {

namespace {

// In the order of vfs::Status.
constexpr v2::nfsstat kStatuses[] = {
    v2::NFSERR_PERM,        v2::NFSERR_NOENT,    v2::NFSERR_IO,    v2::NFSERR_ACCES,
    v2::NFSERR_EXIST,
    v2::NFSERR_NODEV,  // CrossDevice
    v2::NFSERR_NOTDIR,      v2::NFSERR_ISDIR,
    v2::NFSERR_ACCES,  // Invalid
    v2::NFSERR_FBIG,        v2::NFSERR_NOSPC,    v2::NFSERR_ROFS,
    v2::NFSERR_NOSPC,  // TooManyLinks: "the server's filesystem reached its limit"
    v2::NFSERR_NAMETOOLONG, v2::NFSERR_NOTEMPTY, v2::NFSERR_DQUOT, v2::NFSERR_STALE,
    v2::NFSERR_STALE,  // BadHandle: "the fhandle given in the arguments was invalid"
    v2::NFSERR_IO,     // BadCookie
    v2::NFSERR_PERM,   // BadType
    v2::NFSERR_IO,     // Changed
    v2::NFSERR_ACCES,  // NotSymlink
    v2::NFSERR_PERM,   // NotSupported
    v2::NFSERR_IO,     // TooManyObjects: version 2 has no status for "later"
    v2::NFSERR_IO,     // Delay
};
static_assert(std::size(kStatuses) == static_cast<std::size_t>(vfs::Status::Delay) + 1);

// RFC 1094 2.3.5: the mode bits contain the type as well. Types without an ftype are NFNON, apart
// from the two that became practice and that clients know.
struct TypeWords {
  v2::ftype type;
  std::uint32_t bits;
};
constexpr TypeWords kTypes[] = {  // In the order of vfs::FileType.
    {v2::NFREG, 0100000},  {v2::NFDIR, 0040000}, {v2::NFLNK, 0120000}, {v2::NFFIFO, 0010000},
    {v2::NFSOCK, 0140000}, {v2::NFBLK, 0060000}, {v2::NFCHR, 0020000}};
constexpr std::uint32_t kTypeBits = 0170000;

// Bytes of a block in attributes; clients assume 512 whatever blocksize is.
constexpr std::uint32_t kBlock = 512;
constexpr std::uint32_t kKeep = 0xffffffff;
constexpr std::uint32_t kServerTime = 1'000'000;
// SunOS sends a FIFO as a character device with this number.
constexpr std::uint32_t kFifoDevice = 0xffffffff;

std::uint32_t clipped(std::uint64_t value, std::uint64_t most) {
  return static_cast<std::uint32_t>(std::min(value, most));
}

std::uint32_t folded(std::uint64_t value) {
  return static_cast<std::uint32_t>(value ^ value >> 32);
}

v2::timeval to_timeval(vfs::Time time) {
  constexpr std::int64_t kLast = std::numeric_limits<std::uint32_t>::max();
  return {static_cast<std::uint32_t>(std::clamp<std::int64_t>(time.seconds, 0, kLast)),
          time.nanoseconds / 1000};
}

// Numbers of up to 8 bits as every system packs them, larger ones as Linux does.
std::uint32_t to_rdev(vfs::Device device) {
  return (device.minor & 0xff) | (device.major & 0xfff) << 8 | (device.minor & ~0xffu) << 12;
}
vfs::Device from_rdev(std::uint32_t rdev) {
  return {rdev >> 8 & 0xfff, (rdev & 0xff) | (rdev >> 12 & 0xfff00)};
}

bool convert(const v2::timeval& time, vfs::SetTime& to) {
  if (time.seconds == kKeep || time.useconds == kKeep) return true;
  if (time.useconds > kServerTime) return false;
  to.how = time.useconds == kServerTime ? vfs::SetTime::How::Now : vfs::SetTime::How::To;
  if (to.how == vfs::SetTime::How::To) to.time = {time.seconds, time.useconds * 1000};
  return true;
}

bool given(std::uint32_t field) {
  return field != kKeep;
}
// Some clients have only 16 bits of mode to fill with ones.
bool mode_given(std::uint32_t mode) {
  return given(mode) && mode != 0xffff;
}

}  // namespace

v2::nfsstat to_nfsstat(vfs::Status status) {
  return kStatuses[static_cast<std::size_t>(status)];
}

v2::nfsstat to_nfsstat(Refusal refusal) {
  // There is no "try again later", and what is a fault at the moment is the nearest.
  if (refusal == Refusal::Undecided) return v2::NFSERR_IO;
  const bool no_object = refusal == Refusal::BadHandle || refusal == Refusal::ExportGone;
  return no_object ? v2::NFSERR_STALE : v2::NFSERR_ACCES;
}

std::uint32_t to_fileid(std::uint64_t file_id) {
  return folded(file_id);
}

v2::fattr to_fattr(const vfs::Attributes& attributes) {
  const TypeWords& words = kTypes[static_cast<std::size_t>(attributes.type)];
  v2::fattr to;
  to.type = words.type;
  to.mode = words.bits | (attributes.mode & 07777);
  to.nlink = attributes.links;
  to.uid = attributes.uid;
  to.gid = attributes.gid;
  to.size = clipped(attributes.size, kMaxFileSize);
  to.blocksize = kBlock;
  to.rdev = to_rdev(attributes.device);
  to.blocks = clipped((attributes.used + kBlock - 1) / kBlock, kMaxFileSize);
  to.fsid = folded(attributes.file_system_id);
  to.fileid = to_fileid(attributes.file_id);
  to.atime = to_timeval(attributes.accessed);
  to.mtime = to_timeval(attributes.modified);
  to.ctime = to_timeval(attributes.changed);
  return to;
}

vfs::Outcome<vfs::SetAttributes> from_sattr(const v2::sattr& attributes) {
  vfs::SetAttributes to;
  if (mode_given(attributes.mode)) to.mode = attributes.mode & 07777;
  if (given(attributes.uid)) to.uid = attributes.uid;
  if (given(attributes.gid)) to.gid = attributes.gid;
  if (given(attributes.size)) to.size = attributes.size;
  if (to.size.value_or(0) > kMaxFileSize) return Failure{vfs::Status::FileTooBig};
  if (!convert(attributes.atime, to.accessed) || !convert(attributes.mtime, to.modified))
    return Failure{vfs::Status::Invalid};
  // The convention is about both times: "now" in one is "now" for the other that is given.
  if (to.modified.how == vfs::SetTime::How::Now && to.accessed.how == vfs::SetTime::How::To)
    to.accessed.how = vfs::SetTime::How::Now;
  return to;
}

vfs::Outcome<NewObject> to_new_object(const v2::sattr& attributes) {
  const std::uint32_t bits = mode_given(attributes.mode) ? attributes.mode & kTypeBits : 0;
  if (bits == 0) return NewObject{};
  for (std::size_t type = 0; type < std::size(kTypes); ++type) {
    if (kTypes[type].bits != bits) continue;
    NewObject object{static_cast<vfs::FileType>(type), {}};
    if (object.type == vfs::FileType::Directory || object.type == vfs::FileType::Symlink) break;
    const bool device =
        object.type == vfs::FileType::BlockDevice || object.type == vfs::FileType::CharacterDevice;
    if (object.type == vfs::FileType::CharacterDevice && attributes.size == kFifoDevice)
      object.type = vfs::FileType::Fifo;
    else if (device)
      object.device = from_rdev(attributes.size);
    return object;
  }
  return Failure{vfs::Status::BadType};
}

v2::statfsok to_statfsok(const vfs::Usage& usage) {
  std::uint64_t block = 4096;
  while (block < 1u << 31 && usage.total_bytes / block > kMaxFileSize) block *= 2;
  return {v2::MAXDATA, static_cast<std::uint32_t>(block),
          clipped(usage.total_bytes / block, kMaxFileSize),
          clipped(usage.free_bytes / block, kMaxFileSize),
          clipped(usage.available_bytes / block, kMaxFileSize)};
}

}  // namespace stag::nfs::nfs2
