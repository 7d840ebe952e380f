// What becomes of clients whose lease has run out, when another one wants what they have (RFC 8881
// 8.4.3, RFC 7530 9.6.3). A server may keep it until then, and longer; it may end such a client
// with all that it has, or take from it what is in the way. All cases ask the same clients, which
// are silent once.
#include <fmt/format.h>

#include "conform/nfs4/cases.h"
#include "conform/nfs4/elapsed.h"
#include "conform/nfs4/lease.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

// RFC 8881 8.4.3: the client ID is gone with its sessions.
Task<Verdict> is_gone(Client& client, const Reply& reply) {
  const std::string came = reply.text() + " came, and ";
  Operations creating;
  creating.push_back(op(OP_CREATE_SESSION, &Op::opcreate_session, client.session_args()));
  const Reply made = co_await client.bare(std::move(creating));
  if (made.answered() && made.results.status == NFS4ERR_STALE_CLIENTID)
    co_return Verdict::pass(came + made.text() + " of the client ID");
  co_return Verdict::fail(came + made.text() +
                          " of the client ID, asked for NFS4ERR_STALE_CLIENTID");
}

// The same section: or the session lives, and says that something was lost.
Task<Verdict> says_so_in_its_session(Client& client) {
  constexpr std::uint32_t kRevoked =
      SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED | SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED;
  const auto flags = co_await status_flags(client);
  if (!flags) co_return Verdict::fail("SEQUENCE failed behind it");
  if ((*flags & kRevoked) == 0)
    co_return Verdict::fail("SEQUENCE does not say that state was revoked");
  co_return Verdict::pass(fmt::format("sr_status_flags {:#x}", *flags));
}

bool has_lost_session(const Reply& reply) {
  return reply.answered() && (reply.results.status == NFS4ERR_BADSESSION ||
                              reply.results.status == NFS4ERR_DEADSESSION);
}

Task<Verdict> has_lost_it(Scene& former, Steps steps, Statuses allowed) {
  const nfs_opnum4 operation = steps.back().number;
  const Reply reply = co_await send(former, steps);
  if (former.minor() > 0 && has_lost_session(reply))
    co_return co_await is_gone(former.client, reply);
  if (reply.answered() && reply.results.status == NFS4ERR_NOTSUPP && optional(operation))
    co_return Verdict::skip("the server does not offer " + name_of(operation));
  const Verdict verdict = expect(reply, allowed, "after the lease has run out");
  if (verdict.outcome != Outcome::Pass || former.minor() == 0 || reply.ok()) co_return verdict;
  co_return co_await says_so_in_its_session(former.client);
}

enum class Lost : std::uint8_t { Open, Lock };

Task<Verdict> asks_former(Scene& scene, Lost lost, MakeSteps make, Statuses allowed) {
  Verdict verdict = co_await scene.elapsed->lapse(scene);
  if (verdict.outcome != Outcome::Pass) co_return verdict;
  Scene& former = lost == Lost::Open ? scene.elapsed->opener() : scene.elapsed->locker();
  co_return co_await has_lost_it(former, make(), std::move(allowed));
}

Script expired(Minors minors, Lost lost, std::string note, Statuses allowed, MakeSteps make) {
  Script script = asked(
      make().back().number, NFS4ERR_EXPIRED, std::move(note), minors,
      [lost, make, allowed](Scene& scene) { return asks_former(scene, lost, make, allowed); },
      minors == k40 ? "7530 9.6.3" : "8881 8.4.3");
  script.expect = std::move(allowed);
  script.slow = true;
  return script;
}

// By the stateid of what another client has taken. RFC 7530 9.6.3.1 and 9.6.3.2: what was kept as a
// courtesy and is gone may be a bad stateid.
Script by_lost(nfs_opnum4 operation, Minors minors, Lost lost) {
  const bool by_open = lost == Lost::Open;
  Statuses allowed{NFS4ERR_EXPIRED};
  if (minors == k40) allowed.push_back(NFS4ERR_BAD_STATEID);
  // It is a hint, which a server may as well ignore.
  if (operation == OP_IO_ADVISE) allowed.push_back(NFS4_OK);
  return expired(minors, lost,
                 by_open ? "by an open whose lease ran out before another client took the file"
                         : "by a lock whose lease ran out before another client took the range",
                 std::move(allowed), [operation, by_open] {
                   return by_open ? Steps{at("f"), by_stateid(operation, "f")}
                                  : Steps{at("g"), by_stateid(operation, "l")};
                 });
}

Scripts by_stateid_of_open() {
  Scripts all;
  for (const nfs_opnum4 operation :
       {OP_READ, OP_WRITE, OP_SETATTR, OP_LOCK, OP_OPEN_DOWNGRADE, OP_CLOSE})
    all.push_back(by_lost(operation, k40, Lost::Open));
  for (const nfs_opnum4 operation : {OP_READ, OP_OPEN_DOWNGRADE, OP_CLOSE})
    all.push_back(by_lost(operation, kSessions, Lost::Open));
  return all;
}

Scripts by_stateid_of_lock() {
  Scripts all;
  all.push_back(by_lost(OP_LOCKU, k40, Lost::Lock));
  for (const nfs_opnum4 operation : {OP_WRITE, OP_SETATTR, OP_LOCKU})
    all.push_back(by_lost(operation, kSessions, Lost::Lock));
  for (const nfs_opnum4 operation : {OP_ALLOCATE, OP_DEALLOCATE, OP_SEEK, OP_READ_PLUS,
                                     OP_IO_ADVISE, OP_WRITE_SAME, OP_COPY_NOTIFY})
    all.push_back(by_lost(operation, k42, Lost::Lock));
  const std::string note = "by a lock whose lease ran out before another client took the range";
  all.push_back(expired(kSessions, Lost::Lock, note, {NFS4ERR_EXPIRED}, [] {
    return Steps{at("g"), lock({.held = "l", .offset = 50})};
  }));
  all.push_back(expired(k42, Lost::Lock, note, {NFS4ERR_EXPIRED}, [] {
    return Steps{at("g"), savefh(), at("h"), copy("l", "h", 0, 10)};
  }));
  all.push_back(expired(k42, Lost::Lock, note, {NFS4ERR_EXPIRED}, [] {
    return Steps{at("g"), savefh(), at("h"), clone("l", "h", 0, 0)};
  }));
  return all;
}

// What names the client ID. A server may let the client go on that has lost only what another one
// took.
Script by_client(Minors minors, MakeSteps make) {
  Statuses allowed{NFS4ERR_EXPIRED, NFS4_OK};
  if (minors == k40) allowed.push_back(NFS4ERR_STALE_CLIENTID);
  return expired(minors, Lost::Open,
                 "by a client whose lease ran out before another one took a file",
                 std::move(allowed), std::move(make));
}

Scripts by_client_id() {
  const MakeSteps opening = [] {
    return Steps{own(), open({.name = "later", .create = UNCHECKED4})};
  };
  Scripts all{
      by_client(k40, opening),
      by_client(kSessions, opening),
      by_client(k40,
                [] {
                  return Steps{at("f"), lockt(READ_LT, 0, 10)};
                }),
      by_client(k40,
                [] {
                  return Steps{{OP_RENEW, [](Scene& scene, Op& to) {
                                  to.oprenew() = {scene.client.clientid()};
                                }}};
                }),
      by_client(k40,
                [] {
                  return Steps{{OP_RELEASE_LOCKOWNER, [](Scene& scene, Op& to) {
                                  to.oprelease_lockowner() = {scene.owner("tester")};
                                }}};
                }),
  };
  all.push_back(expired(k40, Lost::Open,
                        "by a client whose lease ran out before another one took a file",
                        {NFS4ERR_EXPIRED, NFS4ERR_BAD_STATEID, NFS4_OK}, [] {
                          return Steps{at("new"), open_confirm("new")};
                        }));
  return all;
}

}  // namespace

Scripts lease_cases() {
  Scripts all = by_stateid_of_open();
  append(all, by_stateid_of_lock());
  append(all, by_client_id());
  return all;
}

}  // namespace stag::conform::nfs4
