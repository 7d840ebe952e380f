// What LOCK and LOCKT tell of the lock that is in the way (RFC 8881 18.10.3, 18.11.3).
#include <span>
#include <utility>

#include "base/siphash.h"
#include "nfs/v4/ops/lock.h"

namespace stag::nfs::nfs4 {

namespace {

// A client that knows a client ID of version 4.0 can act as that client, so others get a number
// that stands for it: the same each time, and of no use. 0 is the holder that is no client of
// NFSv4: a program or one of NLM.
v4::clientid4 shown_to(const Compound& asks, state::ClientId holder) {
  if (holder == 0 || holder == asks.life()->clientid) return holder;
  SipHash hash(process_sip_key());
  hash.add(bytes_of("LOCK4denied"));
  hash.add(std::as_bytes(std::span(&holder, 1)));
  return hash.finish();
}

}  // namespace

v4::LOCK4denied to_denied(const Compound& compound, const state::ConflictingLock& conflict) {
  v4::LOCK4denied denied;
  denied.offset = conflict.range.first;
  denied.length = conflict.range.last == state::Range::kEnd
                      ? state::Range::kEnd
                      : conflict.range.last - conflict.range.first + 1;
  denied.locktype = conflict.exclusive ? v4::WRITE_LT : v4::READ_LT;
  denied.owner.clientid = shown_to(compound, conflict.clientid);
  denied.owner.owner = Rope::copy_of(bytes_of(conflict.lock_owner));
  return denied;
}

state::LockResult denied_by(state::ConflictingLock conflict, bool reclaim) {
  const state::Status status = reclaim ? state::Status::ReclaimConflict : state::Status::Denied;
  return {state::Verdict::refused(status), {}, std::move(conflict)};
}

}  // namespace stag::nfs::nfs4
