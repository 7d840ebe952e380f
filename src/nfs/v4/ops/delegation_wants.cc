#include "nfs/v4/ops/delegation_wants.h"

#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

std::uint32_t wants_of(const v4::OPEN4args& args) {
  return args.share_access & v4::OPEN4_SHARE_ACCESS_WANT_DELEG_MASK;
}

v4::open_delegation4 none(const v4::OPEN4args& args, v4::why_no_delegation4 why) {
  v4::open_delegation4 delegation;
  delegation.delegation_type = v4::OPEN_DELEGATE_NONE;
  if (wants_of(args) == 0) return delegation;
  delegation.delegation_type = v4::OPEN_DELEGATE_NONE_EXT;
  delegation.od_whynone().ond_why = why;
  // It is neither pushed nor signalled later.
  if (why == v4::WND4_CONTENTION) delegation.od_whynone().ond_server_will_push_deleg() = false;
  if (why == v4::WND4_RESOURCE) delegation.od_whynone().ond_server_will_signal_avail() = false;
  return delegation;
}

std::optional<v4::why_no_delegation4> why_not(const v4::OPEN4args& args) {
  if (args.claim.claim != v4::CLAIM_NULL && args.claim.claim != v4::CLAIM_FH)
    return v4::WND4_NOT_WANTED;
  if (wants_of(args) == v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG) return v4::WND4_NOT_WANTED;
  if (wants_of(args) == v4::OPEN4_SHARE_ACCESS_WANT_CANCEL) return v4::WND4_CANCELLED;
  return std::nullopt;
}

state::DelegationType type_for(const v4::OPEN4args& args) {
  const bool writes = (args.share_access & state::kShareWrite) != 0;
  return writes && wants_of(args) != v4::OPEN4_SHARE_ACCESS_WANT_READ_DELEG
             ? state::DelegationType::Write
             : state::DelegationType::Read;
}

v4::open_delegation4 granted(state::DelegationType type, const state::Stateid& stateid,
                             bool recalled) {
  v4::open_delegation4 delegation;
  // The entry grants nothing: the client asks for each user's access, as it would without.
  if (type == state::DelegationType::Read) {
    delegation.delegation_type = v4::OPEN_DELEGATE_READ;
    delegation.read().stateid = to_stateid4(stateid);
    delegation.read().recall = recalled;
    return delegation;
  }
  delegation.delegation_type = v4::OPEN_DELEGATE_WRITE;
  v4::open_write_delegation4& write = delegation.write();
  write.stateid = to_stateid4(stateid);
  write.recall = recalled;
  write.space_limit.limitby = v4::NFS_LIMIT_SIZE;
  write.space_limit.filesize() = ~std::uint64_t{0};
  return delegation;
}

bool valid_wants(const v4::OPEN4args& args) {
  constexpr std::uint32_t kKnown = v4::OPEN4_SHARE_ACCESS_WANT_DELEG_MASK |
                                   v4::OPEN4_SHARE_ACCESS_WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL |
                                   v4::OPEN4_SHARE_ACCESS_WANT_PUSH_DELEG_WHEN_UNCONTENDED;
  const bool claimed = args.claim.claim != v4::CLAIM_PREVIOUS ||
                       args.claim.delegate_type() <= v4::OPEN_DELEGATE_WRITE;
  return claimed && (args.share_access & ~(state::kShareBoth | kKnown)) == 0 &&
         wants_of(args) <= v4::OPEN4_SHARE_ACCESS_WANT_CANCEL;
}

}  // namespace stag::nfs::nfs4
