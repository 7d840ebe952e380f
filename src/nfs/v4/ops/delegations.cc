// The delegation that OPEN gives (RFC 8881 10.4, 18.16).
#include "nfs/v4/ops/delegations.h"

#include <new>

#include "nfs/v4/callback/callbacks.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/callback_path.h"
#include "nfs/v4/ops/delegation_wants.h"
#include "nfs/v4/ops/new_delegation.h"

namespace stag::nfs::nfs4 {

namespace {

using Delegated = Result<v4::open_delegation4, v4::nfsstat4>;

// 10.2.1: who held one before a restart gets it again, and is asked at once to give it back where
// it could not be recalled, there are too many, or local programs use the file.
Task<Delegated> delegated_again(Compound& compound, const ExportObject& file,
                                const v4::OPEN4args& args) {
  const bool reached = co_await can_call_back(compound);
  const state::DelegationType type = args.claim.delegate_type() == v4::OPEN_DELEGATE_WRITE
                                         ? state::DelegationType::Write
                                         : state::DelegationType::Read;
  const state::StateidResult made = co_await delegate(compound, file, type, true);
  if (made.status != state::Status::Ok) co_return Failure{to_nfsstat4(made.status)};
  Untold untold(compound, file, made.stateid);
  const bool kept = co_await keep_from_programs(compound, file, type, made.stateid);
  untold.told();
  const bool too_many = made.limit != state::Limit::None;
  co_return granted(type, made.stateid, !reached || !kept || too_many);
}

// 18.16.3: a delegation that the client has is not turned into one of the other kind.
v4::why_no_delegation4 why_denied(const Compound& compound, const ExportObject& file,
                                  const v4::OPEN4args& args) {
  using state::DelegationType;
  const auto has = compound.shared().files.delegation_of(file.key(), *compound.life());
  const std::uint32_t wants = wants_of(args);
  if (has == DelegationType::Read && wants == v4::OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG)
    return v4::WND4_NOT_SUPP_UPGRADE;
  if (has == DelegationType::Write && wants == v4::OPEN4_SHARE_ACCESS_WANT_READ_DELEG)
    return v4::WND4_NOT_SUPP_DOWNGRADE;
  return v4::WND4_CONTENTION;
}

bool claims_again(const Compound& compound, const v4::open_claim4& claim) {
  return claim.claim == v4::CLAIM_PREVIOUS && claim.delegate_type() != v4::OPEN_DELEGATE_NONE &&
         compound.shared().callbacks.load(std::memory_order_acquire) != nullptr;
}

}  // namespace

Task<Delegated> delegation_for(Compound& compound, const ExportObject& file,
                               const v4::OPEN4args& args) {
  if (claims_again(compound, args.claim)) co_return co_await delegated_again(compound, file, args);
  if (const auto why = why_not(args)) co_return none(args, *why);
  const bool reached = co_await can_call_back(compound);
  if (!reached) co_return none(args, v4::WND4_RESOURCE);
  const state::DelegationType type = type_for(args);
  const state::StateidResult made = co_await delegate(compound, file, type, false);
  if (made.status == state::Status::Denied) co_return none(args, why_denied(compound, file, args));
  if (made.status != state::Status::Ok) co_return none(args, v4::WND4_RESOURCE);
  Untold untold(compound, file, made.stateid);
  const bool kept = co_await keep_from_programs(compound, file, type, made.stateid);
  if (!kept) co_return none(args, v4::WND4_CONTENTION);
  untold.told();
  co_return granted(type, made.stateid, false);
}

void put_off_recalls(const Compound& compound, const Export& of) try {
  Callbacks* const callbacks = compound.shared().callbacks.load(std::memory_order_acquire);
  const state::LifePtr& life = compound.life();
  if (callbacks == nullptr || life == nullptr || life->delegations.load() == 0) return;
  callbacks->put_off(life->clientid, of.id);
} catch (const std::bad_alloc&) {
  // The client comes again before a lease is over.
}

}  // namespace stag::nfs::nfs4
