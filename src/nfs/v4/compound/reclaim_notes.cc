#include "nfs/v4/compound/reclaim_notes.h"

#include <new>
#include <string>

#include "nfs/v4/compound/limit_notes.h"

namespace stag::nfs::nfs4 {

namespace {

bool refused(const state::Verdict& verdict) {
  return verdict.kind == state::Verdict::Kind::Refused &&
         verdict.status == state::Status::ReclaimConflict;
}

std::string text_of(const state::Range& range) {
  const bool to_the_end = range.last == state::Range::kEnd;
  return "bytes " + std::to_string(range.first) + " to " +
         (to_the_end ? "the end" : std::to_string(range.last));
}

std::string holder_of(const std::optional<state::ConflictingLock>& lock) {
  if (!lock) return {};
  const std::string who = lock->clientid == 0 ? "a program of this machine or a host with NLM"
                                              : "client " + std::to_string(lock->clientid);
  return "; " + who + " has " + text_of(lock->range);
}

}  // namespace

void note_refused_reclaim(const Compound& compound, const state::LockResult& locked,
                          const state::Range& wanted) noexcept {
  if (!refused(locked.verdict)) return;
  const state::ClientId client = compound.life()->clientid;
  try {
    note_limit(compound, Reason::ReclaimRefused, client,
               "a lock of " + text_of(wanted) + holder_of(locked.conflict));
  } catch (const std::bad_alloc&) {
    note_limit(compound, Reason::ReclaimRefused, client, "a lock");
  }
}

void note_refused_reclaim(const Compound& compound, const state::OpenResult& opened) noexcept {
  if (refused(opened.verdict))
    note_limit(compound, Reason::ReclaimRefused, compound.life()->clientid, "an open");
}

}  // namespace stag::nfs::nfs4
