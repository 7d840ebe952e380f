// Delegations that a client asks for by operations of their own, which a server need not offer (RFC
// 8881 18.39, 18.49).
#include "conform/nfs4/cases.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

Step want(std::uint32_t wish, deleg_claim4 claim = {}) {
  return {OP_WANT_DELEGATION, [=](Scene&, Op& to) { to.opwant_delegation() = {wish, claim}; }};
}

deleg_claim4 of_current() {
  deleg_claim4 claim;
  claim.dc_claim = CLAIM_FH;
  return claim;
}

deleg_claim4 of_before() {
  deleg_claim4 claim;
  claim.dc_claim = CLAIM_PREVIOUS;
  claim.dc_delegate_type() = OPEN_DELEGATE_READ;
  return claim;
}

}  // namespace

Scripts delegation_wish_cases() {
  constexpr std::uint32_t kWish = OPEN4_SHARE_ACCESS_WANT_READ_DELEG, kNoWish = 0xff0000;
  const Step folder = sample(OP_GET_DIR_DELEGATION);
  return {
      {.note = "of a folder",
       .minors = kSessions,
       .steps = {at("dir"), folder},
       .expect = {NFS4_OK, NFS4ERR_DIRDELEG_UNAVAIL}},
      {.note = "of a file",
       .minors = kSessions,
       .steps = {at("file"), folder},
       .expect = {NFS4ERR_NOTDIR, NFS4ERR_DIRDELEG_UNAVAIL}},
      {.note = "of a folder of mode 0700 of another user",
       .minors = kSessions,
       .steps = {at("private"), folder},
       .expect = {NFS4ERR_ACCESS, NFS4ERR_DIRDELEG_UNAVAIL, NFS4_OK},
       .stranger = true},
      {.note = "of a file", .minors = kSessions, .steps = {at("file"), want(kWish, of_current())}},
      {.note = "of a folder",
       .minors = kSessions,
       .steps = {at("dir"), want(kWish, of_current())},
       .expect = {NFS4ERR_WRONG_TYPE, NFS4ERR_INVAL}},
      {.note = "a wish that no RFC knows",
       .minors = kSessions,
       .steps = {at("file"), want(kNoWish, of_current())},
       .expect = {NFS4ERR_INVAL}},
      {.note = "a reclaim after the grace period",
       .minors = kSessions,
       .steps = {at("file"), want(kWish, of_before())},
       .expect = {NFS4ERR_NO_GRACE, NFS4ERR_RECLAIM_BAD}},
  };
}

}  // namespace stag::conform::nfs4
