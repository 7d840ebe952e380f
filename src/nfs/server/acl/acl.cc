#include "nfs/server/acl/acl.h"

#include "nfs/export/admission.h"
#include "nfs/proto/nfsacl.h"
#include "nfs/server/v2/values.h"
#include "nfs/server/v3/attributes.h"
#include "nfs/server/v3/status.h"
#include "nfs/ulb/nfsacl.h"

namespace stag::nfs::acl {
namespace {

using namespace nfsacl;
using vfs::Status;

std::vector<aclent> entries_of(const vfs::Acl& acl, const vfs::Attributes& of,
                               std::uint32_t flags) {
  std::vector<aclent> entries;
  for (const vfs::AclEntry& entry : acl.entries())
    entries.push_back({static_cast<std::uint32_t>(entry.tag), entry.id, entry.permissions});
  return ulb::sent_acl(std::move(entries), {of.uid, of.gid}, flags);
}

// The parts of both lists that `mask` asks for.
vfs::Outcome<secattr> to_secattr(const vfs::ObjectAcls& found, std::uint32_t mask) {
  secattr to;
  to.mask = mask;
  if ((mask & (NFS_ACL | NFS_ACLCNT)) != 0)
    to.aclents = entries_of(found.acls.access, found.attributes, 0);
  if ((mask & (NFS_DFACL | NFS_DFACLCNT)) != 0)
    to.dfaclents = entries_of(found.acls.defaults, found.attributes, NFS_ACL_DEFAULT);
  if (std::max(to.aclents.size(), to.dfaclents.size()) > NFS_ACL_MAX_ENTRIES)
    return Failure{Status::Io};
  to.aclcnt = static_cast<std::uint32_t>(to.aclents.size());
  to.dfaclcnt = static_cast<std::uint32_t>(to.dfaclents.size());
  if ((mask & NFS_ACL) == 0) to.aclents.clear();
  if ((mask & NFS_DFACL) == 0) to.dfaclents.clear();
  return to;
}

vfs::Outcome<vfs::Acl> from_entries(const std::vector<aclent>& list, std::uint32_t count) {
  if (count != list.size()) return Failure{Status::Invalid};
  std::vector<vfs::AclEntry> entries;
  for (const aclent& entry : ulb::received_acl(list)) {
    if (entry.type > ACL_OTHER_OBJ) return Failure{Status::Invalid};
    entries.push_back({static_cast<vfs::AclEntry::Tag>(entry.type), entry.id, entry.perm});
  }
  auto acl = vfs::Acl::from(std::move(entries));
  if (!acl) return Failure{Status::Invalid};
  return *std::move(acl);
}

// A list whose bit in `mask` is not set stays unchanged, even if the Call carries one.
vfs::Outcome<vfs::SetAcls> from_secattr(const secattr& from) {
  if ((from.mask & ~NFS_ACL_MASK) != 0) return Failure{Status::Invalid};
  vfs::SetAcls changes;
  if ((from.mask & NFS_ACL) != 0) {
    auto access = from_entries(from.aclents, from.aclcnt);
    if (!access) return Failure{access.error()};
    changes.access = *std::move(access);
  }
  if ((from.mask & NFS_DFACL) != 0) {
    auto defaults = from_entries(from.dfaclents, from.dfaclcnt);
    if (!defaults) return Failure{defaults.error()};
    changes.defaults = *std::move(defaults);
  }
  return changes;
}

struct Found {
  secattr acls;
  vfs::Attributes attributes;
};

Task<vfs::Outcome<Found>> look(const ExportObject& object, std::uint32_t mask) {
  if ((mask & ~NFS_ACL_MASK) != 0) co_return Failure{Status::Invalid};
  const auto found = co_await object.store().acls(object.caller(), object.handle);
  if (!found) co_return Failure{found.error()};
  auto acls = to_secattr(*found, mask);
  if (!acls) co_return Failure{acls.error()};
  co_return Found{*std::move(acls), found->attributes};
}

Task<vfs::Outcome<vfs::Change>> change(const Admission& admission, const ExportObject& object,
                                       const secattr& wanted) {
  if (object.read_only()) co_return Failure{Status::ReadOnly};
  const auto changes = from_secattr(wanted);
  if (!changes) co_return Failure{changes.error()};
  const Intent intent{.touch = state::Touch::Attributes, .as_owner = true};
  const auto permitted = co_await admission.permit(object, intent);
  if (!permitted) co_return Failure{permitted.error()};
  co_return co_await object.store().set_acls(object.caller(), object.handle, *changes);
}

// Version 3: statuses and attributes are those of NFSv3, in types of NFSACL's own. Linux's client
// repeats no call of NFSACL that is answered with JUKEBOX, and hands it to the program as an errno
// that it does not have: as in version 2 everything is waited for that is in the way.

nfsacl::post_op_attr to_post_op(const std::optional<vfs::Attributes>& attributes) {
  nfsacl::post_op_attr to;
  to.attributes_follow = attributes.has_value();
  if (!attributes) return to;
  const v3::fattr3 a = nfs3::to_fattr3(*attributes);
  to.attributes() = {static_cast<std::uint32_t>(a.type),
                     a.mode,
                     a.nlink,
                     a.uid,
                     a.gid,
                     a.size,
                     a.used,
                     {a.rdev.specdata1, a.rdev.specdata2},
                     a.fsid,
                     a.fileid,
                     {a.atime.seconds, a.atime.nseconds},
                     {a.mtime.seconds, a.mtime.nseconds},
                     {a.ctime.seconds, a.ctime.nseconds}};
  return to;
}

Task<GETACL3res> getacl3(Admission admission, GETACL3args args) {
  GETACL3res res;
  const auto object = co_await admission.resolve_settled(args.object.bytes());
  if (!object) {
    res.status = nfs3::to_nfsstat3(object.error());
    co_return res;
  }
  auto found = co_await look(*object, args.mask);
  if (found) {
    res.resok().attributes = to_post_op(found->attributes);
    res.resok().acls = std::move(found->acls);
    co_return res;
  }
  res.status = nfs3::to_nfsstat3(found.error());
  res.resfail() = to_post_op(co_await attributes_now(*object));
  co_return res;
}

Task<SETACL3res> setacl3(Admission admission, SETACL3args args) {
  SETACL3res res;
  const auto object = co_await admission.resolve_settled(args.object.bytes());
  if (!object) {
    res.status = nfs3::to_nfsstat3(object.error());
    co_return res;
  }
  const auto changed = co_await change(admission, *object, args.acls);
  if (changed) {
    res.resok() = to_post_op(changed->after);
    co_return res;
  }
  res.status = nfs3::to_nfsstat3(changed.error());
  res.resfail() = to_post_op(co_await attributes_now(*object));
  co_return res;
}

// Version 2: those of NFSv2.

fattr2 to_fattr2(const vfs::Attributes& attributes) {
  const v2::fattr a = nfs2::to_fattr(attributes);
  return {static_cast<std::uint32_t>(a.type),
          a.mode,
          a.nlink,
          a.uid,
          a.gid,
          a.size,
          a.blocksize,
          a.rdev,
          a.blocks,
          a.fsid,
          a.fileid,
          {a.atime.seconds, a.atime.useconds},
          {a.mtime.seconds, a.mtime.useconds},
          {a.ctime.seconds, a.ctime.useconds}};
}

// RFC 1094 has no status for these two, and its list of statuses does not bind NFSACL.
v2::nfsstat to_status2(Status status) {
  if (status == Status::NotSupported) return v2::NFSERR_OPNOTSUPP;
  if (status == Status::Invalid) return v2::NFSERR_INVAL;
  return nfs2::to_nfsstat(status);
}
v2::nfsstat to_status2(Refusal refusal) {
  return nfs2::to_nfsstat(refusal);
}

template <class Res, class Why>
Res failed2(Why why) {
  Res res;
  res.status = to_status2(why);
  return res;
}

Task<GETACL2res> getacl2(Admission admission, GETACL2args args) {
  const auto object = co_await admission.resolve_settled(args.object);
  if (!object) co_return failed2<GETACL2res>(object.error());
  auto found = co_await look(*object, args.mask);
  if (!found) co_return failed2<GETACL2res>(found.error());
  GETACL2res res;
  res.resok().attributes = to_fattr2(found->attributes);
  res.resok().acls = std::move(found->acls);
  co_return res;
}

Task<ATTR2res> attributes2(const ExportObject& object) {
  const auto found = co_await object.store().attributes(object.caller(), object.handle);
  if (!found) co_return failed2<ATTR2res>(found.error());
  ATTR2res res;
  res.resok() = to_fattr2(*found);
  co_return res;
}

Task<ATTR2res> setacl2(Admission admission, SETACL2args args) {
  const auto object = co_await admission.resolve_settled(args.object);
  if (!object) co_return failed2<ATTR2res>(object.error());
  const auto changed = co_await change(admission, *object, args.acls);
  if (!changed) co_return failed2<ATTR2res>(changed.error());
  co_return co_await attributes2(*object);
}

Task<ATTR2res> getattr2(Admission admission, fhandle2 handle) {
  const auto object = co_await admission.resolve_settled(handle);
  if (!object) co_return failed2<ATTR2res>(object.error());
  co_return co_await attributes2(*object);
}

Task<ACCESS2res> access2(Admission admission, ACCESS2args args) {
  const auto object = co_await admission.resolve_settled(args.object);
  if (!object) co_return failed2<ACCESS2res>(object.error());
  constexpr std::uint32_t kChanging =
      vfs::access::kModify | vfs::access::kExtend | vfs::access::kDelete;
  const std::uint32_t asked =
      args.access & vfs::access::kAll & (object->read_only() ? ~kChanging : ~0u);
  const auto found = co_await object->store().access(object->caller(), object->handle, asked);
  if (!found) co_return failed2<ACCESS2res>(found.error());
  ACCESS2res res;
  res.resok() = {to_fattr2(found->attributes), found->granted & asked};
  co_return res;
}

template <class P, auto procedure>
void add(rpc::Program& program, const ServerContext& server) {
  program.add<P>([&server](rpc::CallContext& call, typename P::Args args) {
    return procedure(Admission(server, call), std::move(args));
  });
}

// One that changes something.
template <class P, auto procedure>
Task<Result<typename P::Results, rpc::CallRefusal>> change_late(const ServerContext& server,
                                                                rpc::CallContext& call,
                                                                typename P::Args args) {
  Deferral deferral;
  auto results = co_await procedure(Admission(server, call, &deferral), std::move(args));
  co_return deferral.answer(std::move(results));
}
template <class P, auto procedure>
void add_late(rpc::Program& program, const ServerContext& server) {
  program.add<P>([&server](rpc::CallContext& call, typename P::Args args) {
    return change_late<P, procedure>(server, call, std::move(args));
  });
}

}  // namespace

rpc::Program program2(const ServerContext& server) {
  rpc::Program program(NFS_ACL_PROGRAM, NFS_ACL_V2, ulb::nfsacl());
  add<ACLPROC2_GETACL, getacl2>(program, server);
  add_late<ACLPROC2_SETACL, setacl2>(program, server);
  add<ACLPROC2_GETATTR, getattr2>(program, server);
  add<ACLPROC2_ACCESS, access2>(program, server);
  return program;
}

rpc::Program program3(const ServerContext& server) {
  rpc::Program program(NFS_ACL_PROGRAM, NFS_ACL_V3, ulb::nfsacl());
  add<ACLPROC3_GETACL, getacl3>(program, server);
  add_late<ACLPROC3_SETACL, setacl3>(program, server);
  return program;
}

}  // namespace stag::nfs::acl
