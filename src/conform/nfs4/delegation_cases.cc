// Delegations: what their holder does with them (RFC 8881 10.4, 18.6).
#include "conform/nfs4/cases.h"
#include "conform/nfs4/delegation_holder.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

using OnDelegation = Task<Verdict> (*)(Scene& holder);

Task<Verdict> gives_back(Scene& holder) {
  const Reply reply = co_await give_back(holder);
  co_return expect(reply, {NFS4_OK}, "DELEGRETURN");
}

Task<Verdict> gives_back_twice(Scene& holder) {
  const Reply first = co_await give_back(holder);
  if (!first.ok()) co_return expect(first, {NFS4_OK}, "DELEGRETURN");
  const Reply second = co_await give_back(holder);
  co_return expect(second, {NFS4ERR_BAD_STATEID}, "a delegation that was given back");
}

Task<Verdict> opens_under_it(Scene& holder) {
  Steps steps;
  steps.push_back(own());
  steps.push_back(open({.name = "f",
                        .access = kRead,
                        .owner = "second",
                        .as = "g",
                        .claim = CLAIM_DELEGATE_CUR,
                        .delegation = kDelegation}));
  const std::string trouble = co_await prepare(holder, std::move(steps));
  const Reply back = co_await give_back(holder);
  if (!trouble.empty()) co_return Verdict::fail(trouble);
  co_return expect(back, {NFS4_OK}, "DELEGRETURN");
}

Script held(nfs_opnum4 operation, nfsstat4 status, std::string note, OnDelegation use) {
  const DelegationUse only_holder = [use](Scene&, Scene& holder) { return use(holder); };
  return asked(operation, status, std::move(note), kAll,
               [only_holder](Scene& scene) { return with_delegation(scene, only_holder); });
}

}  // namespace

Scripts delegation_cases() {
  return {
      held(OP_DELEGRETURN, NFS4_OK, "a delegation to read", gives_back),
      held(OP_DELEGRETURN, NFS4ERR_BAD_STATEID, "for the second time", gives_back_twice),
      held(OP_OPEN, NFS4_OK, "of a file that is delegated to this client", opens_under_it),
  };
}

}  // namespace stag::conform::nfs4
