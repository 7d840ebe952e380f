#include "nfs/client/acl.h"

#include <algorithm>

#include "nfs/client/file_system.h"
#include "nfs/ulb/nfsacl.h"

namespace stag::nfs::client {
namespace {

using namespace nfsacl;

std::string_view name_of_type(std::uint32_t type) {
  switch (type) {
    case ACL_USER_OBJ:
    case ACL_USER:
      return "user";
    case ACL_GROUP_OBJ:
    case ACL_GROUP:
      return "group";
    case ACL_CLASS_OBJ:
      return "mask";
    case ACL_OTHER_OBJ:
      return "other";
    default:
      return "unknown";
  }
}

// The ids of the owners are left out: servers know whose the object is.
std::vector<aclent> sent_list(std::vector<AclEntry> list, std::uint32_t flags) {
  return ulb::sent_acl(ulb::received_acl(std::move(list)), {}, flags);
}

secattr to_secattr(Acls acls, bool with_defaults) {
  secattr to;
  to.mask = NFS_ACL | NFS_ACLCNT;
  to.aclents = sent_list(std::move(acls.access), 0);
  if (with_defaults) {
    to.mask |= NFS_DFACL | NFS_DFACLCNT;
    to.dfaclents = sent_list(std::move(acls.defaults), NFS_ACL_DEFAULT);
  }
  to.aclcnt = static_cast<std::uint32_t>(to.aclents.size());
  to.dfaclcnt = static_cast<std::uint32_t>(to.dfaclents.size());
  return to;
}

constexpr Doing kLooking{"read the access control list", {}};

Outcome<Acls> from_secattr(const secattr& found) {
  constexpr std::uint32_t kBoth = NFS_ACL | NFS_DFACL;
  if ((found.mask & kBoth) != kBoth || found.aclcnt != found.aclents.size() ||
      found.dfaclcnt != found.dfaclents.size())
    return Failure{Error::of_protocol(kLooking, "left out a part of it")};
  return Acls{ulb::received_acl(found.aclents), ulb::received_acl(found.dfaclents)};
}

fhandle2 to_fhandle2(const Handle& object) {
  fhandle2 handle{};
  const Bytes bytes = object.data.bytes();
  std::copy_n(bytes.begin(), std::min(bytes.size(), handle.size()), handle.begin());
  return handle;
}

}  // namespace

std::string to_string(const AclEntry& entry) {
  std::string text(name_of_type(entry.type));
  const bool named = entry.type == ACL_USER || entry.type == ACL_GROUP;
  text += ':' + (named ? std::to_string(entry.id) : std::string()) + ':';
  constexpr std::string_view kLetters = "rwx";
  for (std::uint32_t i = 0; i < 3; ++i) text += (entry.perm & 4u >> i) != 0 ? kLetters[i] : '-';
  return text;
}

bool means_no_acls(const Error& error) {
  constexpr auto kNotSupported2 = static_cast<v3::nfsstat3>(45);  // NFSERR_OPNOTSUPP
  if (error.is(v3::NFS3ERR_NOTSUPP) || error.is(kNotSupported2)) return true;
  if (error.kind != Error::Kind::Call || error.call.kind != rpc::CallError::Kind::Answered)
    return false;
  using oncrpc::AcceptStat;
  const AcceptStat accept = error.call.status.accept;
  return accept == AcceptStat::PROG_UNAVAIL || accept == AcceptStat::PROG_MISMATCH ||
         accept == AcceptStat::PROC_UNAVAIL;
}

Task<Outcome<Acls>> FileSystem::acls(Handle object, std::uint32_t reply_max) {
  Caller caller(channel(), options_.calls, ulb::nfsacl());
  if (options_.calls.version == 2) {
    const GETACL2args args{to_fhandle2(object), NFS_ACL_MASK};
    const auto resok = co_await caller.call<ACLPROC2_GETACL>(args, kLooking, {}, reply_max);
    if (!resok) co_return Failure{resok.error()};
    co_return from_secattr(resok->acls);
  }
  const GETACL3args args{object.data, NFS_ACL_MASK};
  const auto resok = co_await caller.call<ACLPROC3_GETACL>(args, kLooking, {}, reply_max);
  if (!resok) co_return Failure{resok.error()};
  co_return from_secattr(resok->acls);
}

Task<Outcome<Ok>> FileSystem::set_acls(Handle object, Acls acls, bool with_defaults) {
  constexpr Doing kDoing{"change the access control list", {}};
  Caller caller(channel(), options_.calls, ulb::nfsacl());
  secattr wanted = to_secattr(std::move(acls), with_defaults);
  if (options_.calls.version == 2) {
    const SETACL2args args{to_fhandle2(object), std::move(wanted)};
    const auto resok = co_await caller.call<ACLPROC2_SETACL>(args, kDoing);
    if (!resok) co_return Failure{resok.error()};
    co_return Ok{};
  }
  const SETACL3args args{object.data, std::move(wanted)};
  const auto resok = co_await caller.call<ACLPROC3_SETACL>(args, kDoing);
  if (!resok) co_return Failure{resok.error()};
  co_return Ok{};
}

}  // namespace stag::nfs::client
