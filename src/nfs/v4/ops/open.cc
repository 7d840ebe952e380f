// OPEN (RFC 8881 18.16) of regular files: the file is found or made, the caller's permission is
// checked, then its share is reserved; the last step is a delegation, where there can be one.
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/delegations.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/set_acl.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

namespace {

constexpr std::uint32_t kShareMask = state::kShareBoth;

// The file that is to be opened.
struct Target {
  ExportObject file;
  bool made = false;
  v4::change_info4 directory{};
  AttributeSet set{};                       // what was set when it was made
  std::optional<std::uint64_t> truncate{};  // of a file that was there
};
using Found = Result<Target, v4::nfsstat4>;

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

ExportObject object_in(const ExportObject& directory, const vfs::Handle& handle) {
  ExportObject object = directory;
  object.handle = handle;
  return object;
}

vfs::Operation<vfs::Found> lookup_in(const ExportObject& directory, const std::string& name) {
  return directory.store().lookup(directory.caller(), directory.handle, name);
}

Found existing(const ExportObject& directory, const vfs::Found& found) {
  if (const v4::nfsstat4 wrong = check_type(found.node.attributes.type); wrong != v4::NFS4_OK)
    return Failure{wrong};
  Target target{object_in(directory, found.node.handle)};
  const std::uint64_t change = found.directory ? found.directory->change : 0;
  target.directory = {found.directory.has_value(), change, change};
  return target;
}

// What a file is to be made with.
struct Creation {
  vfs::CreateHow how;
  AttributeSet set;
  std::optional<Aces> acl;
  bool unchecked = false;
};

Task<Result<Creation, v4::nfsstat4>> to_creation(const Compound& compound,
                                                 const v4::createhow4& how) {
  Creation creation;
  const v4::fattr4* attributes = nullptr;
  switch (how.mode) {
    case v4::UNCHECKED4:
      creation.unchecked = true;
      [[fallthrough]];
    case v4::GUARDED4:
      attributes = &how.createattrs();
      break;
    case v4::EXCLUSIVE4:
      creation.how.mode = vfs::CreateMode::Exclusive;
      creation.how.verifier = how.createverf();
      co_return creation;
    case v4::EXCLUSIVE4_1:
      creation.how.mode = vfs::CreateMode::Exclusive;
      creation.how.verifier = how.ch_createboth().cva_verf;
      attributes = &how.ch_createboth().cva_attrs;
      break;
  }
  auto wanted = decode_attributes(*attributes);
  if (!wanted) co_return Failure{wanted.error()};
  if (const v4::nfsstat4 bad = co_await compound.resolve_names(*wanted); bad != v4::NFS4_OK)
    co_return Failure{bad};
  if (creation.how.mode == vfs::CreateMode::Exclusive &&
      !(wanted->set - exclusive_create_attributes()).empty())
    co_return Failure{v4::NFS4ERR_ATTRNOTSUPP};
  creation.how.attributes = wanted->values;
  creation.set = wanted->set;
  creation.acl = wanted->acl;
  co_return creation;
}

Task<Found> make(const ExportObject& directory, const std::string& name, const Creation& creation) {
  const auto made =
      co_await directory.store().create(directory.caller(), directory.handle, name, creation.how);
  if (!made) co_return Failure{to_nfsstat4(made.error())};
  Target target{object_in(directory, made->node.handle), true, to_change_info4(made->directory),
                creation.set};
  if (creation.acl && co_await set_acl(target.file, *creation.acl) != v4::NFS4_OK)
    target.set = target.set - AttributeSet{v4::FATTR4_ACL};
  co_return target;
}

// UNCHECKED4: the file that is there, of which only the size is set, or a new one. Somebody else
// may make or remove it in between.
Task<Found> find_or_make(const ExportObject& directory, const std::string& name,
                         const Creation& creation) {
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    const auto found = co_await lookup_in(directory, name);
    if (found) {
      Found target = existing(directory, *found);
      if (target && creation.how.attributes.size) {
        target->truncate = creation.how.attributes.size;
        target->set = {v4::FATTR4_SIZE};
      }
      co_return target;
    }
    if (found.error() != vfs::Status::NoEntry) co_return Failure{to_nfsstat4(found.error())};
    if (directory.read_only()) co_return Failure{v4::NFS4ERR_ROFS};
    Found made = co_await make(directory, name, creation);
    if (made || made.error() != v4::NFS4ERR_EXIST) co_return made;
  }
  co_return Failure{v4::NFS4ERR_DELAY};
}

Task<Found> find_by_name(const Compound& compound, const v4::OPEN4args& args,
                         const std::string& name) {
  const ExportObject& directory = compound.object();
  if (const v4::nfsstat4 bad = check_name(name); bad != v4::NFS4_OK) co_return Failure{bad};
  if (args.openhow.opentype != v4::OPEN4_CREATE) {
    const auto found = co_await lookup_in(directory, name);
    if (!found) co_return Failure{to_nfsstat4(found.error())};
    co_return existing(directory, *found);
  }
  const auto creation = co_await to_creation(compound, args.openhow.how());
  if (!creation) co_return Failure{creation.error()};
  if (creation->unchecked) co_return co_await find_or_make(directory, name, *creation);
  if (directory.read_only()) co_return Failure{v4::NFS4ERR_ROFS};
  co_return co_await make(directory, name, *creation);
}

Task<Found> find(Compound& compound, const v4::OPEN4args& args) {
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
      co_return Target{current};
    }
    default:
      // What a client held before it restarted is not kept for it (18.16.3).
      co_return Failure{v4::NFS4ERR_NOTSUPP};
  }
}

// What open(2) would ask: a file that can be executed can be read, too.
Task<v4::nfsstat4> check_permission(const Target& target, std::uint32_t share) {
  const bool writes = (share & state::kShareWrite) != 0 || target.truncate;
  if (writes && target.file.read_only()) co_return v4::NFS4ERR_ROFS;
  if (target.made) co_return v4::NFS4_OK;
  constexpr std::uint32_t kReads = vfs::access::kRead | vfs::access::kExecute;
  const auto access = co_await target.file.store().access(target.file.caller(), target.file.handle,
                                                          kReads | vfs::access::kModify);
  if (!access) co_return to_nfsstat4(access.error());
  const bool refused = ((share & state::kShareRead) != 0 && (access->granted & kReads) == 0) ||
                       (writes && (access->granted & vfs::access::kModify) == 0);
  co_return refused ? v4::NFS4ERR_ACCESS : v4::NFS4_OK;
}

v4::nfsstat4 check_arguments(const v4::OPEN4args& args) {
  const std::uint32_t access = args.share_access & kShareMask;
  const bool valid = access != 0 && args.share_deny <= state::kShareBoth && valid_wants(args);
  return valid ? v4::NFS4_OK : v4::NFS4ERR_INVAL;
}

// Whether the client may claim anything now, and is recorded so that it may claim it again.
Task<v4::nfsstat4> check_claim(Compound& compound, const v4::OPEN4args& args) {
  const bool reclaim = args.claim.claim == v4::CLAIM_PREVIOUS;
  const state::Status claim = compound.shared().files.may_claim(reclaim, *compound.life());
  if (claim != state::Status::Ok) co_return to_nfsstat4(claim);
  co_return co_await compound.record_client();
}

Task<v4::nfsstat4> truncate(const Target& target) {
  if (!target.truncate) co_return v4::NFS4_OK;
  vfs::SetAttributes changes;
  changes.size = target.truncate;
  const auto changed = co_await target.file.store().set_attributes(
      target.file.caller(), target.file.handle, changes, std::nullopt);
  co_return changed ? v4::NFS4_OK : to_nfsstat4(changed.error());
}

// The last steps of an open that is granted; where one fails, it is to be undone.
Task<Result<v4::open_delegation4, v4::nfsstat4>> truncate_and_delegate(Compound& compound,
                                                                       const Target& target,
                                                                       const v4::OPEN4args& args,
                                                                       Delegating delegating) {
  const v4::nfsstat4 failed = co_await truncate(target);
  if (failed != v4::NFS4_OK) co_return Failure{failed};
  if (delegating == Delegating::Forbidden) co_return v4::open_delegation4{};
  co_return co_await delegation_for(compound, target.file, args);
}

}  // namespace

Task<v4::OPEN4res> open(Compound& compound, v4::OPEN4args& args) {
  return open_file(compound, args, Delegating::Allowed);
}

Task<v4::OPEN4res> open_file(Compound& compound, v4::OPEN4args& args, Delegating delegating) {
  if (const v4::nfsstat4 bad = check_arguments(args); bad != v4::NFS4_OK)
    co_return v4::OPEN4res{bad, {}};
  // Before anything is made.
  if (const v4::nfsstat4 refused = co_await check_claim(compound, args); refused != v4::NFS4_OK)
    co_return v4::OPEN4res{refused, {}};
  const Found target = co_await find(compound, args);
  if (!target) co_return v4::OPEN4res{target.error(), {}};
  const std::uint32_t access = args.share_access & kShareMask;
  const v4::nfsstat4 refused = co_await check_permission(*target, access);
  if (refused != v4::NFS4_OK) co_return v4::OPEN4res{refused, {}};
  const v4::nfsstat4 unclaimed = check_delegation_claim(compound, target->file, args.claim);
  if (unclaimed != v4::NFS4_OK) co_return v4::OPEN4res{unclaimed, {}};

  const Buffer owner = args.owner.owner.flatten();
  const state::OpenArgs wanted{key_of(target->file),
                               owner.bytes(),
                               access,
                               args.share_deny,
                               args.claim.claim == v4::CLAIM_PREVIOUS,
                               target->truncate.has_value()};
  const state::OpenResult opened = co_await settled_in_time(
      compound, wanted.file, [&] { return compound.shared().files.open(wanted, compound.life()); });
  if (!opened.verdict.granted()) co_return v4::OPEN4res{status_of(opened.verdict), {}};
  auto delegation = co_await truncate_and_delegate(compound, *target, args, delegating);
  if (!delegation) {
    compound.shared().files.undo(opened);
    co_return v4::OPEN4res{delegation.error(), {}};
  }
  v4::OPEN4res results;
  v4::OPEN4resok& ok = results.resok4();
  ok.stateid = to_stateid4(opened.stateid);
  ok.cinfo = target->directory;
  ok.rflags = v4::OPEN4_RESULT_LOCKTYPE_POSIX;
  ok.attrset = target->set.bitmap();
  ok.delegation = *std::move(delegation);
  compound.set_current(target->file);
  compound.set_current_stateid(ok.stateid);
  co_return results;
}

}  // namespace stag::nfs::nfs4
