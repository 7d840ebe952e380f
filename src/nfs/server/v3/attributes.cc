#include "nfs/server/v3/attributes.h"

#include <algorithm>
#include <limits>

namespace stag::nfs::nfs3 {

namespace {

v3::ftype3 to_ftype3(vfs::FileType type) {
  switch (type) {
    case vfs::FileType::Regular:
      return v3::NF3REG;
    case vfs::FileType::Directory:
      return v3::NF3DIR;
    case vfs::FileType::Symlink:
      return v3::NF3LNK;
    case vfs::FileType::Fifo:
      return v3::NF3FIFO;
    case vfs::FileType::Socket:
      return v3::NF3SOCK;
    case vfs::FileType::BlockDevice:
      return v3::NF3BLK;
    case vfs::FileType::CharacterDevice:
      return v3::NF3CHR;
  }
  return v3::NF3REG;
}

v3::pre_op_attr to_pre_op_attr(const std::optional<vfs::BeforeChange>& before) {
  v3::pre_op_attr to;
  to.attributes_follow = before.has_value();
  if (before)
    to.attributes() = {before->size, to_nfstime3(before->modified), to_nfstime3(before->changed)};
  return to;
}

bool convert(v3::time_how how, const v3::nfstime3& time, vfs::SetTime& to) {
  switch (how) {
    case v3::DONT_CHANGE:
      return true;
    case v3::SET_TO_SERVER_TIME:
      to.how = vfs::SetTime::How::Now;
      return true;
    case v3::SET_TO_CLIENT_TIME:
      to.how = vfs::SetTime::How::To;
      break;
  }
  const auto value = from_nfstime3(time);
  if (value) to.time = *value;
  return value.has_value();
}

}  // namespace

v3::nfstime3 to_nfstime3(vfs::Time time) {
  // The wire has 32 bits without sign; a time outside them becomes the nearest one inside.
  constexpr std::int64_t kLast = std::numeric_limits<std::uint32_t>::max();
  return {static_cast<std::uint32_t>(std::clamp<std::int64_t>(time.seconds, 0, kLast)),
          time.nanoseconds};
}

v3::fattr3 to_fattr3(const vfs::Attributes& attributes) {
  v3::fattr3 to;
  to.type = to_ftype3(attributes.type);
  to.mode = attributes.mode & 07777;
  to.nlink = attributes.links;
  to.uid = attributes.uid;
  to.gid = attributes.gid;
  to.size = attributes.size;
  to.used = attributes.used;
  to.rdev = {attributes.device.major, attributes.device.minor};
  to.fsid = attributes.file_system_id;
  to.fileid = attributes.file_id;
  to.atime = to_nfstime3(attributes.accessed);
  to.mtime = to_nfstime3(attributes.modified);
  to.ctime = to_nfstime3(attributes.changed);
  return to;
}

v3::post_op_attr to_post_op_attr(const vfs::Attributes& attributes) {
  v3::post_op_attr to;
  to.attributes_follow = true;
  to.attributes() = to_fattr3(attributes);
  return to;
}

v3::post_op_attr to_post_op_attr(const std::optional<vfs::Attributes>& attributes) {
  return attributes ? to_post_op_attr(*attributes) : v3::post_op_attr{};
}

v3::wcc_data to_wcc_data(const vfs::Change& change) {
  return {to_pre_op_attr(change.before), to_post_op_attr(change.after)};
}

std::optional<vfs::Time> from_nfstime3(const v3::nfstime3& time) {
  if (time.nseconds >= 1'000'000'000) return std::nullopt;
  return vfs::Time{time.seconds, time.nseconds};
}

std::optional<vfs::SetAttributes> from_sattr3(const v3::sattr3& attributes) {
  vfs::SetAttributes to;
  if (attributes.mode.set_it) to.mode = attributes.mode.mode() & 07777;
  if (attributes.uid.set_it) to.uid = attributes.uid.uid();
  if (attributes.gid.set_it) to.gid = attributes.gid.gid();
  if (attributes.size.set_it) to.size = attributes.size.size();
  if (to.uid == vfs::kNoId || to.gid == vfs::kNoId) return std::nullopt;
  const auto& atime = attributes.atime;
  const auto& mtime = attributes.mtime;
  const bool atime_given = atime.set_it == v3::SET_TO_CLIENT_TIME;
  const bool mtime_given = mtime.set_it == v3::SET_TO_CLIENT_TIME;
  if (!convert(atime.set_it, atime_given ? atime.atime() : v3::nfstime3{}, to.accessed) ||
      !convert(mtime.set_it, mtime_given ? mtime.mtime() : v3::nfstime3{}, to.modified))
    return std::nullopt;
  return to;
}

}  // namespace stag::nfs::nfs3
