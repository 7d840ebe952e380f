#include "nfs/acl/owner_name.h"
#include "nfs/v4/attributes/attributes.h"

namespace stag::nfs::nfs4 {

namespace {

using xdr::Decoder;

constexpr std::uint32_t kNanosecondsPerSecond = 1'000'000'000;

v4::nfsstat4 take_owner(Decoder& from, std::optional<std::uint32_t>& to, std::string& name) {
  if (!from.string(xdr::kNoItem, name)) return v4::NFS4ERR_BADXDR;
  to = owner_id(name);
  if (!to && (name.empty() || name.size() > kLongestName)) return v4::NFS4ERR_BADOWNER;
  if (to) name.clear();
  return v4::NFS4_OK;
}

v4::nfsstat4 take_acl(Decoder& from, Aces& to) {
  std::uint32_t count = 0;
  if (!from.count(count, xdr::kUnbounded, 16)) return v4::NFS4ERR_BADXDR;
  if (count > kMaxAces) return v4::NFS4ERR_INVAL;
  to.resize(count);
  for (v4::nfsace4& ace : to)
    if (!decode(from, ace)) return v4::NFS4ERR_BADXDR;
  return v4::NFS4_OK;
}

v4::nfsstat4 take_time(Decoder& from, vfs::SetTime& to) {
  v4::settime4 time;
  if (!decode(from, time)) return v4::NFS4ERR_BADXDR;
  to.how = vfs::SetTime::How::Now;
  if (time.set_it != v4::SET_TO_CLIENT_TIME4) return v4::NFS4_OK;
  if (time.time().nseconds >= kNanosecondsPerSecond) return v4::NFS4ERR_INVAL;
  to = {vfs::SetTime::How::To, {time.time().seconds, time.time().nseconds}};
  return v4::NFS4_OK;
}

v4::nfsstat4 take(std::uint32_t number, Decoder& from, WantedAttributes& wanted) {
  vfs::SetAttributes& to = wanted.values;
  switch (number) {
    case v4::FATTR4_ACL:
      return take_acl(from, wanted.acl.emplace());
    case v4::FATTR4_SIZE:
      return from.u64(to.size.emplace()) ? v4::NFS4_OK : v4::NFS4ERR_BADXDR;
    case v4::FATTR4_MODE:
      if (!from.u32(to.mode.emplace())) return v4::NFS4ERR_BADXDR;
      return *to.mode <= 07777 ? v4::NFS4_OK : v4::NFS4ERR_INVAL;
    case v4::FATTR4_OWNER:
      return take_owner(from, to.uid, wanted.owner);
    case v4::FATTR4_OWNER_GROUP:
      return take_owner(from, to.gid, wanted.owner_group);
    case v4::FATTR4_TIME_ACCESS_SET:
      return take_time(from, to.accessed);
    case v4::FATTR4_TIME_MODIFY_SET:
      return take_time(from, to.modified);
    default:
      return v4::NFS4ERR_ATTRNOTSUPP;
  }
}

}  // namespace

AttributeSet settable_attributes() {
  return {v4::FATTR4_SIZE,           v4::FATTR4_ACL,         v4::FATTR4_MODE,
          v4::FATTR4_OWNER,          v4::FATTR4_OWNER_GROUP, v4::FATTR4_TIME_ACCESS_SET,
          v4::FATTR4_TIME_MODIFY_SET};
}

AttributeSet exclusive_create_attributes() {
  return {v4::FATTR4_MODE, v4::FATTR4_OWNER, v4::FATTR4_OWNER_GROUP};
}

Result<WantedAttributes, v4::nfsstat4> decode_attributes(const v4::fattr4& attributes) {
  WantedAttributes wanted;
  wanted.set = AttributeSet(attributes.attrmask);
  const AttributeSet unsettable = wanted.set - settable_attributes();
  if (AttributeSet::has_unknown(attributes.attrmask) ||
      !(unsettable - readable_attributes()).empty())
    return Failure{v4::NFS4ERR_ATTRNOTSUPP};
  if (!unsettable.empty()) return Failure{v4::NFS4ERR_INVAL};
  Decoder values(attributes.attr_vals.flatten());
  v4::nfsstat4 status = v4::NFS4_OK;
  wanted.set.for_each([&](std::uint32_t number) {
    if (status == v4::NFS4_OK) status = take(number, values, wanted);
  });
  if (status != v4::NFS4_OK) return Failure{status};
  if (!values.finish()) return Failure{v4::NFS4ERR_BADXDR};
  return wanted;
}

}  // namespace stag::nfs::nfs4
