// Errors that many operations share. The RFCs' own tables say which operations have them, so that
// none is forgotten.
#include <algorithm>

#include "conform/nfs4/cases.h"
#include "conform/nfs4/errors.h"
#include "xdr/encoder.h"

namespace stag::conform::nfs4 {
namespace {

bool may_stand_alone(v4::nfs_opnum4 operation) {
  switch (operation) {
    case v4::OP_SEQUENCE:
    case v4::OP_EXCHANGE_ID:
    case v4::OP_CREATE_SESSION:
    case v4::OP_BIND_CONN_TO_SESSION:
    case v4::OP_DESTROY_SESSION:
    case v4::OP_DESTROY_CLIENTID:
      return true;
    default:
      return false;
  }
}

Op complete(Scene& scene, v4::nfs_opnum4 operation) {
  const Step step = sample(operation);
  Op made = op(operation);
  if (step.fill) step.fill(scene, made);
  return made;
}

bool has_arguments(v4::nfs_opnum4 operation) {
  return static_cast<bool>(sample(operation).fill);
}

Verdict unless_not_offered(const Reply& reply, v4::nfs_opnum4 operation, Verdict verdict) {
  const bool not_offered = reply.answered() && reply.results.status == v4::NFS4ERR_NOTSUPP;
  if (!not_offered || !optional(operation)) return verdict;
  return Verdict::skip("the server does not offer " + name_of(operation));
}

Task<Verdict> without_session(Scene& scene, v4::nfs_opnum4 operation) {
  Operations operations;
  operations.push_back(complete(scene, operation));
  const Reply reply = co_await scene.client.bare(std::move(operations));
  Statuses allowed{v4::NFS4ERR_OP_NOT_IN_SESSION};
  Verdict verdict = expect(reply, allowed, "without SEQUENCE");
  co_return unless_not_offered(reply, operation, std::move(verdict));
}

Task<Verdict> cut_short_alone(Scene& scene, v4::nfs_opnum4 operation) {
  xdr::Encoder encoder;
  v4::COMPOUND4args args{"conform", scene.minor(), {}};
  args.argarray.push_back(complete(scene, operation));
  encode(encoder, args);
  const Buffer whole = std::move(encoder).finish().without({}).flatten();
  const Bytes cut = whole.bytes().first(whole.size() - 4);
  const Reply reply = co_await scene.client.raw({cut.begin(), cut.end()});
  if (reply.garbage()) co_return Verdict::pass("GARBAGE_ARGS came");
  Statuses allowed{v4::NFS4ERR_BADXDR};
  co_return expect(reply, allowed, "arguments that end too early");
}

// RFC 8881 15.1.1.1: a server may decode all operations first, and answer at the level of RPC.
Task<Verdict> cut_short(Scene& scene, v4::nfs_opnum4 operation) {
  Operations operations;
  if (may_stand_alone(operation)) co_return co_await cut_short_alone(scene, operation);
  operations.push_back(op(v4::OP_PUTFH, &Op::opputfh, {scene.handle("file")}));
  operations.push_back(complete(scene, operation));
  const Alteration cut = [](std::vector<std::byte>& bytes) { bytes.resize(bytes.size() - 4); };
  const Reply reply = co_await scene.client.run_altered(operations, cut);
  if (reply.garbage()) co_return Verdict::pass("GARBAGE_ARGS came");
  Statuses allowed{v4::NFS4ERR_BADXDR};
  Verdict verdict = expect(reply, allowed, "arguments that end too early");
  co_return unless_not_offered(reply, operation, std::move(verdict));
}

Task<Verdict> beside_another(Scene& scene, v4::nfs_opnum4 operation) {
  Operations operations;
  operations.push_back(complete(scene, operation));
  operations.push_back(op(v4::OP_PUTROOTFH));
  const Reply reply = co_await scene.client.bare(std::move(operations));
  Statuses allowed{v4::NFS4ERR_NOT_ONLY_OP};
  co_return expect(reply, allowed, "with PUTROOTFH behind it and no SEQUENCE");
}

bool lists(const OperationErrors& row, v4::nfsstat4 error) {
  return std::ranges::find(row.errors, error) != row.errors.end();
}

Script without_handle(v4::nfs_opnum4 operation, Minors minors) {
  Script script;
  script.note = "no current filehandle";
  script.minors = minors;
  script.steps = {sample(operation)};
  script.expect = {v4::NFS4ERR_NOFILEHANDLE, v4::NFS4ERR_BAD_STATEID};
  return script;
}

// What may come for a removed object from a server that looks at other arguments first, or does not
// look at the object at all.
Statuses instead_of_stale(v4::nfs_opnum4 operation) {
  switch (operation) {
    case v4::OP_PUTFH:
    case v4::OP_GETFH:
    case v4::OP_SAVEFH:
    case v4::OP_RESTOREFH:
    case v4::OP_SECINFO_NO_NAME:
    case v4::OP_RECLAIM_COMPLETE:
      return {v4::NFS4_OK};
    case v4::OP_CLOSE:
    case v4::OP_DELEGRETURN:
    case v4::OP_LOCK:
    case v4::OP_LOCKU:
    case v4::OP_OPEN_CONFIRM:
    case v4::OP_OPEN_DOWNGRADE:
    case v4::OP_COPY_NOTIFY:
      return {v4::NFS4ERR_BAD_STATEID};
    case v4::OP_COPY:
    case v4::OP_CLONE:
      return {v4::NFS4ERR_INVAL};
    default:
      return {};
  }
}

// RFC 8881 15.1.2.7: of an object that is gone. PUTFH may find that out already.
Script of_gone_object(v4::nfs_opnum4 operation, Minors minors) {
  Script script;
  script.note = "of an object that was removed";
  script.minors = minors;
  script.steps = {at("gone"), savefh(), sample(operation)};
  if (operation == v4::OP_PUTFH) script.steps = {at("gone")};
  if (operation == v4::OP_SAVEFH) script.steps = {at("gone"), savefh()};
  script.expect = {v4::NFS4ERR_STALE};
  for (const v4::nfsstat4 other : instead_of_stale(operation)) script.expect.push_back(other);
  script.earlier = true;
  return script;
}

void add_cases(const OperationErrors& row, Minors minors, Scripts& to) {
  const v4::nfs_opnum4 operation = row.operation;
  const bool takes_current = operation != v4::OP_RESTOREFH;
  if (takes_current && lists(row, v4::NFS4ERR_NOFILEHANDLE))
    to.push_back(without_handle(operation, minors));
  if (lists(row, v4::NFS4ERR_STALE)) to.push_back(of_gone_object(operation, minors));
  if (lists(row, v4::NFS4ERR_OP_NOT_IN_SESSION) && !may_stand_alone(operation))
    to.push_back(asked(operation, v4::NFS4ERR_OP_NOT_IN_SESSION, "without SEQUENCE", minors,
                       [operation](Scene& scene) { return without_session(scene, operation); }));
  if (lists(row, v4::NFS4ERR_NOT_ONLY_OP))
    to.push_back(asked(operation, v4::NFS4ERR_NOT_ONLY_OP, "with another operation", minors,
                       [operation](Scene& scene) { return beside_another(scene, operation); }));
  if (lists(row, v4::NFS4ERR_BADXDR) && has_arguments(operation))
    to.push_back(asked(operation, v4::NFS4ERR_BADXDR, "arguments that end too early", minors,
                       [operation](Scene& scene) { return cut_short(scene, operation); }));
}

}  // namespace

Scripts shared_error_cases(std::uint32_t minor) {
  Scripts all;
  const auto minors = static_cast<Minors>(1u << minor);
  for (const OperationErrors& row : errors_of(minor))
    if (row.operation != v4::OP_ILLEGAL) add_cases(row, minors, all);
  return all;
}

}  // namespace stag::conform::nfs4
