// A delegation that was recalled and kept, and that its holder has lost a lease later (RFC 8881
// 10.4.5, RFC 7530 10.4.6). All cases ask one client, which waits once.
#include "conform/nfs4/cases.h"
#include "conform/nfs4/elapsed.h"
#include "conform/nfs4/lease.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

constexpr std::initializer_list<nfsstat4> kOfRevoked = {NFS4ERR_DELEG_REVOKED,
                                                        NFS4ERR_ADMIN_REVOKED, NFS4ERR_EXPIRED};
// RFC 7530 10.4.6, 13.1.5.
constexpr std::initializer_list<nfsstat4> kOfRevokedV40 = {NFS4ERR_EXPIRED, NFS4ERR_ADMIN_REVOKED,
                                                           NFS4ERR_BAD_STATEID};

// What a client finds that was asked for its delegation and has kept it.
Task<Verdict> finds_it_revoked(Scene& holder) {
  const auto flags = co_await status_flags(holder.client);
  if (!flags) co_return Verdict::fail("SEQUENCE of the former holder failed");
  if ((*flags & SEQ4_STATUS_RECALLABLE_STATE_REVOKED) == 0)
    co_return Verdict::fail("SEQUENCE does not say SEQ4_STATUS_RECALLABLE_STATE_REVOKED");
  const Reply back = co_await give_back(holder);
  Verdict verdict = expect(back, kOfRevoked, "DELEGRETURN of what was revoked");
  if (verdict.outcome != Outcome::Pass) co_return verdict;
  Steps freeing;
  freeing.push_back(free_stateid(kDelegation));
  const Reply freed = co_await send(holder, freeing);
  if (!freed.ok()) co_return expect(freed, {NFS4_OK}, "FREE_STATEID of what was revoked");
  const auto later = co_await status_flags(holder.client);
  if (!later || (*later & SEQ4_STATUS_RECALLABLE_STATE_REVOKED) != 0)
    co_return Verdict::fail("SEQ4_STATUS_RECALLABLE_STATE_REVOKED stays after FREE_STATEID");
  co_return verdict;
}

Task<Verdict> is_revoked(Scene& scene) {
  Verdict verdict = co_await scene.elapsed->revoke(scene);
  if (verdict.outcome != Outcome::Pass) co_return verdict;
  co_return co_await finds_it_revoked(scene.elapsed->holder());
}

Task<Verdict> is_revoked_v40(Scene& scene) {
  Verdict verdict = co_await scene.elapsed->revoke(scene);
  if (verdict.outcome != Outcome::Pass) co_return verdict;
  const Reply back = co_await give_back(scene.elapsed->holder());
  co_return expect(back, kOfRevokedV40, "DELEGRETURN of what was revoked");
}

Task<Verdict> is_used_in_vain(Scene& scene, MakeSteps make) {
  Verdict verdict = co_await scene.elapsed->revoke(scene);
  if (verdict.outcome != Outcome::Pass) co_return verdict;
  const Steps steps = make();
  const nfs_opnum4 operation = steps.back().number;
  const Reply reply = co_await send(scene.elapsed->holder(), steps);
  if (reply.answered() && reply.results.status == NFS4ERR_NOTSUPP && optional(operation))
    co_return Verdict::skip("the server does not offer " + name_of(operation));
  co_return expect(reply, kOfRevoked, "by the stateid of what was revoked");
}

Script slow(Script script, Statuses allowed) {
  script.slow = true;
  script.expect = std::move(allowed);
  return script;
}

// What RFC 8881 10.4.5 has instead of the success of an operation.
Script revoked(nfs_opnum4 operation, Minors minors, MakeSteps make) {
  Script script = asked(
      operation, NFS4ERR_DELEG_REVOKED,
      "by the stateid of a delegation that was recalled a lease ago", minors,
      [make](Scene& scene) { return is_used_in_vain(scene, make); }, "8881 10.4.5");
  return slow(std::move(script), kOfRevoked);
}

Scripts uses() {
  Scripts all;
  const auto add = [&all](nfs_opnum4 operation, Minors minors) {
    all.push_back(revoked(operation, minors, [operation] {
      return Steps{at("f"), by_stateid(operation, kDelegation)};
    }));
  };
  for (const nfs_opnum4 operation : {OP_READ, OP_WRITE, OP_SETATTR}) add(operation, kSessions);
  for (const nfs_opnum4 operation : {OP_ALLOCATE, OP_DEALLOCATE, OP_SEEK, OP_READ_PLUS,
                                     OP_IO_ADVISE, OP_WRITE_SAME, OP_COPY_NOTIFY})
    add(operation, k42);
  const Step under = open({.name = "f",
                           .access = kRead,
                           .owner = "second",
                           .as = "second",
                           .claim = CLAIM_DELEGATE_CUR,
                           .delegation = kDelegation});
  all.push_back(revoked(OP_OPEN, kSessions, [under] { return Steps{own(), under}; }));
  all.push_back(revoked(OP_COPY, k42, [] {
    return Steps{at("f"), savefh(), at("h"), copy(kDelegation, "h", 0, 10)};
  }));
  all.push_back(revoked(OP_CLONE, k42, [] {
    return Steps{at("f"), savefh(), at("h"), clone(kDelegation, "h", 0, 0)};
  }));
  return all;
}

// It takes from the others what they ask for, so it comes after them.
Script given_back_late(Minors minors, std::function<Task<Verdict>(Scene&)> run, Statuses allowed,
                       std::string section) {
  Script script = asked(OP_DELEGRETURN, allowed.front(), "of one that was recalled a lease ago",
                        minors, std::move(run), std::move(section));
  script.last = true;
  return slow(std::move(script), std::move(allowed));
}

}  // namespace

Scripts revoked_cases() {
  Scripts all = uses();
  all.push_back(given_back_late(k40, is_revoked_v40, kOfRevokedV40, "7530 10.4.6"));
  all.push_back(given_back_late(kSessions, is_revoked, kOfRevoked, "8881 10.4.5"));
  return all;
}

}  // namespace stag::conform::nfs4
