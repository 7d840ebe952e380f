// What a claim (nfs/session/opens.h) is on the wire; included by .cc files of this folder.
#pragma once

#include "nfs/client/protocol/error.h"
#include "nfs/client/v4/operations.h"
#include "rpc/credentials.h"

namespace stag::nfs::client::nfs4 {

inline v4::LOCK4args lock_of(const session::Opens::Claim& claim) {
  v4::LOCK4args args;
  args.locktype = claim.lock.mode == state::RangeMode::Exclusive ? v4::WRITE_LT : v4::READ_LT;
  args.reclaim = true;
  args.offset = claim.lock.range.first;
  args.length = length_of(claim.lock.range);
  return args;
}

// What a claim has opened, in a COMPOUND of SEQUENCE, PUTFH and the claim; null: nothing.
inline v4::OPEN4res* opened_by(session::Opens::Claim::Kind kind, Reply& reply) {
  using Kind = session::Opens::Claim::Kind;
  const bool opens = kind == Kind::Reclaim || kind == Kind::Reopen;
  return opens ? reply.get(2, &OpResult::opopen) : nullptr;
}

// The stateid that a claim gave, in a COMPOUND of SEQUENCE, PUTFH and the claim; nullopt where the
// server contradicts itself.
inline std::optional<v4::stateid4> stateid_of(session::Opens::Claim::Kind kind, Reply& reply) {
  using Kind = session::Opens::Claim::Kind;
  constexpr std::size_t kPlace = 2;
  if (kind == Kind::Free) return v4::stateid4{};
  if (kind == Kind::ReclaimLock) {
    auto* locked = reply.get(kPlace, &OpResult::oplock);
    return locked == nullptr ? std::nullopt : std::optional(locked->resok4().lock_stateid);
  }
  auto* opened = reply.get(kPlace, &OpResult::opopen);
  return opened == nullptr ? std::nullopt : std::optional(opened->resok4().stateid);
}

// A claim is made for its holder, also while others wait: these go on where it failed for a reason
// of the holder's own, a ticket that has run out or that the server takes no more.
inline bool is_of_holder(const rpc::CallError& error) {
  if (error.kind == rpc::CallError::Kind::Answered)
    return error.status.reply == oncrpc::ReplyStat::MSG_DENIED &&
           error.status.reject == oncrpc::RejectStat::AUTH_ERROR;
  return error.reason == Reason::GssNoTicket || error.reason == Reason::GssNoKeytab ||
         error.reason == Reason::GssTicketExpired || error.reason == Reason::GssServerRefused;
}

// What becomes of a claim that failed. `holder`: the user whose claim it is, `caller`: the one that
// waits for it, and is told where these are the same.
enum class Unmade : std::uint8_t {
  Told,     // the caller's call fails
  PutOff,   // others come first
  Refused,  // as if the server had refused it
};
inline Unmade unmade(const Error& error, const rpc::Credentials& holder,
                     const rpc::Credentials& caller) {
  const bool of_other = error.kind == Error::Kind::Call && holder.security() != nullptr &&
                        holder.security() != caller.security();
  if (!of_other) return Unmade::Told;
  if (error.call.reason == Reason::GssKdcUnreachable) return Unmade::PutOff;
  return is_of_holder(error.call) ? Unmade::Refused : Unmade::Told;
}

}  // namespace stag::nfs::client::nfs4
