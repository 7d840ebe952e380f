// What becomes of a client whose lease has run out, when another one wants what it has (RFC 8881
// 8.4.3, RFC 7530 9.6.3). A server may keep it until then, and longer.
#include <fmt/format.h>

#include "conform/nfs4/cases.h"
#include "conform/nfs4/lease.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

// The case's own client takes "f" away from a silent one.
struct Takeover {
  bool done = false;
  std::string trouble{};
};

Task<bool> takes_over(Scene& scene, Takeover& takeover) {
  Steps opening;
  opening.push_back(own());
  opening.push_back(open({.name = "f", .access = kWrite, .as = "taken"}));
  takeover.trouble = co_await prepare(scene, std::move(opening));
  takeover.done = takeover.trouble.empty();
  const bool denied = takeover.trouble.ends_with("NFS4ERR_SHARE_DENIED") ||
                      takeover.trouble.ends_with("NFS4ERR_DELAY");
  // A server may make it wait until the lease has run out.
  const bool alive = co_await scene.client.alive();
  co_return !denied || !alive;
}

// RFC 7530 9.6.3.1 and 9.6.3.2: NFS4ERR_EXPIRED, or NFS4ERR_BAD_STATEID of one that was kept as a
// courtesy.
Task<Verdict> has_lost_it(Scene& lapsed) {
  Steps reading;
  reading.push_back(at("f"));
  reading.push_back(read("f", 0, 1));
  const Reply reply = co_await send(lapsed, reading);
  Statuses allowed{NFS4ERR_EXPIRED, NFS4ERR_BAD_STATEID};
  co_return expect(reply, allowed, "READ by an open whose lease has run out");
}

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

// The same section: or the session lives, and says what was lost.
Task<Verdict> has_lost_it_in_its_session(Scene& lapsed) {
  constexpr std::uint32_t kRevoked =
      SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED | SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED;
  Operations operations;
  operations.push_back(op(OP_SEQUENCE, &Op::opsequence, lapsed.client.sequence()));
  operations.push_back(op(OP_PUTFH, &Op::opputfh, {lapsed.handle("f")}));
  operations.push_back(op(OP_READ, &Op::opread, {lapsed.stateid("f"), 0, 1}));
  const Reply reply = co_await lapsed.client.bare(std::move(operations));
  lapsed.client.note(reply);
  if (!reply.answered()) co_return Verdict::fail(reply.text());
  const nfsstat4 status = reply.results.status;
  if (status == NFS4ERR_BADSESSION || status == NFS4ERR_DEADSESSION)
    co_return co_await is_gone(lapsed.client, reply);
  const Verdict verdict = expect(reply, {NFS4ERR_EXPIRED}, "READ by an open whose lease ran out");
  if (verdict.outcome != Outcome::Pass) co_return verdict;
  const auto& sequence = reply.results.resarray.front().opsequence().sr_resok4();
  if ((sequence.sr_status_flags & kRevoked) == 0)
    co_return Verdict::fail("SEQUENCE does not say that state was revoked");
  co_return Verdict::pass(fmt::format("sr_status_flags {:#x}", sequence.sr_status_flags));
}

Task<Verdict> take_over_from(Scene& scene, Scene& silent) {
  std::string trouble = co_await silent.client.establish();
  Steps opening;
  opening.push_back(own());
  opening.push_back(open({.name = "f", .deny = OPEN4_SHARE_DENY_WRITE, .create = UNCHECKED4}));
  if (trouble.empty()) trouble = co_await prepare(silent, std::move(opening));
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  const auto lease = co_await lease_time(scene);
  if (!lease) co_return Verdict::fail("lease_time is none, or none that can be waited for");
  Takeover takeover;
  const bool over = co_await wait_for_lease(
      scene, *lease, [&scene, &takeover] { return takes_over(scene, takeover); });
  if (over && !takeover.done) co_return Verdict::fail("OPEN of the file: " + takeover.trouble);
  if (!over)
    co_return Verdict::fail(
        fmt::format("{} still, of what a client has that is silent for twice "
                    "the lease of {} s",
                    takeover.trouble, lease->count()));
  if (scene.minor() == 0) co_return co_await has_lost_it(silent);
  co_return co_await has_lost_it_in_its_session(silent);
}

Task<Verdict> expires(Scene& scene) {
  const Handles none;
  Client client(scene.client.channel(), scene.other_client("silent"));
  Scene silent(client, none, scene.label + " silent");
  silent.handles["own"] = scene.handle("own");
  Verdict verdict = co_await take_over_from(scene, silent);
  co_await client.leave();
  co_return verdict;
}

Script expired(Minors minors, std::string section) {
  Script script = asked(OP_READ, NFS4ERR_EXPIRED,
                        "by an open whose lease ran out before another client took the file",
                        minors, expires, std::move(section));
  script.slow = true;
  return script;
}

}  // namespace

Scripts lease_cases() {
  return {expired(k40, "7530 9.6.3"), expired(kSessions, "8881 8.4.3")};
}

}  // namespace stag::conform::nfs4
