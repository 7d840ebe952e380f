// The three versions of NLM as traits, so that what they have in common is written once. 1 and 3
// share their messages, 4 has 64-bit ranges and more statuses (RFC 1813 6.1.4).
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "nfs/lock/lock_manager.h"
#include "nfs/proto/nlm.h"

namespace stag::nfs::lock {

struct Nlm1 {
  using Stats = nlm::nlm_stats;
  using TestArgs = nlm::nlm_testargs;
  using TestRes = nlm::nlm_testres;
  using LockArgs = nlm::nlm_lockargs;
  using CancelArgs = nlm::nlm_cancargs;
  using UnlockArgs = nlm::nlm_unlockargs;
  using Res = nlm::nlm_res;
  using Test = nlm::NLM_TEST;
  using Lock = nlm::NLM_LOCK;
  using Cancel = nlm::NLM_CANCEL;
  using Unlock = nlm::NLM_UNLOCK;
  using Granted = nlm::NLM_GRANTED;
  using TestMsg = nlm::NLM_TEST_MSG;
  using LockMsg = nlm::NLM_LOCK_MSG;
  using CancelMsg = nlm::NLM_CANCEL_MSG;
  using UnlockMsg = nlm::NLM_UNLOCK_MSG;
  using GrantedMsg = nlm::NLM_GRANTED_MSG;
  using TestAnswer = nlm::NLM_TEST_RES;
  using LockAnswer = nlm::NLM_LOCK_RES;
  using CancelAnswer = nlm::NLM_CANCEL_RES;
  using UnlockAnswer = nlm::NLM_UNLOCK_RES;
  using GrantedAnswer = nlm::NLM_GRANTED_RES;
};

struct Nlm3 : Nlm1 {
  using ShareRes = nlm::nlm_shareres;
  using Test = nlm::NLM3_TEST;
  using Lock = nlm::NLM3_LOCK;
  using Cancel = nlm::NLM3_CANCEL;
  using Unlock = nlm::NLM3_UNLOCK;
  using Granted = nlm::NLM3_GRANTED;
  using TestMsg = nlm::NLM3_TEST_MSG;
  using LockMsg = nlm::NLM3_LOCK_MSG;
  using CancelMsg = nlm::NLM3_CANCEL_MSG;
  using UnlockMsg = nlm::NLM3_UNLOCK_MSG;
  using GrantedMsg = nlm::NLM3_GRANTED_MSG;
  using TestAnswer = nlm::NLM3_TEST_RES;
  using LockAnswer = nlm::NLM3_LOCK_RES;
  using CancelAnswer = nlm::NLM3_CANCEL_RES;
  using UnlockAnswer = nlm::NLM3_UNLOCK_RES;
  using GrantedAnswer = nlm::NLM3_GRANTED_RES;
  using Share = nlm::NLM3_SHARE;
  using Unshare = nlm::NLM3_UNSHARE;
  using UnmonitoredLock = nlm::NLM3_NM_LOCK;
  using FreeAll = nlm::NLM3_FREE_ALL;
};

struct Nlm4 {
  using Stats = nlm::nlm4_stats;
  using TestArgs = nlm::nlm4_testargs;
  using TestRes = nlm::nlm4_testres;
  using LockArgs = nlm::nlm4_lockargs;
  using CancelArgs = nlm::nlm4_cancargs;
  using UnlockArgs = nlm::nlm4_unlockargs;
  using Res = nlm::nlm4_res;
  using ShareRes = nlm::nlm4_shareres;
  using Test = nlm::NLMPROC4_TEST;
  using Lock = nlm::NLMPROC4_LOCK;
  using Cancel = nlm::NLMPROC4_CANCEL;
  using Unlock = nlm::NLMPROC4_UNLOCK;
  using Granted = nlm::NLMPROC4_GRANTED;
  using TestMsg = nlm::NLMPROC4_TEST_MSG;
  using LockMsg = nlm::NLMPROC4_LOCK_MSG;
  using CancelMsg = nlm::NLMPROC4_CANCEL_MSG;
  using UnlockMsg = nlm::NLMPROC4_UNLOCK_MSG;
  using GrantedMsg = nlm::NLMPROC4_GRANTED_MSG;
  using TestAnswer = nlm::NLMPROC4_TEST_RES;
  using LockAnswer = nlm::NLMPROC4_LOCK_RES;
  using CancelAnswer = nlm::NLMPROC4_CANCEL_RES;
  using UnlockAnswer = nlm::NLMPROC4_UNLOCK_RES;
  using GrantedAnswer = nlm::NLMPROC4_GRANTED_RES;
  using Share = nlm::NLMPROC4_SHARE;
  using Unshare = nlm::NLMPROC4_UNSHARE;
  using UnmonitoredLock = nlm::NLMPROC4_NM_LOCK;
  using FreeAll = nlm::NLMPROC4_FREE_ALL;
};

// A copy of a netobj: the received one refers to memory of its Call.
inline nlm::netobj own(const nlm::netobj& received) {
  return Rope::copy_of(received.flatten().bytes());
}
inline std::string string_of(const nlm::netobj& object) {
  return std::string(text_of(object.flatten().bytes()));
}
inline nlm::netobj netobj_of(std::string_view bytes) {
  return Rope::copy_of(bytes_of(bytes));
}

inline void set_status(nlm::nlm4_stats& to, nlm::nlm4_stats status) {
  to = status;
}
// Versions 1 and 3 know the first statuses only. Errors that a retry does not cure become
// LCK_DENIED_NOLOCKS: LCK_DENIED would make a client retry for ever.
inline void set_status(nlm::nlm_stats& to, nlm::nlm4_stats status) {
  to = status <= nlm::NLM4_DEADLCK ? static_cast<nlm::nlm_stats>(status) : nlm::LCK_DENIED_NOLOCKS;
}

// In a version with 32 bits an offset beyond them becomes the last one that they can express.
template <class Holder>
void describe(const Held& held, Holder& to) {
  using Offset = decltype(to.l_offset);
  constexpr std::uint64_t kMost = std::numeric_limits<Offset>::max();
  to.exclusive = held.exclusive;
  to.svid = held.owner->svid;
  to.oh = netobj_of(held.owner->handle);
  to.l_offset = static_cast<Offset>(std::min(held.range.first, kMost));
  const std::uint64_t length = held.range.last - held.range.first + 1;
  const bool to_the_end = held.range.last == Range::kEnd || length > kMost;
  to.l_len = to_the_end ? 0 : static_cast<Offset>(length);
}

// The lock as the client described it when it asked.
template <class Args>
void describe(const PendingGrant& pending, Args& to) {
  const LockRequest& request = pending.grant.request;
  using Offset = decltype(to.alock.l_offset);
  to.exclusive = request.exclusive;
  to.alock.caller_name = request.owner->client.name;
  to.alock.fh = netobj_of(pending.params.file_handle);
  to.alock.oh = netobj_of(request.owner->handle);
  to.alock.svid = request.owner->svid;
  to.alock.l_offset = static_cast<Offset>(pending.params.offset);
  to.alock.l_len = static_cast<Offset>(pending.params.length);
}

}  // namespace stag::nfs::lock
