// EXCHANGE_ID, CREATE_SESSION and what ends them, BIND_CONN_TO_SESSION, BACKCHANNEL_CTL,
// TEST_STATEID, FREE_STATEID, RECLAIM_COMPLETE (RFC 8881 18.33-38, 18.48, 18.50-51).
#include <fmt/format.h>

#include "conform/nfs4/cases.h"
#include "conform/nfs4/steps.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

template <class Args>
Task<Reply> one(Client& client, nfs_opnum4 number, Args& (Op::*arguments)(),
                std::type_identity_t<Args> value) {
  Operations operations;
  operations.push_back(op(number, arguments, std::move(value)));
  return client.bare(std::move(operations));
}

Task<Reply> exchange(Client& client, std::function<void(EXCHANGE_ID4args&)> alter = {}) {
  EXCHANGE_ID4args args = client.owner_args();
  if (alter) alter(args);
  return one(client, OP_EXCHANGE_ID, &Op::opexchange_id, std::move(args));
}

Task<Verdict> gives_an_id(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("own"));
  const Reply reply = co_await exchange(client);
  if (!reply.ok()) co_return expect(reply, {NFS4_OK}, "EXCHANGE_ID");
  const auto& ok = reply.results.resarray.front().opexchange_id().eir_resok4();
  if ((ok.eir_flags & EXCHGID4_FLAG_CONFIRMED_R) != 0)
    co_return Verdict::fail("a new client ID is confirmed");
  co_return Verdict::pass();
}

Task<Verdict> unknown_flags(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("own"));
  const Reply reply =
      co_await exchange(client, [](EXCHANGE_ID4args& args) { args.eia_flags = 0x00800000; });
  co_return expect(reply, {NFS4ERR_INVAL}, "flags that no RFC knows");
}

Task<Verdict> confirmed_flag(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("own"));
  const Reply reply = co_await exchange(
      client, [](EXCHANGE_ID4args& args) { args.eia_flags = EXCHGID4_FLAG_CONFIRMED_R; });
  co_return expect(reply, {NFS4ERR_INVAL}, "EXCHGID4_FLAG_CONFIRMED_R from a client");
}

Task<Verdict> update_of_none(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("own"));
  const Reply reply = co_await exchange(
      client, [](EXCHANGE_ID4args& args) { args.eia_flags = EXCHGID4_FLAG_UPD_CONFIRMED_REC_A; });
  co_return expect(reply, {NFS4ERR_NOENT}, "an update of a client that is not there");
}

Task<Verdict> update_of_another(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("own"));
  const std::string trouble = co_await client.establish();
  if (!trouble.empty()) co_return Verdict::fail(trouble);
  const Reply reply = co_await exchange(client, [](EXCHANGE_ID4args& args) {
    args.eia_flags = EXCHGID4_FLAG_UPD_CONFIRMED_REC_A;
    args.eia_clientowner.co_verifier.fill(std::byte{0x77});
  });
  co_await client.leave();
  co_return expect(reply, {NFS4ERR_NOT_SAME}, "an update with another verifier");
}

// RFC 8881 18.35: what implements the client is told in UTF-8.
Task<Verdict> odd_implementation(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("own"));
  const Reply reply = co_await exchange(client, [](EXCHANGE_ID4args& args) {
    args.eia_client_impl_id = {{"a domain\xff", std::string("a\0name", 6), {}}};
  });
  const Statuses allowed{NFS4ERR_BADCHAR, NFS4ERR_INVAL, NFS4_OK};
  co_return expect(reply, allowed, "names that are no UTF-8");
}

Task<Verdict> binds_nowhere(Scene& scene) {
  BIND_CONN_TO_SESSION4args args{scene.client.session().csr_sessionid, CDFC4_FORE, false};
  args.bctsa_dir = static_cast<channel_dir_from_client4>(9);
  const Reply reply =
      co_await one(scene.client, OP_BIND_CONN_TO_SESSION, &Op::opbind_conn_to_session, args);
  if (reply.garbage()) co_return Verdict::pass("GARBAGE_ARGS came");
  const Statuses allowed{NFS4ERR_INVAL, NFS4ERR_BADXDR};
  co_return expect(reply, allowed, "a direction that no RFC knows");
}

Task<Verdict> creates_a_session(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("own"));
  const std::string trouble = co_await client.establish();
  if (!trouble.empty()) co_return Verdict::fail(trouble);
  const channel_attrs4 given = client.session().csr_fore_chan_attrs;
  const channel_attrs4 asked = client.session_args().csa_fore_chan_attrs;
  co_await client.leave();
  const bool within = given.ca_maxrequestsize <= asked.ca_maxrequestsize &&
                      given.ca_maxresponsesize <= asked.ca_maxresponsesize &&
                      given.ca_maxrequests <= asked.ca_maxrequests && given.ca_maxrequests > 0;
  co_return within ? Verdict::pass()
                   : Verdict::fail("a limit of the session is above what was asked for");
}

Task<Verdict> session_of_none(Scene& scene) {
  CREATE_SESSION4args args = scene.client.session_args();
  args.csa_clientid += kOfNobody;
  const Reply reply =
      co_await one(scene.client, OP_CREATE_SESSION, &Op::opcreate_session, std::move(args));
  co_return expect(reply, {NFS4ERR_STALE_CLIENTID}, "a client ID that nobody gave");
}

Task<Verdict> session_misordered(Scene& scene) {
  CREATE_SESSION4args args = scene.client.session_args();
  args.csa_sequence += 7;
  const Reply reply =
      co_await one(scene.client, OP_CREATE_SESSION, &Op::opcreate_session, std::move(args));
  co_return expect(reply, {NFS4ERR_SEQ_MISORDERED}, "csa_sequence seven ahead");
}

Task<Verdict> session_of_flags(Scene& scene) {
  CREATE_SESSION4args args = scene.client.session_args();
  args.csa_flags = 0x1000;
  const Reply reply =
      co_await one(scene.client, OP_CREATE_SESSION, &Op::opcreate_session, std::move(args));
  co_return expect(reply, {NFS4ERR_INVAL}, "flags that no RFC knows");
}

Task<Verdict> session_too_small(Scene& scene) {
  CREATE_SESSION4args args = scene.client.session_args();
  args.csa_fore_chan_attrs.ca_maxrequestsize = 16;
  args.csa_fore_chan_attrs.ca_maxresponsesize = 16;
  const Reply reply =
      co_await one(scene.client, OP_CREATE_SESSION, &Op::opcreate_session, std::move(args));
  co_return expect(reply, {NFS4ERR_TOOSMALL}, "messages of 16 bytes");
}

Task<Verdict> session_again(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("own"));
  const std::string trouble = co_await client.establish();
  if (!trouble.empty()) co_return Verdict::fail(trouble);
  CREATE_SESSION4args args = client.session_args();
  const Reply first = co_await one(client, OP_CREATE_SESSION, &Op::opcreate_session, args);
  const Reply second = co_await one(client, OP_CREATE_SESSION, &Op::opcreate_session, args);
  Verdict verdict = Verdict::pass();
  if (!first.ok() || !second.ok())
    verdict = expect(first.ok() ? second : first, {NFS4_OK}, "CREATE_SESSION and its retry");
  else if (!(first.results == second.results))
    verdict = Verdict::fail("the retry made another session");
  if (first.ok())
    co_await one(client, OP_DESTROY_SESSION, &Op::opdestroy_session,
                 {first.results.resarray.front().opcreate_session().csr_resok4().csr_sessionid});
  co_await client.leave();
  co_return verdict;
}

Task<Verdict> ends_a_session(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("own"));
  const std::string trouble = co_await client.establish();
  if (!trouble.empty()) co_return Verdict::fail(trouble);
  const Reply reply = co_await one(client, OP_DESTROY_SESSION, &Op::opdestroy_session,
                                   {client.session().csr_sessionid});
  const bool alive = co_await client.alive();
  co_await client.leave();
  if (reply.ok() && alive) co_return Verdict::fail("the session lives on");
  co_return expect(reply, {NFS4_OK}, "DESTROY_SESSION alone in a COMPOUND");
}

// Of a new client, which has nothing to reclaim.
Task<Verdict> completes(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("own"));
  const std::string trouble = co_await client.establish();
  co_await client.leave();
  co_return trouble.empty() ? Verdict::pass() : Verdict::fail(trouble);
}

Task<Verdict> destroys_a_session(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("own"));
  const std::string trouble = co_await client.establish();
  if (!trouble.empty()) co_return Verdict::fail(trouble);
  const sessionid4 session = client.session().csr_sessionid;
  const Reply first = co_await one(client, OP_DESTROY_SESSION, &Op::opdestroy_session, {session});
  const Reply second = co_await one(client, OP_DESTROY_SESSION, &Op::opdestroy_session, {session});
  co_await client.leave();
  if (!first.ok()) co_return expect(first, {NFS4_OK}, "DESTROY_SESSION");
  co_return expect(second, {NFS4ERR_BADSESSION}, "a session that was destroyed");
}

Task<Verdict> destroys_a_client(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("own"));
  const std::string trouble = co_await client.establish();
  if (!trouble.empty()) co_return Verdict::fail(trouble);
  co_await one(client, OP_DESTROY_SESSION, &Op::opdestroy_session,
               {client.session().csr_sessionid});
  const Reply reply =
      co_await one(client, OP_DESTROY_CLIENTID, &Op::opdestroy_clientid, {client.clientid()});
  co_return expect(reply, {NFS4_OK}, "DESTROY_CLIENTID");
}

Task<Verdict> client_is_busy(Scene& scene) {
  const Reply reply = co_await one(scene.client, OP_DESTROY_CLIENTID, &Op::opdestroy_clientid,
                                   {scene.client.clientid()});
  co_return expect(reply, {NFS4ERR_CLIENTID_BUSY}, "a client ID that has a session");
}

Task<Verdict> no_such_client(Scene& scene) {
  const Reply reply = co_await one(scene.client, OP_DESTROY_CLIENTID, &Op::opdestroy_clientid,
                                   {scene.client.clientid() + kOfNobody});
  co_return expect(reply, {NFS4ERR_STALE_CLIENTID}, "a client ID that nobody gave");
}

Task<Verdict> binds(Scene& scene) {
  BIND_CONN_TO_SESSION4args args;
  args.bctsa_sessid = scene.client.session().csr_sessionid;
  args.bctsa_dir = CDFC4_FORE;
  const Reply reply =
      co_await one(scene.client, OP_BIND_CONN_TO_SESSION, &Op::opbind_conn_to_session, args);
  co_return expect(reply, {NFS4_OK}, "the connection of the session itself");
}

// RFC 8881 18.34.3: it is the only operation, also where a session carries the COMPOUND.
Task<Verdict> binds_in_a_session(Scene& scene) {
  BIND_CONN_TO_SESSION4args args{scene.client.session().csr_sessionid, CDFC4_FORE, false};
  Operations operations;
  operations.push_back(op(OP_BIND_CONN_TO_SESSION, &Op::opbind_conn_to_session, args));
  const Reply reply = co_await scene.client.run(std::move(operations));
  co_return expect(reply, {NFS4ERR_NOT_ONLY_OP}, "BIND_CONN_TO_SESSION behind SEQUENCE");
}

Task<Verdict> binds_to_none(Scene& scene) {
  BIND_CONN_TO_SESSION4args args;
  args.bctsa_sessid.fill(std::byte{0x5a});
  args.bctsa_dir = CDFC4_FORE;
  const Reply reply =
      co_await one(scene.client, OP_BIND_CONN_TO_SESSION, &Op::opbind_conn_to_session, args);
  co_return expect(reply, {NFS4ERR_BADSESSION}, "a session that nobody gave");
}

std::string tells_states_apart(Scene&, const COMPOUND4res& results) {
  const auto& codes = results.resarray.back().optest_stateid().tsr_resok4().tsr_status_codes;
  if (codes.size() != 2) return "not one status for each stateid";
  if (codes[0] != NFS4_OK) return "a stateid of an open drew " + name_of(codes[0]);
  return codes[1] == NFS4ERR_BAD_STATEID || codes[1] == NFS4ERR_STALE_STATEID ||
                 codes[1] == NFS4ERR_EXPIRED
             ? ""
             : "a stateid that nobody gave drew " + name_of(codes[1]);
}

Scripts in_a_session() {
  return {
      {.note = "one that is good and one that is not",
       .minors = kSessions,
       .before = {a_file()},
       .steps = {test_stateid({"f", "garbage"})},
       .check = tells_states_apart},
      {.note = "none", .minors = kSessions, .steps = {test_stateid({})}},
      {.note = "of an open",
       .minors = kSessions,
       .before = {a_file()},
       .steps = {free_stateid("f")},
       .expect = {NFS4ERR_LOCKS_HELD}},
      {.note = "of a lock that is held",
       .minors = kSessions,
       .before = {a_file(), a_lock()},
       .steps = {free_stateid("l")},
       .expect = {NFS4ERR_LOCKS_HELD}},
      {.note = "of a lock that was given up",
       .minors = kSessions,
       .before = {a_file(), a_lock(), {at("f"), locku("l")}},
       .steps = {free_stateid("l")},
       .expect = {NFS4_OK, NFS4ERR_BAD_STATEID}},
      {.note = "that nobody gave",
       .minors = kSessions,
       .steps = {free_stateid("garbage")},
       .expect = {NFS4ERR_BAD_STATEID}},
      {.note = "of an earlier time",
       .minors = kSessions,
       .before = {a_file(), a_lock(), {at("f"), locku("l", 0, 5)}},
       .steps = {free_stateid("old l")},
       .expect = {NFS4ERR_OLD_STATEID, NFS4ERR_LOCKS_HELD}},
      {.note = "for the second time",
       .minors = kSessions,
       .steps = {plain(OP_RECLAIM_COMPLETE, &Op::opreclaim_complete, {false})},
       .expect = {NFS4ERR_COMPLETE_ALREADY}},
      {.note = "of one file system, without a filehandle",
       .minors = kSessions,
       .steps = {plain(OP_RECLAIM_COMPLETE, &Op::opreclaim_complete, {true})},
       .expect = {NFS4ERR_NOFILEHANDLE}},
      {.note = "without callbacks",
       .minors = kSessions,
       .steps = {plain(OP_BACKCHANNEL_CTL, &Op::opbackchannel_ctl,
                       {0x40000000, std::vector<callback_sec_parms4>(1)})},
       .expect = {NFS4_OK, NFS4ERR_INVAL, NFS4ERR_NOENT}},
  };
}

}  // namespace

Scripts client_cases() {
  Scripts all = in_a_session();
  append(
      all,
      {
          asked(OP_EXCHANGE_ID, NFS4_OK, "a new client", kSessions, gives_an_id),
          asked(OP_EXCHANGE_ID, NFS4ERR_INVAL, "flags that no RFC knows", kSessions, unknown_flags),
          asked(OP_EXCHANGE_ID, NFS4ERR_INVAL, "the flag of a reply", kSessions, confirmed_flag),
          asked(OP_EXCHANGE_ID, NFS4ERR_NOENT, "an update of no client", kSessions, update_of_none),
          asked(OP_EXCHANGE_ID, NFS4ERR_NOT_SAME, "an update by another instance", kSessions,
                update_of_another),
          asked(OP_CREATE_SESSION, NFS4_OK, "limits are not above the wishes", kSessions,
                creates_a_session),
          asked(OP_CREATE_SESSION, NFS4_OK, "a retry makes no second one", kSessions,
                session_again),
          asked(OP_CREATE_SESSION, NFS4ERR_STALE_CLIENTID, "of no client", kSessions,
                session_of_none),
          asked(OP_CREATE_SESSION, NFS4ERR_SEQ_MISORDERED, "ahead", kSessions, session_misordered),
          asked(OP_CREATE_SESSION, NFS4ERR_INVAL, "flags that no RFC knows", kSessions,
                session_of_flags),
          asked(OP_CREATE_SESSION, NFS4ERR_TOOSMALL, "messages of 16 bytes", kSessions,
                session_too_small),
          asked(OP_RECLAIM_COMPLETE, NFS4_OK, "of a new client", kSessions, completes),
          asked(OP_DESTROY_SESSION, NFS4_OK, "alone in a COMPOUND", kSessions, ends_a_session),
          asked(OP_DESTROY_SESSION, NFS4ERR_BADSESSION, "for the second time", kSessions,
                destroys_a_session),
          asked(OP_DESTROY_CLIENTID, NFS4_OK, "without sessions", kSessions, destroys_a_client),
          asked(OP_DESTROY_CLIENTID, NFS4ERR_CLIENTID_BUSY, "with a session", kSessions,
                client_is_busy),
          asked(OP_DESTROY_CLIENTID, NFS4ERR_STALE_CLIENTID, "of no client", kSessions,
                no_such_client),
          asked(OP_BIND_CONN_TO_SESSION, NFS4_OK, "its own connection", kSessions, binds),
          asked(OP_BIND_CONN_TO_SESSION, NFS4ERR_INVAL, "to a direction that no RFC knows",
                kSessions, binds_nowhere),
          asked(OP_BIND_CONN_TO_SESSION, NFS4ERR_NOT_ONLY_OP, "behind SEQUENCE", kSessions,
                binds_in_a_session),
          asked(OP_EXCHANGE_ID, NFS4ERR_BADCHAR, "an implementation named by what is no UTF-8",
                kSessions, odd_implementation),
          asked(OP_BIND_CONN_TO_SESSION, NFS4ERR_BADSESSION, "of no session", kSessions,
                binds_to_none),
      });
  return all;
}

}  // namespace stag::conform::nfs4
