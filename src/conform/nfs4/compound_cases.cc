// Rules of COMPOUND itself: minor versions, operations that there are not, where it stops, tags
// (RFC 7530 15.2, RFC 8881 16.2, RFC 8178).
#include <fmt/format.h>

#include "base/bytes.h"
#include "conform/nfs4/cases.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

Task<Verdict> other_minor(Scene& scene, std::uint32_t minor) {
  COMPOUND4args args{"conform", minor, {}};
  args.argarray.push_back(op(OP_PUTROOTFH));
  const Reply reply = co_await scene.client.compound(std::move(args));
  Statuses allowed{NFS4ERR_MINOR_VERS_MISMATCH};
  Verdict verdict = expect(reply, allowed, fmt::format("minor version {}", minor));
  if (verdict.outcome == Outcome::Pass && !reply.results.resarray.empty())
    verdict = Verdict::fail("NFS4ERR_MINOR_VERS_MISMATCH came with results");
  co_return verdict;
}

// An operation of this number, which has no arguments that anybody knows.
Task<Verdict> illegal(Scene& scene, std::uint32_t number) {
  Operations operations;
  operations.push_back(op(OP_PUTROOTFH));
  operations.push_back(op(OP_ILLEGAL));
  const Alteration alter = [number](std::vector<std::byte>& bytes) {
    store_be(bytes.data() + bytes.size() - 4, number);
  };
  const Reply reply = co_await scene.client.run_altered(operations, alter);
  Statuses allowed{NFS4ERR_OP_ILLEGAL};
  Verdict verdict = expect(reply, allowed, fmt::format("operation {}", number));
  if (verdict.outcome != Outcome::Pass) co_return verdict;
  const auto& results = reply.results.resarray;
  if (results.size() != 2 || results.back().resop != OP_ILLEGAL)
    co_return Verdict::fail("the result is not one of OP_ILLEGAL");
  co_return verdict;
}

Task<Verdict> retired(Scene& scene, nfs_opnum4 operation) {
  Operations operations;
  operations.push_back(op(OP_PUTROOTFH));
  const Step step = sample(operation);
  operations.push_back(op(operation));
  if (step.fill) step.fill(scene, operations.back());
  const Reply reply = co_await scene.client.run(std::move(operations));
  Statuses allowed{NFS4ERR_NOTSUPP};
  co_return expect(reply, allowed, name_of(operation));
}

Task<Verdict> tagged(Scene& scene, std::string tag, bool odd) {
  COMPOUND4args args{std::move(tag), scene.minor(), {}};
  if (scene.minor() > 0)
    args.argarray.push_back(op(OP_SEQUENCE, &Op::opsequence, scene.client.sequence()));
  args.argarray.push_back(op(OP_PUTROOTFH));
  const Reply reply = co_await scene.client.compound(std::move(args));
  scene.client.note(reply);
  Statuses allowed{NFS4_OK};
  if (odd) allowed.push_back(NFS4ERR_INVAL);
  co_return expect(reply, allowed, "the tag");
}

Task<Verdict> nothing_to_do(Scene& scene) {
  const Reply reply = co_await scene.client.bare({});
  Statuses allowed{NFS4_OK};
  if (scene.minor() > 0) allowed.push_back(NFS4ERR_OP_NOT_IN_SESSION);
  co_return expect(reply, allowed, "a COMPOUND of no operation");
}

Script rule(std::string note, nfsstat4 status, std::string section, Minors minors,
            std::function<Task<Verdict>(Scene&)> run) {
  Script script;
  script.note = std::move(note);
  script.minors = minors;
  script.expect = {status};
  script.section = std::move(section);
  script.group = "COMPOUND";
  script.run = std::move(run);
  return script;
}

Script no_operation(std::uint32_t number, Minors minors) {
  const auto run = [number](Scene& scene) { return illegal(scene, number); };
  Script script =
      rule(fmt::format("operation {}, which this minor version does not have", number),
           NFS4ERR_OP_ILLEGAL, minors == k40 ? "7530 15.2.4" : "8881 16.2.3", minors, run);
  script.group = "ILLEGAL";
  return script;
}

std::string stops_there(Scene&, const COMPOUND4res& results) {
  return results.resarray.size() == 2 ? "" : "there are results behind the failed operation";
}

}  // namespace

Scripts compound_cases() {
  Scripts all;
  for (const std::uint32_t minor : {3u, 77u, ~0u})
    all.push_back(rule(fmt::format("minor version {}", minor), NFS4ERR_MINOR_VERS_MISMATCH,
                       "8178 4.1", kAll,
                       [minor](Scene& scene) { return other_minor(scene, minor); }));
  for (const std::uint32_t number : {0u, 2u, 200u, 10044u, ~0u})
    all.push_back(no_operation(number, kAll));
  all.push_back(no_operation(OP_BACKCHANNEL_CTL, k40));
  all.push_back(no_operation(OP_SEQUENCE, k40));
  all.push_back(no_operation(OP_ALLOCATE, k40 | k41));
  all.push_back(no_operation(OP_GETXATTR, k40 | k41));
  all.push_back(no_operation(OP_REMOVEXATTR + 1, k42));
  for (const nfs_opnum4 operation :
       {OP_OPEN_CONFIRM, OP_RENEW, OP_SETCLIENTID, OP_SETCLIENTID_CONFIRM, OP_RELEASE_LOCKOWNER}) {
    all.push_back(rule("not in minor versions with sessions", NFS4ERR_NOTSUPP, "8881 17", kSessions,
                       [operation](Scene& scene) { return retired(scene, operation); }));
    all.back().group.clear();
    all.back().operation = operation;
  }
  all.push_back(rule("no operation", NFS4_OK, "8881 16.2.3", kAll, nothing_to_do));
  all.push_back(rule("a tag of 100 bytes comes back", NFS4_OK, "8881 16.2.3", kAll,
                     [](Scene& scene) { return tagged(scene, std::string(100, 't'), false); }));
  all.push_back(rule("an empty tag", NFS4_OK, "8881 16.2.3", kAll,
                     [](Scene& scene) { return tagged(scene, "", false); }));
  all.push_back(rule("a tag that is no UTF-8", NFS4_OK, "8881 16.2.3", kAll,
                     [](Scene& scene) { return tagged(scene, "\xff\xfe", true); }));
  Script stop;
  stop.note = "operations behind one that failed are not run";
  stop.group = "COMPOUND";
  stop.section = "8881 16.2.3";
  stop.steps = {at("dir"), lookup("absent"), getfh("none")};
  stop.expect = {NFS4ERR_NOENT};
  stop.earlier = true;
  stop.check = stops_there;
  all.push_back(std::move(stop));
  return all;
}

}  // namespace stag::conform::nfs4
