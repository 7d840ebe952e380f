// Client IDs of one principal that another one asks for (RFC 8881 18.35.4, 18.36.4, RFC 7530
// 16.33.5, 16.34.5).
#include "conform/nfs4/cases.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

// By another principal than the client's.
Task<Reply> by_stranger(Client& client, Op operation) {
  const rpc::Credentials other = stranger();
  Operations operations;
  operations.push_back(std::move(operation));
  const Reply reply = co_await client.bare(std::move(operations), &other);
  co_return reply;
}

// What a refusal must not have done.
Task<Verdict> unless_it_ended(Client& client, Verdict verdict) {
  const bool alive = co_await client.alive();
  if (verdict.outcome != Outcome::Pass || alive) co_return verdict;
  co_return Verdict::fail("the refusal ended the client ID of the other principal");
}

using Claim = Op (*)(Client& client);

// RFC 8881 18.35.4: a session is state that another principal may not end.
Op exchange_id(Client& client) {
  EXCHANGE_ID4args args = client.owner_args();
  args.eia_clientowner.co_verifier.fill(std::byte{0x77});
  return op(OP_EXCHANGE_ID, &Op::opexchange_id, std::move(args));
}

Op update(Client& client) {
  EXCHANGE_ID4args args = client.owner_args();
  args.eia_flags = EXCHGID4_FLAG_UPD_CONFIRMED_REC_A;
  return op(OP_EXCHANGE_ID, &Op::opexchange_id, std::move(args));
}

Task<Verdict> claims(Scene& scene, Claim claim, nfsstat4 status) {
  Client client(scene.client.channel(), scene.other_client("claimed"));
  const std::string trouble = co_await client.establish();
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  const Reply reply = co_await by_stranger(client, claim(client));
  const Verdict verdict = expect(reply, {status}, "another principal");
  Verdict all = co_await unless_it_ended(client, verdict);
  co_await client.leave();
  co_return all;
}

// RFC 8881 18.36.4: only the principal that was given the client ID confirms it.
Task<Verdict> confirms_session(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("claimed"));
  Operations asking;
  asking.push_back(op(OP_EXCHANGE_ID, &Op::opexchange_id, client.owner_args()));
  const Reply given = co_await client.bare(std::move(asking));
  if (!given.ok()) co_return Verdict::fail("EXCHANGE_ID: " + given.text());
  const auto& ok = given.results.resarray.front().opexchange_id().eir_resok4();
  CREATE_SESSION4args args = client.session_args();
  args.csa_clientid = ok.eir_clientid;
  args.csa_sequence = ok.eir_sequenceid;
  const Reply reply =
      co_await by_stranger(client, op(OP_CREATE_SESSION, &Op::opcreate_session, std::move(args)));
  co_return expect(reply, {NFS4ERR_CLID_INUSE}, "another principal");
}

Op setclientid(Client& client) {
  SETCLIENTID4args args = client.owner_args_v40();
  args.client.verifier.fill(std::byte{0x77});
  return op(OP_SETCLIENTID, &Op::opsetclientid, std::move(args));
}

// RFC 7530 16.33.5: of a client that holds something.
Task<Verdict> claims_open(Scene& scene) {
  const Handles none;
  Client client(scene.client.channel(), scene.other_client("claimed"));
  Scene claimed(client, none, scene.label + " claimed");
  claimed.handles["own"] = scene.handle("own");
  std::string trouble = co_await client.establish();
  if (trouble.empty()) trouble = co_await prepare(claimed, a_file());
  Verdict verdict = Verdict::fail("could not be prepared: " + trouble);
  if (trouble.empty()) {
    const Reply reply = co_await by_stranger(client, setclientid(client));
    verdict = expect(reply, {NFS4ERR_CLID_INUSE}, "another principal");
    verdict = co_await unless_it_ended(client, verdict);
  }
  co_await tidy(claimed);
  co_await client.leave();
  co_return verdict;
}

Task<Verdict> confirms_clientid(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("claimed"));
  Operations asking;
  asking.push_back(op(OP_SETCLIENTID, &Op::opsetclientid, client.owner_args_v40()));
  const Reply given = co_await client.bare(std::move(asking));
  if (!given.ok()) co_return Verdict::fail("SETCLIENTID: " + given.text());
  const auto& ok = given.results.resarray.front().opsetclientid().resok4();
  const SETCLIENTID_CONFIRM4args args{ok.clientid, ok.setclientid_confirm};
  const Reply reply =
      co_await by_stranger(client, op(OP_SETCLIENTID_CONFIRM, &Op::opsetclientid_confirm, args));
  co_return expect(reply, {NFS4ERR_CLID_INUSE}, "another principal");
}

Script claimed(nfs_opnum4 operation, nfsstat4 status, std::string note, Claim claim) {
  return asked(
      operation, status, std::move(note), kSessions,
      [claim, status](Scene& scene) { return claims(scene, claim, status); }, "8881 18.35.4");
}

}  // namespace

Scripts principal_cases() {
  return {
      claimed(OP_EXCHANGE_ID, NFS4ERR_CLID_INUSE,
              "another principal names the owner of a client that has a session", exchange_id),
      claimed(OP_EXCHANGE_ID, NFS4ERR_PERM, "an update by another principal", update),
      asked(OP_CREATE_SESSION, NFS4ERR_CLID_INUSE, "by another principal than EXCHANGE_ID",
            kSessions, confirms_session, "8881 18.36.4"),
      asked(OP_SETCLIENTID, NFS4ERR_CLID_INUSE,
            "another principal names the owner of a client that has a file open", k40, claims_open,
            "7530 16.33.5"),
      asked(OP_SETCLIENTID_CONFIRM, NFS4ERR_CLID_INUSE, "by another principal than SETCLIENTID",
            k40, confirms_clientid, "7530 16.34.5"),
  };
}

}  // namespace stag::conform::nfs4
