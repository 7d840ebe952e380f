// LOCK and LOCKU of version 4.0 (RFC 7530 16.10, 16.12): in the turn of their lock owner, and a
// LOCK that names a new one in that of its open owner, too (9.1.9).
#include "nfs/v4/compound/reclaim.h"
#include "nfs/v4/ops/lock.h"
#include "nfs/v4/ops/operations.h"
#include "nfs/v4/ops/owner_turn.h"

namespace stag::nfs::nfs4 {

namespace {

using state::OwnerKind;
using state::OwnerOperation;

v4::nfsstat4 not_a_file(const Compound& compound) {
  const bool pseudo = std::holds_alternative<const PseudoFs::Node*>(compound.current());
  return pseudo ? v4::NFS4ERR_ISDIR : v4::NFS4_OK;
}

// `opened`: of open_for_locks(). A refusal for that, too, is one that the client counts.
v4::LOCK4res lock_here(Compound& compound, const v4::LOCK4args& args, v4::nfsstat4 opened) {
  const v4::nfsstat4 wrong = opened == v4::NFS4_OK ? not_a_file(compound) : opened;
  return wrong == v4::NFS4_OK ? lock_now(compound, args) : v4::LOCK4res{wrong, {}};
}

v4::LOCK4res lock_by_open_owner(Compound& compound, const v4::LOCK4args& args,
                                v4::nfsstat4 opened) {
  const v4::open_to_lock_owner4& locker = args.locker.open_owner();
  const v4::nfsstat4 nobody = compound.identify(locker.open_stateid);
  if (nobody != v4::NFS4_OK) return {nobody, {}};
  const state::Files& files = compound.shared().files;
  if (!files.is_open(to_stateid(locker.open_stateid))) return {v4::NFS4ERR_BAD_STATEID, {}};
  const state::ClientId clientid = compound.life()->clientid;
  if (locker.lock_owner.clientid != clientid) return {v4::NFS4ERR_STALE_CLIENTID, {}};
  const std::string opener = files.owner_of(to_stateid(locker.open_stateid));
  OwnerTurn open_turn(compound, {OwnerKind::Open, clientid, bytes_of(opener), locker.open_seqid,
                                 OwnerOperation::Lock, false});
  if (!open_turn.runs()) return open_turn.instead(&v4::LOCK4res::status);
  const Buffer owner = locker.lock_owner.owner.flatten();
  OwnerTurn lock_turn(compound, {OwnerKind::Lock, clientid, owner.bytes(), locker.lock_seqid,
                                 OwnerOperation::Lock, true});
  if (!lock_turn.runs()) return lock_turn.instead(&v4::LOCK4res::status);
  const v4::LOCK4res results = lock_here(compound, args, opened);
  if (results.status == v4::NFS4_OK && results.resok4().lock_stateid.seqid == 1)
    compound.shared().owners.locked(lock_turn.owner(), to_stateid(results.resok4().lock_stateid));
  const state::ReplyPtr reply = kept(results);
  open_turn.finish(results.status, reply);
  // RFC 7530 16.10.5: it has no locking state, so its next lock_seqid is a first one again.
  const bool established = results.status == v4::NFS4_OK || !lock_turn.fresh();
  if (established) lock_turn.finish(results.status, reply);
  return results;
}

// Runs `function` in the turn of the lock owner of a stateid.
template <class Results, class Function>
Results in_lock_turn(Compound& compound, const v4::stateid4& stateid, std::uint32_t seqid,
                     OwnerOperation operation, Function function) {
  const v4::nfsstat4 nobody = compound.identify(stateid);
  if (nobody != v4::NFS4_OK) return {nobody, {}};
  const state::Files& files = compound.shared().files;
  // Of an open, or special: no lock has these.
  if (files.is_open(to_stateid(stateid)) || compound.life()->clientid == 0)
    return {v4::NFS4ERR_BAD_STATEID, {}};
  const std::string owner = files.owner_of(to_stateid(stateid));
  OwnerTurn turn(compound, {OwnerKind::Lock, compound.life()->clientid, bytes_of(owner), seqid,
                            operation, false});
  if (!turn.runs()) return turn.instead(&Results::status);
  const Results results = function();
  turn.finish(results.status, kept(results));
  return results;
}

v4::LOCK4res lock_in_turns(Compound& compound, const v4::LOCK4args& args, v4::nfsstat4 opened) {
  if (args.locker.new_lock_owner) return lock_by_open_owner(compound, args, opened);
  const v4::exist_lock_owner4& locker = args.locker.lock_owner();
  return in_lock_turn<v4::LOCK4res>(compound, locker.lock_stateid, locker.lock_seqid,
                                    OwnerOperation::Lock,
                                    [&] { return lock_here(compound, args, opened); });
}

}  // namespace

Task<v4::LOCK4res> lock_in_turn(Compound& compound, v4::LOCK4args& args) {
  // A client that cannot be identified is refused in the turn of its owner.
  if (args.reclaim) static_cast<void>(compound.identify(stateid_of(args.locker)));
  const Reclaim reclaim(compound, args.reclaim);
  const OpenForLocks open = co_await open_for_locks(compound);
  const v4::LOCK4res results = lock_in_turns(compound, args, open.status);
  static_cast<void>(reclaim.ended(results.status));
  co_return results;
}

v4::LOCKU4res locku_in_turn(Compound& compound, v4::LOCKU4args& args) {
  return in_lock_turn<v4::LOCKU4res>(
      compound, args.lock_stateid, args.seqid, OwnerOperation::Unlock, [&] {
        const v4::nfsstat4 wrong = not_a_file(compound);
        return wrong == v4::NFS4_OK ? locku(compound, args) : v4::LOCKU4res{wrong, {}};
      });
}

}  // namespace stag::nfs::nfs4
