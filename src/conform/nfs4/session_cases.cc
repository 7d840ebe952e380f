// SEQUENCE and slots, and what the limits of a session mean (RFC 8881 2.10.6, 18.46).
#include <fmt/format.h>

#include "conform/nfs4/cases.h"
#include "conform/nfs4/limited_session.h"
#include "nfs/proto/nfs4.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

Operations sequence_and(const SEQUENCE4args& args, Operations more = {}) {
  more.insert(more.begin(), op(OP_SEQUENCE, &Op::opsequence, args));
  return more;
}

// A SEQUENCE that differs from the right one.
Task<Reply> altered(Scene& scene, std::function<void(SEQUENCE4args&)> alter) {
  SEQUENCE4args args = scene.client.sequence();
  alter(args);
  Operations operations = sequence_and(args);
  operations.push_back(op(OP_PUTROOTFH));
  const Reply reply = co_await scene.client.bare(std::move(operations));
  scene.client.note(reply);
  co_return reply;
}

Task<Verdict> of_no_session(Scene& scene) {
  const Reply reply =
      co_await altered(scene, [](SEQUENCE4args& args) { args.sa_sessionid.fill(std::byte{0x5a}); });
  co_return expect(reply, {NFS4ERR_BADSESSION}, "a session ID that nobody gave");
}

Task<Verdict> of_no_slot(Scene& scene) {
  const Reply reply = co_await altered(scene, [](SEQUENCE4args& args) { args.sa_slotid = 5000; });
  co_return expect(reply, {NFS4ERR_BADSLOT}, "slot 5000");
}

Task<Verdict> of_high_slot(Scene& scene) {
  SEQUENCE4args args = scene.client.sequence();
  args.sa_slotid = 1;
  args.sa_sequenceid = 1;
  args.sa_highest_slotid = 0;
  const Reply reply = co_await scene.client.bare(sequence_and(args));
  co_return expect(reply, {NFS4ERR_BAD_HIGH_SLOT, NFS4_OK}, "a slot above the highest one");
}

Task<Verdict> ahead(Scene& scene) {
  const Reply reply = co_await altered(scene, [](SEQUENCE4args& args) { args.sa_sequenceid += 5; });
  co_return expect(reply, {NFS4ERR_SEQ_MISORDERED}, "a sequence ID five ahead");
}

Task<Verdict> behind(Scene& scene) {
  for (int i = 0; i < 2; ++i) co_await altered(scene, [](SEQUENCE4args&) {});
  const Reply reply = co_await altered(scene, [](SEQUENCE4args& args) { args.sa_sequenceid -= 2; });
  co_return expect(reply, {NFS4ERR_SEQ_MISORDERED}, "a sequence ID two behind");
}

// A COMPOUND and its retry, which has the same sequence ID.
struct Twice {
  Reply first, second;
};
Task<Twice> twice(Scene& scene, bool cachethis, Operations once, Operations again) {
  SEQUENCE4args args = scene.client.sequence();
  args.sa_cachethis = cachethis;
  Twice both;
  both.first = co_await scene.client.bare(sequence_and(args, std::move(once)));
  scene.client.note(both.first);
  both.second = co_await scene.client.bare(sequence_and(args, std::move(again)));
  co_return both;
}

// Whether both drew one reply, but for what SEQUENCE says of the session, which may have changed.
bool same_replies(const Twice& both) {
  COMPOUND4res first = both.first.results, second = both.second.results;
  for (COMPOUND4res* each : {&first, &second}) {
    if (each->resarray.empty() || each->resarray.front().resop != OP_SEQUENCE) return false;
    SEQUENCE4res& sequence = each->resarray.front().opsequence();
    if (sequence.sr_status != NFS4_OK) return false;
    SEQUENCE4resok& ok = sequence.sr_resok4();
    ok.sr_highest_slotid = ok.sr_target_highest_slotid = ok.sr_status_flags = 0;
  }
  return first == second;
}

Operations making(Scene& scene, const std::string& name) {
  Operations operations;
  operations.push_back(op(OP_PUTFH, &Op::opputfh, {scene.handle("own")}));
  operations.push_back(op(OP_CREATE));
  CREATE4args& args = operations.back().opcreate();
  args.objtype.type = NF4DIR;
  args.objname = name;
  args.createattrs = mode_is(0755);
  return operations;
}

Task<Verdict> same_reply(Scene& scene) {
  const Twice both = co_await twice(scene, true, making(scene, "x"), making(scene, "x"));
  if (!both.first.ok()) co_return Verdict::fail("CREATE: " + both.first.text());
  if (!both.second.ok())
    co_return Verdict::fail("the retry of a CREATE drew " + both.second.text() +
                            ", asked for the reply of before");
  co_return same_replies(both) ? Verdict::pass()
                               : Verdict::fail("the retry drew another reply than the call");
}

Task<Verdict> uncached(Scene& scene) {
  const Twice both = co_await twice(scene, false, making(scene, "x"), making(scene, "x"));
  if (!both.first.ok()) co_return Verdict::fail("CREATE: " + both.first.text());
  co_return expect(both.second, {NFS4ERR_RETRY_UNCACHED_REP, NFS4_OK},
                   "the retry of a CREATE without sa_cachethis");
}

// RFC 8881 2.10.6.1.3.1: a server that does not notice it answers with the reply that it has kept.
Task<Verdict> false_retry(Scene& scene) {
  Operations other;
  other.push_back(op(OP_PUTROOTFH));
  const Twice both = co_await twice(scene, true, making(scene, "x"), std::move(other));
  if (!both.first.ok()) co_return Verdict::fail("CREATE: " + both.first.text());
  if (same_replies(both)) co_return Verdict::pass("the reply of before came");
  co_return expect(both.second, {NFS4ERR_SEQ_FALSE_RETRY},
                   "another COMPOUND with the sequence ID of before");
}

Task<Verdict> not_first(Scene& scene) {
  Operations operations;
  operations.push_back(op(OP_PUTROOTFH));
  operations.push_back(op(OP_SEQUENCE, &Op::opsequence, scene.client.sequence()));
  Operations second = sequence_and(scene.client.sequence());
  second.push_back(op(OP_SEQUENCE, &Op::opsequence, scene.client.sequence()));
  const Reply outside = co_await scene.client.bare(std::move(operations));
  const Verdict first = expect(outside, {NFS4ERR_OP_NOT_IN_SESSION}, "PUTROOTFH before SEQUENCE");
  if (first.outcome != Outcome::Pass) co_return first;
  const Reply inside = co_await scene.client.bare(std::move(second));
  scene.client.note(inside);
  co_return expect(inside, {NFS4ERR_SEQUENCE_POS}, "a second SEQUENCE");
}

Task<Verdict> session_ends_early(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("own"));
  const std::string trouble = co_await client.establish();
  if (!trouble.empty()) co_return Verdict::fail(trouble);
  Operations more;
  more.push_back(op(OP_DESTROY_SESSION, &Op::opdestroy_session, {client.session().csr_sessionid}));
  more.push_back(op(OP_PUTROOTFH));
  const Reply reply = co_await client.bare(sequence_and(client.sequence(), std::move(more)));
  client.note(reply);
  co_await client.leave();
  co_return expect(reply, {NFS4ERR_NOT_ONLY_OP}, "PUTROOTFH behind the end of its session");
}

Task<Verdict> alone(Scene& scene) {
  const Reply reply = co_await scene.client.bare(sequence_and(scene.client.sequence()));
  scene.client.note(reply);
  if (!reply.ok()) co_return expect(reply, {NFS4_OK}, "SEQUENCE alone");
  const SEQUENCE4args sent = scene.client.sequence();
  const SEQUENCE4resok& ok = reply.results.resarray.front().opsequence().sr_resok4();
  const bool same = ok.sr_sessionid == sent.sa_sessionid && ok.sr_slotid == 0 &&
                    ok.sr_sequenceid + 1 == sent.sa_sequenceid;
  co_return same ? Verdict::pass() : Verdict::fail("the reply is of another session or slot");
}

Task<Verdict> too_many(Scene& scene) {
  constexpr std::uint32_t kMost = 4096;
  const std::uint32_t limit = scene.client.session().csr_fore_chan_attrs.ca_maxoperations;
  if (limit >= kMost) co_return Verdict::skip("the session takes more operations than are sent");
  Operations operations = sequence_and(scene.client.sequence());
  while (operations.size() <= limit) operations.push_back(op(OP_PUTROOTFH));
  const Reply reply = co_await scene.client.bare(std::move(operations));
  scene.client.note(reply);
  co_return expect(reply, {NFS4ERR_TOO_MANY_OPS}, fmt::format("{} operations", limit + 1));
}

// What a COMPOUND draws on a session that takes requests, replies and kept replies of these sizes.
Task<Verdict> in_limits(Scene& scene, channel_attrs4 fore, bool cachethis, Operations operations,
                        Statuses allowed) {
  Client other(scene.client.channel(), scene.other_client("limits"));
  const std::string trouble = co_await other.establish();
  if (!trouble.empty()) co_return Verdict::fail(trouble);
  const LimitedSession made = co_await limited_session(other, fore);
  Verdict verdict = made.verdict();
  if (made.trouble.empty()) {
    const Reply reply =
        co_await other.bare(sequence_and(made.sequence(cachethis), std::move(operations)));
    verdict = expect(reply, allowed, "beyond the limit of the session");
    co_await destroy(other, made.session.csr_sessionid);
  }
  co_await other.leave();
  co_return verdict;
}

Operations long_reply(Scene& scene, std::size_t count) {
  Operations operations;
  operations.push_back(op(OP_PUTFH, &Op::opputfh, {scene.handle("file")}));
  for (std::size_t i = 0; i < count; ++i)
    operations.push_back(
        op(OP_GETATTR, &Op::opgetattr, {bits({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 19, 20, 33, 36})}));
  return operations;
}

Task<Verdict> request_too_big(Scene& scene) {
  Operations operations;
  operations.push_back(op(OP_PUTROOTFH));
  operations.push_back(op(OP_LOOKUP, &Op::oplookup, {std::string(4000, 'n')}));
  Statuses allowed{NFS4ERR_REQ_TOO_BIG};
  co_return co_await in_limits(scene, limits_of(1024, 4096, 1024), false, std::move(operations),
                               std::move(allowed));
}

Task<Verdict> reply_too_big(Scene& scene) {
  Statuses allowed{NFS4ERR_REP_TOO_BIG};
  co_return co_await in_limits(scene, limits_of(4096, 1024, 512), false, long_reply(scene, 20),
                               std::move(allowed));
}

Task<Verdict> reply_too_big_to_cache(Scene& scene) {
  Statuses allowed{NFS4ERR_REP_TOO_BIG_TO_CACHE};
  co_return co_await in_limits(scene, limits_of(4096, 8192, 512), true, long_reply(scene, 20),
                               std::move(allowed));
}

Task<Verdict> read_too_big(Scene& scene) {
  Steps steps{own(), open({.name = "long", .create = UNCHECKED4})};
  std::string trouble = co_await prepare(scene, steps);
  Steps writing;
  writing.push_back(at("long"));
  writing.push_back(write("long", 0, std::string(8000, 'x')));
  if (trouble.empty()) trouble = co_await prepare(scene, writing);
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  Operations operations;
  operations.push_back(op(OP_PUTFH, &Op::opputfh, {scene.handle("long")}));
  operations.push_back(op(OP_READ, &Op::opread, {{}, 0, 8000}));
  Statuses allowed{NFS4ERR_REP_TOO_BIG, NFS4_OK};
  co_return co_await in_limits(scene, limits_of(4096, 2048, 512), false, std::move(operations),
                               std::move(allowed));
}

}  // namespace

Scripts session_cases() {
  return {
      asked(OP_SEQUENCE, NFS4_OK, "alone in a COMPOUND", kSessions, alone, "8881 18.46.3"),
      asked(OP_SEQUENCE, NFS4ERR_BADSESSION, "a session that is not there", kSessions,
            of_no_session, "8881 18.46.3"),
      asked(OP_SEQUENCE, NFS4ERR_BADSLOT, "a slot that is not there", kSessions, of_no_slot,
            "8881 18.46.3"),
      asked(OP_SEQUENCE, NFS4ERR_BAD_HIGH_SLOT, "a slot above sa_highest_slotid", kSessions,
            of_high_slot, "8881 18.46.3"),
      asked(OP_SEQUENCE, NFS4ERR_SEQ_MISORDERED, "a sequence ID that is ahead", kSessions, ahead,
            "8881 2.10.6.1"),
      asked(OP_SEQUENCE, NFS4ERR_SEQ_MISORDERED, "a sequence ID that is behind", kSessions, behind,
            "8881 2.10.6.1"),
      asked(OP_SEQUENCE, NFS4_OK, "a retry draws the reply of before", kSessions, same_reply,
            "8881 2.10.6.1.3"),
      asked(OP_SEQUENCE, NFS4ERR_RETRY_UNCACHED_REP, "a retry of what was not to be kept",
            kSessions, uncached, "8881 2.10.6.1.3"),
      asked(OP_SEQUENCE, NFS4ERR_SEQ_FALSE_RETRY, "another COMPOUND as a retry", kSessions,
            false_retry, "8881 2.10.6.1.3.1"),
      asked(OP_SEQUENCE, NFS4ERR_SEQUENCE_POS, "not at the first place", kSessions, not_first,
            "8881 18.46.3"),
      asked(OP_DESTROY_SESSION, NFS4ERR_NOT_ONLY_OP,
            "of the COMPOUND's own session, not at the end", kSessions, session_ends_early,
            "8881 18.37.3"),
      asked(OP_SEQUENCE, NFS4ERR_TOO_MANY_OPS, "more operations than the session takes", kSessions,
            too_many, "8881 18.46.3"),
      asked(OP_SEQUENCE, NFS4ERR_REQ_TOO_BIG, "a longer COMPOUND than the session takes", kSessions,
            request_too_big, "8881 2.10.6.4"),
      asked(OP_GETATTR, NFS4ERR_REP_TOO_BIG, "more results than the session takes", kSessions,
            reply_too_big, "8881 2.10.6.4"),
      asked(OP_SEQUENCE, NFS4ERR_REP_TOO_BIG_TO_CACHE, "more results than a slot keeps", kSessions,
            reply_too_big_to_cache, "8881 2.10.6.4"),
      asked(OP_READ, NFS4ERR_REP_TOO_BIG, "more data than the session takes", kSessions,
            read_too_big, "8881 2.10.6.4"),
  };
}

}  // namespace stag::conform::nfs4
