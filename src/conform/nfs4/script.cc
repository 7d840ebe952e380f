#include "conform/nfs4/script.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/pause.h"

namespace stag::conform::nfs4 {
namespace {

constexpr int kPatience = 100;  // times that NFS4ERR_DELAY and NFS4ERR_GRACE are waited for
constexpr auto kPause = std::chrono::milliseconds(50);
constexpr std::uint32_t kStranger = 65501;

// RFC 7530 9.1.7: these leave the owner's sequence number as it is.
bool advances(v4::nfsstat4 status) {
  switch (status) {
    case v4::NFS4ERR_STALE_CLIENTID:
    case v4::NFS4ERR_STALE_STATEID:
    case v4::NFS4ERR_BAD_STATEID:
    case v4::NFS4ERR_BAD_SEQID:
    case v4::NFS4ERR_BADXDR:
    case v4::NFS4ERR_RESOURCE:
    case v4::NFS4ERR_NOFILEHANDLE:
    case v4::NFS4ERR_MOVED:
      return false;
    default:
      return true;
  }
}

// What the results say about owners, and what the steps keep of them.
void take_results(Scene& scene, const Steps& steps, const Reply& reply) {
  if (!reply.answered()) return;
  const auto& results = reply.results.resarray;
  for (std::size_t i = 0; i < results.size() && i < steps.size(); ++i) {
    const bool failed = i + 1 == results.size() && reply.results.status != v4::NFS4_OK;
    const v4::nfsstat4 status = failed ? reply.results.status : v4::NFS4_OK;
    if (scene.minor() == 0 && steps[i].owners && advances(status))
      for (const std::string& owner : steps[i].owners(scene)) scene.advance(owner);
    if (!failed && steps[i].take && results[i].resop == steps[i].number)
      steps[i].take(scene, results[i]);
  }
}

bool is_transient(v4::nfsstat4 status) {
  return status == v4::NFS4ERR_DELAY || status == v4::NFS4ERR_GRACE;
}

Task<std::string> confirm(Scene& scene) {
  const std::set<std::string> files = scene.unconfirmed;
  for (const std::string& file : files) {
    Steps steps;
    steps.push_back(at(file));
    steps.push_back(open_confirm(file));
    const Reply reply = co_await send(scene, steps);
    if (!reply.ok()) co_return "OPEN_CONFIRM: " + reply.text();
  }
  co_return std::string();
}

// "LOOKUP", of the operation that the status of the results is about.
std::string stopped_at(const Steps& steps, const Reply& reply) {
  const std::size_t count = reply.results.resarray.size();
  if (count == 0 || count > steps.size()) return "COMPOUND";
  return name_of(steps[count - 1].number);
}

bool includes(const Statuses& statuses, v4::nfsstat4 status) {
  return std::ranges::find(statuses, status) != statuses.end();
}

Verdict judge(const Script& script, Scene& scene, const Reply& reply) {
  const v4::nfsstat4 status = reply.results.status;
  const bool last = reply.results.resarray.size() == script.steps.size();
  const std::string asked = "asked for " + list_of(script.expect);
  if (!reply.answered()) return Verdict::fail(reply.text() + "; " + asked);
  if (includes(script.expect, status) && (last || script.earlier)) {
    const std::string complaint = script.check ? script.check(scene, reply.results) : "";
    if (!complaint.empty()) return Verdict::fail(complaint);
    return Verdict::pass(status == script.expect.front() ? "" : name_of(status) + " came");
  }
  if (last && status == v4::NFS4ERR_NOTSUPP && optional(script.subject()))
    return Verdict::skip("the server does not offer " + name_of(script.subject()));
  if (last) return Verdict::fail(fmt::format("{} came, {}", name_of(status), asked));
  return Verdict::fail(
      fmt::format("{} of {} came, {}", name_of(status), stopped_at(script.steps, reply), asked));
}

Task<Verdict> prove(const Proof& proof, Scene& scene) {
  const Reply reply = co_await send(scene, proof.steps);
  if (!scene.trouble.empty()) co_return Verdict::fail("the case is wrong: " + scene.trouble);
  const bool all = reply.results.resarray.size() == proof.steps.size();
  if (!reply.answered() || !all || reply.results.status != proof.expect)
    co_return Verdict::fail(fmt::format("NFS4_OK came, and {} behind it drew {}, asked for {}",
                                        stopped_at(proof.steps, reply), reply.text(),
                                        name_of(proof.expect)));
  const std::string complaint = proof.check ? proof.check(scene, reply.results) : "";
  if (complaint.empty()) co_return Verdict::pass();
  co_return Verdict::fail("NFS4_OK came, and behind it " + complaint);
}

}  // namespace

void append(Scripts& to, Scripts more) {
  std::ranges::move(more, std::back_inserter(to));
}

Script asked(v4::nfs_opnum4 operation, v4::nfsstat4 error, std::string note, Minors minors,
             std::function<Task<Verdict>(Scene&)> run, std::string section) {
  Script script;
  script.note = std::move(note);
  script.minors = minors;
  script.expect = {error};
  script.section = std::move(section);
  script.run = std::move(run);
  script.operation = operation;
  return script;
}

bool optional(v4::nfs_opnum4 number) {
  switch (number) {
    case v4::OP_DELEGPURGE:
    case v4::OP_DELEGRETURN:
    case v4::OP_GETDEVICEINFO:
    case v4::OP_GETDEVICELIST:
    case v4::OP_GET_DIR_DELEGATION:
    case v4::OP_LAYOUTCOMMIT:
    case v4::OP_LAYOUTGET:
    case v4::OP_LAYOUTRETURN:
    case v4::OP_LINK:
    case v4::OP_OPENATTR:
    case v4::OP_READLINK:
    case v4::OP_SECINFO_NO_NAME:
    case v4::OP_SET_SSV:  // of use with SP4_SSV only, which is not REQUIRED
    case v4::OP_WANT_DELEGATION:
      return true;
    default:
      return number >= v4::OP_ALLOCATE && number <= v4::OP_REMOVEXATTR;
  }
}

std::string list_of(const Statuses& statuses) {
  std::string text;
  for (const v4::nfsstat4 status : statuses) text += (text.empty() ? "" : " or ") + name_of(status);
  return text;
}

Verdict expect(const Reply& reply, const Statuses& allowed, std::string_view what) {
  if (reply.answered() && includes(allowed, reply.results.status))
    return Verdict::pass(reply.results.status == allowed.front() ? "" : reply.text() + " came");
  return Verdict::fail(fmt::format("{}: {}, asked for {}", what, reply.text(), list_of(allowed)));
}

rpc::Credentials stranger() {
  return rpc::Credentials::sys("stag", kStranger, kStranger);
}

Task<Reply> send_once(Scene& scene, const Steps& steps, bool by_stranger) {
  const rpc::Credentials other = stranger();
  std::vector<Op> operations;
  for (const Step& step : steps) {
    operations.push_back(op(step.number));
    if (step.fill) step.fill(scene, operations.back());
  }
  Reply reply = co_await scene.client.run(std::move(operations), by_stranger ? &other : nullptr);
  take_results(scene, steps, reply);
  co_return reply;
}

Task<Reply> send(Scene& scene, const Steps& steps, bool by_stranger) {
  Reply reply;
  for (int i = 0; i < kPatience && !scene.client.options().cancel.cancelled(); ++i) {
    reply = co_await send_once(scene, steps, by_stranger);
    if (!reply.answered() || !is_transient(reply.results.status)) break;
    co_await pause(scene.client.channel().loop(), kPause, scene.client.options().cancel);
  }
  co_return reply;
}

Task<std::string> prepare(Scene& scene, Steps steps) {
  const bool opens = !steps.empty() && steps.back().number == v4::OP_OPEN;
  const std::size_t before = scene.opened.size();
  if (opens) steps.push_back(getfh("opened"));
  const Reply reply = co_await send(scene, steps);
  if (!reply.ok()) co_return fmt::format("{}: {}", stopped_at(steps, reply), reply.text());
  if (!opens || scene.opened.size() == before) co_return std::string();
  scene.handles[scene.opened.back()] = scene.handles["opened"];
  co_return co_await confirm(scene);
}

Task<Verdict> perform(const Script& script, Scene& scene) {
  for (const Steps& steps : script.before) {
    std::string trouble = co_await prepare(scene, steps);
    if (trouble.empty()) continue;
    const bool offered = !trouble.ends_with("NFS4ERR_NOTSUPP");
    trouble = "could not be prepared: " + trouble;
    co_return offered ? Verdict::fail(std::move(trouble)) : Verdict::skip(std::move(trouble));
  }
  if (script.run) co_return co_await script.run(scene);
  const Reply reply = co_await send(scene, script.steps, script.stranger);
  if (!scene.trouble.empty()) co_return Verdict::fail("the case is wrong: " + scene.trouble);
  Verdict verdict = judge(script, scene, reply);
  if (script.proof.steps.empty() || !reply.ok() || verdict.outcome != Outcome::Pass)
    co_return verdict;
  Verdict proven = co_await prove(script.proof, scene);
  if (proven.outcome != Outcome::Pass) co_return proven;
  co_return verdict;
}

Task<void> tidy(Scene& scene) {
  const std::vector<std::string> locked = scene.locked, opened = scene.opened;
  for (const std::string& held : locked) {
    Steps steps;
    steps.push_back(at("locked " + held));
    steps.push_back(locku(held));
    const Reply reply = co_await send(scene, steps);
    if (reply.silent()) co_return;
  }
  for (const std::string& file : opened) {
    if (!scene.handles.contains(file)) continue;
    Steps steps;
    steps.push_back(at(file));
    steps.push_back(close(file));
    const Reply reply = co_await send(scene, steps);
    if (reply.silent()) co_return;
  }
}

}  // namespace stag::conform::nfs4
