// What only version 4.0 has: owners with sequence numbers, SETCLIENTID, RENEW, RELEASE_LOCKOWNER
// (RFC 7530 9.1.7, 16.18, 16.28, 16.33, 16.34, 16.37).
#include <fmt/format.h>

#include "conform/nfs4/cases.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

Step release(std::string owner) {
  return {OP_RELEASE_LOCKOWNER,
          [owner](Scene& scene, Op& to) { to.oprelease_lockowner() = {scene.owner(owner)}; }};
}

state_owner4 nobody() {
  return {0x5a5a5a5a5a5a5a5a, Rope::copy_of(bytes_of("nobody"))};
}

// The step with another sequence number than the owner's next.
Step numbered(Step step, std::uint32_t ahead) {
  step.fill = [fill = step.fill, ahead](Scene& scene, Op& to) {
    fill(scene, to);
    if (to.argop == OP_LOCKU)
      to.oplocku().seqid += ahead;
    else
      to.opopen_downgrade().seqid += ahead;
  };
  return step;
}

Scripts sequence_numbers() {
  return {
      {.note = "a sequence number that is ahead",
       .minors = k40,
       .before = {a_file()},
       .steps = {own(), open({.name = "f", .seqid_off = 5})},
       .expect = {NFS4ERR_BAD_SEQID}},
      {.note = "a sequence number that is ahead",
       .minors = k40,
       .before = {a_file()},
       .steps = {at("f"), close("f", 5)},
       .expect = {NFS4ERR_BAD_SEQID}},
      {.note = "a sequence number that is ahead",
       .minors = k40,
       .before = {a_file(), a_lock()},
       .steps = {at("f"), lock({.held = "l", .offset = 50, .seqid_off = 5})},
       .expect = {NFS4ERR_BAD_SEQID}},
      {.note = "a sequence number that is ahead",
       .minors = k40,
       .before = {a_file(), {own(), open({.name = "f", .access = kRead})}},
       .steps = {at("f"), numbered(open_downgrade("f", kRead), 5)},
       .expect = {NFS4ERR_BAD_SEQID}},
      {.note = "a sequence number that is ahead",
       .minors = k40,
       .before = {a_file(), a_lock()},
       .steps = {at("f"), numbered(locku("l"), 5)},
       .expect = {NFS4ERR_BAD_SEQID}},
      {.note = "a retry draws the reply of before",
       .minors = k40,
       .before = {a_file(), {own(), open({.name = "f", .access = kRead})}},
       .steps = {own(), open({.name = "f", .access = kRead, .seqid_off = -1})}},
  };
}

Scripts owners_of_nobody() {
  return {
      {.note = "a new owner under a client ID that nobody gave",
       .minors = k40,
       .before = {a_file()},
       .steps = {at("f"), lock({.open = "f", .held = "l", .clientid_off = kOfNobody})},
       .expect = {NFS4ERR_STALE_CLIENTID, NFS4ERR_EXPIRED, NFS4ERR_INVAL}},
      {.note = "an owner under a client ID that nobody gave",
       .minors = k40,
       .steps = {at("file"), plain(OP_LOCKT, &Op::oplockt, {READ_LT, 0, 10, nobody()})},
       .expect = {NFS4ERR_STALE_CLIENTID, NFS4ERR_EXPIRED}},
      {.note = "an owner under a client ID that nobody gave",
       .minors = k40,
       .steps = {plain(OP_RELEASE_LOCKOWNER, &Op::oprelease_lockowner, {nobody()})},
       .expect = {NFS4ERR_STALE_CLIENTID, NFS4ERR_EXPIRED}},
  };
}

Scripts confirmations() {
  return {
      {.note = "of an open that is confirmed already",
       .minors = k40,
       .before = {a_file()},
       .steps = {at("f"), open_confirm("f")},
       .expect = {NFS4ERR_BAD_STATEID, NFS4_OK}},
      {.note = "of a stateid that nobody gave",
       .minors = k40,
       .steps = {at("file"), open_confirm("garbage")},
       .expect = {NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID, NFS4ERR_EXPIRED}},
      {.note = "a sequence number that is ahead",
       .minors = k40,
       .before = {a_file()},
       .steps = {at("f"), open_confirm("f", 5)},
       .expect = {NFS4ERR_BAD_SEQID, NFS4ERR_BAD_STATEID}},
      {.note = "the stateid of an earlier time",
       .minors = k40,
       .before = {a_file(), {own(), open({.name = "f", .access = kRead})}},
       .steps = {at("f"), open_confirm("old f")},
       .expect = {NFS4ERR_OLD_STATEID, NFS4ERR_BAD_STATEID}},
      {.note = "of a folder",
       .minors = k40,
       .before = {a_file()},
       .steps = {at("dir"), open_confirm("f")},
       .expect = {NFS4ERR_ISDIR, NFS4ERR_BAD_STATEID}},
  };
}

Scripts releases() {
  return {
      {.note = "of an owner that has given up its locks",
       .minors = k40,
       .before = {a_file(), a_lock(), {at("f"), locku("l")}},
       .steps = {release("locker")}},
      {.note = "of an owner that has a lock",
       .minors = k40,
       .before = {a_file(), a_lock()},
       .steps = {release("locker")},
       .expect = {NFS4ERR_LOCKS_HELD}},
  };
}

Task<Reply> set_client(Client& client, unsigned char verifier) {
  SETCLIENTID4args args = client.owner_args_v40();
  args.client.verifier.fill(std::byte{verifier});
  Operations operations;
  operations.push_back(op(OP_SETCLIENTID, &Op::opsetclientid, std::move(args)));
  return client.bare(std::move(operations));
}

Task<Reply> confirm_client(Client& client, SETCLIENTID_CONFIRM4args args) {
  Operations operations;
  operations.push_back(op(OP_SETCLIENTID_CONFIRM, &Op::opsetclientid_confirm, args));
  return client.bare(std::move(operations));
}

Task<Verdict> sets_and_confirms(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("new"));
  const Reply reply = co_await set_client(client, 1);
  if (!reply.ok()) co_return Verdict::fail("SETCLIENTID: " + reply.text());
  const SETCLIENTID4resok& ok = reply.results.resarray.front().opsetclientid().resok4();
  const Reply confirmed = co_await confirm_client(client, {ok.clientid, ok.setclientid_confirm});
  if (!confirmed.ok()) co_return Verdict::fail("SETCLIENTID_CONFIRM: " + confirmed.text());
  const Reply again = co_await confirm_client(client, {ok.clientid, ok.setclientid_confirm});
  co_return expect(again, {NFS4_OK}, "the retry of SETCLIENTID_CONFIRM");
}

// RFC 7530 16.33.5: a server that looks at the address when it is given, and one that does when it
// calls.
Task<Verdict> calls_nobody(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("not called"));
  SETCLIENTID4args args = client.owner_args_v40();
  args.callback.cb_program = 0x40000000;
  args.callback.cb_location = {"tcp", "no address"};
  Operations operations;
  operations.push_back(op(OP_SETCLIENTID, &Op::opsetclientid, std::move(args)));
  const Reply reply = co_await client.bare(std::move(operations));
  Statuses allowed{NFS4ERR_INVAL, NFS4_OK};
  co_return expect(reply, allowed, "an address that is none");
}

Task<Verdict> confirms_nothing(Scene& scene) {
  SETCLIENTID_CONFIRM4args args;
  args.clientid = scene.client.clientid() + kOfNobody;
  args.setclientid_confirm.fill(std::byte{0x5a});
  const Reply reply = co_await confirm_client(scene.client, args);
  co_return expect(reply, {NFS4ERR_STALE_CLIENTID}, "a client ID that nobody gave");
}

Task<Verdict> another_verifier(Scene& scene) {
  Client client(scene.client.channel(), scene.other_client("reboots"));
  const Reply reply = co_await set_client(client, 1);
  if (!reply.ok()) co_return Verdict::fail("SETCLIENTID: " + reply.text());
  SETCLIENTID4resok ok = reply.results.resarray.front().opsetclientid().resok4();
  ok.setclientid_confirm[0] ^= std::byte{0xff};
  const Reply confirmed = co_await confirm_client(client, {ok.clientid, ok.setclientid_confirm});
  co_return expect(confirmed, {NFS4ERR_STALE_CLIENTID}, "another verifier than was given");
}

// A server asks for it where it has not met the owner of the open.
Task<Verdict> confirms(Scene& scene) {
  Steps opening = a_file("f");
  opening.push_back(getfh("f"));
  const Reply opened = co_await send(scene, opening);
  if (!opened.ok()) co_return Verdict::fail("OPEN: " + opened.text());
  if (!scene.unconfirmed.contains("f"))
    co_return Verdict::skip("the server asks for no confirmation");
  Steps confirming;
  confirming.push_back(at("f"));
  confirming.push_back(open_confirm("f"));
  const Reply confirmed = co_await send(scene, confirming);
  co_return expect(confirmed, {NFS4_OK}, "OPEN_CONFIRM");
}

}  // namespace

Scripts v40_cases() {
  Scripts all = sequence_numbers();
  append(all, owners_of_nobody());
  append(all, confirmations());
  append(all, releases());
  append(all, {
                  asked(OP_SETCLIENTID, NFS4_OK, "a new client, confirmed", k40, sets_and_confirms),
                  asked(OP_SETCLIENTID_CONFIRM, NFS4_OK, "and its retry", k40, sets_and_confirms),
                  asked(OP_SETCLIENTID_CONFIRM, NFS4ERR_STALE_CLIENTID, "of no client", k40,
                        confirms_nothing),
                  asked(OP_SETCLIENTID_CONFIRM, NFS4ERR_STALE_CLIENTID, "with another verifier",
                        k40, another_verifier),
                  {.note = "a client ID that nobody gave",
                   .minors = k40,
                   .steps = {plain(OP_RENEW, &Op::oprenew, {0x5a5a5a5a5a5a5a5a})},
                   .expect = {NFS4ERR_STALE_CLIENTID, NFS4ERR_EXPIRED}},
                  {.note = "the lease of this client",
                   .minors = k40,
                   .steps = {{OP_RENEW, [](Scene& scene,
                                           Op& to) { to.oprenew() = {scene.client.clientid()}; }}}},
                  {.note = "the lease of this client, by another user",
                   .minors = k40,
                   .steps = {{OP_RENEW, [](Scene& scene,
                                           Op& to) { to.oprenew() = {scene.client.clientid()}; }}},
                   .expect = {NFS4_OK, NFS4ERR_ACCESS},
                   .stranger = true},
                  asked(OP_OPEN_CONFIRM, NFS4_OK, "the first open of an owner", k40, confirms),
                  asked(OP_SETCLIENTID, NFS4ERR_INVAL, "callbacks to what is no address", k40,
                        calls_nobody),
                  {.note = "of this client", .steps = {delegpurge()}},
                  {.note = "of a client that is not there",
                   .minors = k40,
                   .steps = {plain(OP_DELEGPURGE, &Op::opdelegpurge, {0x5a5a5a5a5a5a5a5a})},
                   .expect = {NFS4ERR_STALE_CLIENTID}},
              });
  return all;
}

}  // namespace stag::conform::nfs4
