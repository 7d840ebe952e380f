// What an OPEN claims (RFC 8881 18.16): the file that its name, its filehandle, its delegation or
// its former open leads to.
#include "nfs/v4/ops/open_target.h"

#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/crossing.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

namespace {

v4::nfsstat4 check_type(vfs::FileType type) {
  switch (type) {
    case vfs::FileType::Regular:
      return v4::NFS4_OK;
    case vfs::FileType::Directory:
      return v4::NFS4ERR_ISDIR;
    case vfs::FileType::Symlink:
      return v4::NFS4ERR_SYMLINK;
    default:
      return v4::NFS4ERR_WRONG_TYPE;
  }
}

}  // namespace

ExportObject object_in(const ExportObject& directory, const vfs::Handle& handle) {
  ExportObject object = directory;
  object.handle = handle;
  return object;
}

vfs::Operation<vfs::Found> lookup_in(const ExportObject& directory, const std::string& name) {
  return directory.store().lookup(directory.caller(), directory.handle, name);
}

OpenTargetFound existing_target(const ExportObject& directory, const vfs::Found& found) {
  if (const v4::nfsstat4 wrong = check_type(found.node.attributes.type); wrong != v4::NFS4_OK)
    return Failure{wrong};
  OpenTarget target{object_in(directory, found.node.handle)};
  const std::uint64_t change = found.directory ? found.directory->change : 0;
  target.directory = {found.directory.has_value(), change, change};
  return target;
}

namespace {

Task<OpenTargetFound> find_by_name(Compound& compound, const v4::OPEN4args& args,
                                   const std::string& name) {
  const ExportObject& directory = compound.object();
  if (const v4::nfsstat4 bad = check_name(name); bad != v4::NFS4_OK) co_return Failure{bad};
  if (compound.has_nested_exports()) {
    const PseudoFs::Node* const leads_on = co_await child_here(compound, name);
    if (leads_on != nullptr) co_return Failure{check_way(compound, *leads_on, args)};
  }
  if (args.openhow.opentype != v4::OPEN4_CREATE) {
    const auto found = co_await lookup_in(directory, name);
    if (!found) co_return Failure{to_nfsstat4(found.error())};
    co_return existing_target(directory, *found);
  }
  co_return co_await find_or_create(compound, directory, name, args);
}

}  // namespace

Task<OpenTargetFound> find_target(Compound& compound, const v4::OPEN4args& args) {
  const ExportObject current = compound.object();
  switch (args.claim.claim) {
    case v4::CLAIM_NULL:
      co_return co_await find_by_name(compound, args, args.claim.file());
    case v4::CLAIM_DELEGATE_CUR:
      co_return co_await find_by_name(compound, args, args.claim.delegate_cur_info().file);
    case v4::CLAIM_FH:
    case v4::CLAIM_DELEG_CUR_FH:
    case v4::CLAIM_PREVIOUS: {
      if (args.openhow.opentype == v4::OPEN4_CREATE) co_return Failure{v4::NFS4ERR_INVAL};
      const auto attributes = co_await current.store().attributes(current.caller(), current.handle);
      if (!attributes) co_return Failure{to_nfsstat4(attributes.error())};
      const v4::nfsstat4 wrong = check_type(attributes->type);
      if (wrong != v4::NFS4_OK) co_return Failure{wrong};
      co_return OpenTarget{current};
    }
    default:
      // What a client held before it restarted is not kept for it (18.16.3).
      co_return Failure{v4::NFS4ERR_NOTSUPP};
  }
}

v4::nfsstat4 check_delegation_claim(Compound& compound, const ExportObject& file,
                                    const v4::open_claim4& claim) {
  v4::stateid4 claimed;
  if (claim.claim == v4::CLAIM_DELEGATE_CUR)
    claimed = claim.delegate_cur_info().delegate_stateid;
  else if (claim.claim == v4::CLAIM_DELEG_CUR_FH)
    claimed = claim.oc_delegate_stateid();
  else
    return v4::NFS4_OK;
  return to_nfsstat4(
      compound.shared().files.check_delegation(file.key(), to_stateid(claimed), *compound.life()));
}

}  // namespace stag::nfs::nfs4
