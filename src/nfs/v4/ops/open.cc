// OPEN (RFC 8881 18.16) of regular files: the file is found or made, the caller's permission is
// checked, then its share is reserved; the last step is a delegation, where there can be one.
#include "nfs/v4/compound/limit_notes.h"
#include "nfs/v4/compound/reclaim.h"
#include "nfs/v4/compound/reclaim_notes.h"
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/delegations.h"
#include "nfs/v4/ops/open_share.h"
#include "nfs/v4/ops/open_target.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

namespace {

Task<v4::nfsstat4> truncate(const OpenTarget& target, state::FileChange change) {
  if (!target.truncate) co_return v4::NFS4_OK;
  vfs::SetAttributes changes;
  changes.size = target.truncate;
  const auto changed = co_await target.file.store().set_attributes(
      target.file.caller(), target.file.handle, changes, std::nullopt);
  change.end();
  co_return changed ? v4::NFS4_OK : to_nfsstat4(changed.error());
}

// The last steps of an open that is granted; where one fails, it is to be undone.
Task<Result<v4::open_delegation4, v4::nfsstat4>> truncate_and_delegate(Compound& compound,
                                                                       const OpenTarget& target,
                                                                       const v4::OPEN4args& args,
                                                                       Delegating delegating,
                                                                       state::OpenResult& opened) {
  const v4::nfsstat4 failed = co_await truncate(target, std::move(opened.truncation));
  if (failed != v4::NFS4_OK) co_return Failure{failed};
  if (delegating == Delegating::Forbidden) co_return v4::open_delegation4{};
  co_return co_await delegation_for(compound, target.file, args);
}

Task<v4::OPEN4res> open_target(Compound& compound, const OpenTarget& target,
                               const v4::OPEN4args& args, Delegating delegating) {
  const std::uint32_t access = args.share_access & state::kShareBoth;
  const v4::nfsstat4 refused = co_await check_permission(target, args);
  if (refused != v4::NFS4_OK) co_return v4::OPEN4res{refused, {}};
  const v4::nfsstat4 unclaimed = check_delegation_claim(compound, target.file, args.claim);
  if (unclaimed != v4::NFS4_OK) co_return v4::OPEN4res{unclaimed, {}};

  const Buffer owner = args.owner.owner.flatten();
  const state::OpenArgs wanted{target.file.key(),
                               owner.bytes(),
                               access,
                               args.share_deny,
                               args.claim.claim == v4::CLAIM_PREVIOUS,
                               target.truncate.has_value(),
                               false,
                               target.reserved.count(),
                               opens_by_delegation(args)};
  state::OpenResult opened = co_await reserve_share(compound, wanted);
  note_limit(compound, Reason::Nfs4StatesTooMany, opened.limit);
  note_refused_reclaim(compound, opened);
  if (!opened.verdict.granted()) co_return v4::OPEN4res{status_of(opened.verdict), {}};
  auto delegation = co_await truncate_and_delegate(compound, target, args, delegating, opened);
  if (!delegation) {
    compound.shared().files.undo(opened);
    co_return v4::OPEN4res{delegation.error(), {}};
  }
  v4::OPEN4res results;
  v4::OPEN4resok& ok = results.resok4();
  ok.stateid = to_stateid4(opened.stateid);
  ok.cinfo = target.directory;
  ok.rflags = v4::OPEN4_RESULT_LOCKTYPE_POSIX;
  ok.attrset = target.set.bitmap();
  ok.delegation = *std::move(delegation);
  compound.set_current(target.file);
  compound.set_current_stateid(ok.stateid);
  co_return results;
}

}  // namespace

Task<v4::OPEN4res> open(Compound& compound, v4::OPEN4args& args) {
  return open_file(compound, args, Delegating::Allowed);
}

Task<v4::OPEN4res> open_file(Compound& compound, v4::OPEN4args& args, Delegating delegating) {
  if (const v4::nfsstat4 bad = check_arguments(args); bad != v4::NFS4_OK)
    co_return v4::OPEN4res{bad, {}};
  if (std::holds_alternative<const PseudoFs::Node*>(compound.current()))
    co_return v4::OPEN4res{check_on_pseudo_fs(compound, args), {}};
  const Reclaim reclaim(compound, args.claim.claim == v4::CLAIM_PREVIOUS);
  // Before anything is made.
  if (const v4::nfsstat4 refused = co_await check_claim(compound, args); refused != v4::NFS4_OK)
    co_return v4::OPEN4res{reclaim.ended(refused), {}};
  constexpr int kTries = 8;
  for (int i = 1;; ++i) {
    const OpenTargetFound target = co_await find_target(compound, args);
    if (!target) co_return v4::OPEN4res{reclaim.ended(target.error()), {}};
    v4::OPEN4res results = co_await open_target(compound, *target, args, delegating);
    // Another client has removed what the name led to; the client's own filehandle is a good one.
    const bool gone = results.status == v4::NFS4ERR_STALE && opens_by_name(args);
    if (gone && i != kTries) continue;
    static_cast<void>(reclaim.ended(results.status));
    co_return results;
  }
}

}  // namespace stag::nfs::nfs4
