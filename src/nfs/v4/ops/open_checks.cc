// Why an OPEN is refused before its share is asked for (RFC 8881 18.16).
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/delegation_wants.h"
#include "nfs/v4/ops/open_target.h"

namespace stag::nfs::nfs4 {

v4::nfsstat4 check_arguments(const v4::OPEN4args& args) {
  const std::uint32_t access = args.share_access & state::kShareBoth;
  const bool valid = access != 0 && args.share_deny <= state::kShareBoth && valid_wants(args);
  return valid ? v4::NFS4_OK : v4::NFS4ERR_INVAL;
}

v4::nfsstat4 check_way(const Compound& compound, const PseudoFs::Node& named,
                       const v4::OPEN4args& args) {
  const auto entered = compound.enter(named);
  if (!entered) return entered.error();
  const bool anew =
      args.openhow.opentype == v4::OPEN4_CREATE && args.openhow.how().mode != v4::UNCHECKED4;
  return anew ? v4::NFS4ERR_EXIST : v4::NFS4ERR_ISDIR;
}

// 15.1.4.11: NFS4ERR_ROFS is for what would change something.
v4::nfsstat4 check_on_pseudo_fs(const Compound& compound, const v4::OPEN4args& args) {
  const bool creates = args.openhow.opentype == v4::OPEN4_CREATE;
  const std::string* name = nullptr;
  if (args.claim.claim == v4::CLAIM_NULL)
    name = &args.claim.file();
  else if (args.claim.claim == v4::CLAIM_DELEGATE_CUR)
    name = &args.claim.delegate_cur_info().file;
  else if (opens_by_name(args) || args.claim.claim == v4::CLAIM_DELEG_PREV_FH)
    return v4::NFS4ERR_NOTSUPP;
  else
    return creates ? v4::NFS4ERR_INVAL : v4::NFS4ERR_ISDIR;
  if (const v4::nfsstat4 bad = check_name(*name); bad != v4::NFS4_OK) return bad;
  const auto& folder = *std::get<const PseudoFs::Node*>(compound.current());
  const PseudoFs::Node* const child = folder.child(*name);
  if (child != nullptr) return check_way(compound, *child, args);
  return creates ? v4::NFS4ERR_ROFS : v4::NFS4ERR_NOENT;
}

// Whether the client, which was admitted (Reclaim), may claim anything now, and is recorded so that
// it may claim it again.
Task<v4::nfsstat4> check_claim(Compound& compound, const v4::OPEN4args& args) {
  const bool reclaim = args.claim.claim == v4::CLAIM_PREVIOUS;
  // No file is made in a grace period.
  const bool delegated = opens_by_delegation(args) && args.openhow.opentype == v4::OPEN4_NOCREATE;
  const state::Status claim =
      compound.shared().files.may_claim(reclaim, *compound.life(), delegated);
  if (claim != state::Status::Ok) co_return to_nfsstat4(claim);
  // A client that opens anew has no more to reclaim: in version 4.0 nothing else says so (RFC 7530
  // 9.6.2).
  if (!reclaim && !(delegated && compound.shared().files.grace()))
    SharedState::not_cut_off(*compound.life());
  co_return co_await compound.record_client();
}

namespace {

// What the client had opened, or may open by its delegation.
bool claims_what_it_had(const v4::OPEN4args& args) {
  return args.claim.claim == v4::CLAIM_PREVIOUS || opens_by_delegation(args);
}

}  // namespace

// What open(2) would ask: a file that can be executed can be read, too. What was open stays so
// whatever mode its owner gave it since, a read-only one when it was made among them.
Task<v4::nfsstat4> check_permission(const OpenTarget& target, const v4::OPEN4args& args) {
  const std::uint32_t share = args.share_access;
  const bool writes = (share & state::kShareWrite) != 0 || target.truncate;
  if (writes && target.file.read_only()) co_return v4::NFS4ERR_ROFS;
  if (target.made) co_return v4::NFS4_OK;
  constexpr std::uint32_t kReads = vfs::access::kRead | vfs::access::kExecute;
  const auto access = co_await target.file.store().access(target.file.caller(), target.file.handle,
                                                          kReads | vfs::access::kModify);
  if (!access) co_return to_nfsstat4(access.error());
  if (claims_what_it_had(args) && access->attributes.uid == target.file.credentials.uid)
    co_return v4::NFS4_OK;
  const bool refused = ((share & state::kShareRead) != 0 && (access->granted & kReads) == 0) ||
                       (writes && (access->granted & vfs::access::kModify) == 0);
  co_return refused ? v4::NFS4ERR_ACCESS : v4::NFS4_OK;
}

}  // namespace stag::nfs::nfs4
