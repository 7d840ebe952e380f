// Delegations that are in another client's way: the holder is called and asked for it (RFC 8881
// 10.4, 20.2, RFC 7530 10.4, 15.2.2); and what a client is told that cannot be called (RFC 8881
// 18.46.3, RFC 7530 16.28.5).
#include "base/pause.h"
#include "base/task_group.h"
#include "conform/nfs4/cases.h"
#include "conform/nfs4/delegation_holder.h"
#include "conform/nfs4/lease.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

// A server may find out late that it cannot call.
constexpr int kLooks = 100;
constexpr auto kBetweenLooks = std::chrono::milliseconds(100);

Steps open_to_write() {
  Steps steps;
  steps.push_back(own());
  steps.push_back(open({.name = "f", .access = kWrite, .owner = "writer", .as = "written"}));
  return steps;
}

Task<void> opens_to_write(Scene& scene, std::string& trouble) {
  trouble = co_await prepare(scene, open_to_write());
}

Task<Verdict> is_recalled(Scene& scene, Scene& holder) {
  const ClientOptions& options = holder.client.options();
  std::string trouble;
  TaskGroup opening;
  opening.add(opens_to_write(scene, trouble));
  const auto recall =
      co_await options.callbacks->wait_for_recall(holder.stateid(kDelegation), options.timeout);
  const Reply back = co_await give_back(holder);
  co_await opening.join();
  if (!recall) co_return Verdict::fail("no CB_RECALL came for an OPEN in conflict");
  if (recall->fh != holder.handle("f"))
    co_return Verdict::fail("CB_RECALL has another filehandle than the file's");
  if (!back.ok()) co_return expect(back, {NFS4_OK}, "DELEGRETURN");
  co_return trouble.empty() ? Verdict::pass() : Verdict::fail("OPEN after DELEGRETURN: " + trouble);
}

// RFC 8881 18.46.3. The session with the back channel ends, and the delegation stays with one that
// has none.
Task<Verdict> has_no_path(Scene& holder) {
  Client& client = holder.client;
  CREATE_SESSION4args args = client.session_args();
  args.csa_flags = 0;
  Operations creating;
  creating.push_back(op(OP_CREATE_SESSION, &Op::opcreate_session, args));
  const Reply made = co_await client.bare(std::move(creating));
  if (!made.ok()) co_return Verdict::fail("CREATE_SESSION: " + made.text());
  const auto former = client.session().csr_sessionid;
  client.adopt(made.results.resarray.front().opcreate_session().csr_resok4());
  Operations ending;
  ending.push_back(op(OP_DESTROY_SESSION, &Op::opdestroy_session, {former}));
  const Reply ended = co_await client.bare(std::move(ending));
  if (!ended.ok()) co_return Verdict::fail("DESTROY_SESSION: " + ended.text());
  for (int i = 0; i < kLooks && !client.options().cancel.cancelled(); ++i) {
    const auto flags = co_await status_flags(client);
    if (!flags) co_return Verdict::fail("SEQUENCE failed");
    if ((*flags & SEQ4_STATUS_CB_PATH_DOWN) != 0) co_return Verdict::pass();
    co_await pause(client.channel().loop(), kBetweenLooks, client.options().cancel);
  }
  co_return Verdict::fail("SEQUENCE does not say SEQ4_STATUS_CB_PATH_DOWN");
}

Task<Verdict> is_told_in_sequence(Scene&, Scene& holder) {
  Verdict verdict = co_await has_no_path(holder);
  co_await give_back(holder);
  co_return verdict;
}

Task<Reply> renew(Client& client) {
  Operations operations;
  operations.push_back(op(OP_RENEW, &Op::oprenew, {client.clientid()}));
  return client.bare(std::move(operations));
}

// RFC 7530 16.28.5: RENEW says so once the server knows. That it cannot call it finds out when it
// wants the delegation back.
Task<Verdict> is_told_by_renew(Scene& scene, Scene& holder) {
  Client& client = holder.client;
  co_await client.options().place->close();
  std::string trouble;
  TaskGroup opening;
  opening.add(opens_to_write(scene, trouble));
  Reply renewed = co_await renew(client);
  for (int i = 0; i < kLooks && renewed.ok() && !client.options().cancel.cancelled(); ++i) {
    co_await pause(client.channel().loop(), kBetweenLooks, client.options().cancel);
    renewed = co_await renew(client);
  }
  const Reply back = co_await give_back(holder);
  co_await opening.join();
  const Verdict verdict = expect(renewed, {NFS4ERR_CB_PATH_DOWN}, "RENEW without a callback path");
  if (verdict.outcome != Outcome::Pass) co_return verdict;
  // The lease of the share reservation was renewed all the same.
  co_return back.ok() ? verdict : expect(back, {NFS4_OK}, "DELEGRETURN after RENEW");
}

Script delegated(nfs_opnum4 operation, nfsstat4 status, std::string note, Minors minors,
                 DelegationUse use, std::string section) {
  return asked(
      operation, status, std::move(note), minors,
      [use = std::move(use)](Scene& scene) { return with_delegation(scene, use); },
      std::move(section));
}

}  // namespace

Scripts recall_cases() {
  constexpr const char* kConflict = "of what another client has a delegation of, which is recalled";
  return {
      delegated(OP_OPEN, NFS4_OK, kConflict, k40, is_recalled, "7530 15.2.2"),
      delegated(OP_OPEN, NFS4_OK, kConflict, kSessions, is_recalled, "8881 20.2"),
      delegated(OP_SEQUENCE, NFS4_OK, "SEQ4_STATUS_CB_PATH_DOWN: no session has a back channel",
                kSessions, is_told_in_sequence, "8881 18.46.3"),
      delegated(OP_RENEW, NFS4ERR_CB_PATH_DOWN, "the holder of a delegation listens no more", k40,
                is_told_by_renew, "7530 16.28.5"),
  };
}

}  // namespace stag::conform::nfs4
