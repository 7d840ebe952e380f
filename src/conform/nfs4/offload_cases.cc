// OFFLOAD_STATUS and OFFLOAD_CANCEL of a copy that the server goes on with after its answer (RFC
// 7862 4.8, 15.8, 15.9). A server may copy before it answers; these cases are skipped then. However
// early the copy ends, its stateid is valid until the client has answered CB_OFFLOAD, which is put
// off here: so it does not matter how fast the server is.
#include "conform/nfs4/cases.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

// More than a server copies at once; all but the last bytes are a hole.
constexpr std::uint64_t kHole = 20 << 20;
constexpr std::string_view kEnd = "the end";
constexpr std::uint64_t kCopied = kHole + kEnd.size();

constexpr const char* kCopy = "copy";

Step begin_copy() {
  return {OP_COPY,
          [](Scene& scene, Op& to) {
            to.opcopy() = {scene.stateid("f"), scene.stateid("g"), 0, 0, 0, true, false, {}};
          },
          [](Scene& scene, const OpResult& result) {
            const auto& named = result.opcopy().cr_resok4().cr_response.wr_callback_id;
            if (!named.empty()) scene.states[kCopy] = named.front();
          }};
}
Step status_of_copy() {
  return with_state(OP_OFFLOAD_STATUS, &Op::opoffload_status, &OFFLOAD_STATUS4args::osa_stateid,
                    kCopy);
}
Step cancel_of_copy() {
  return with_state(OP_OFFLOAD_CANCEL, &Op::opoffload_cancel, &OFFLOAD_CANCEL4args::oca_stateid,
                    kCopy);
}

Task<Reply> to_target(Scene& scene, Step step) {
  Steps steps;
  steps.push_back(at("g"));
  steps.push_back(std::move(step));
  co_return co_await send(scene, steps);
}

using Use = Task<Verdict> (*)(Scene& copier);

Task<Verdict> copy_and(Scene& copier, Use use) {
  Callbacks& callbacks = *copier.client.options().callbacks;
  std::string trouble = co_await copier.client.establish();
  const std::vector<Steps> compounds{
      a_file("f"),
      {at("f"), write("f", kHole, std::string(kEnd))},
      a_file("g"),
      {at("f"), savefh(), at("g"), begin_copy()},
  };
  callbacks.hold();
  for (const Steps& steps : compounds)
    if (trouble.empty()) trouble = co_await prepare(copier, steps);
  Verdict verdict;
  if (trouble.ends_with("NFS4ERR_NOTSUPP")) {
    verdict = Verdict::skip("the server does not offer COPY");
  } else if (!trouble.empty()) {
    verdict = Verdict::fail("could not be prepared: " + trouble);
  } else if (!copier.states.contains(kCopy)) {
    verdict = Verdict::skip("the server copies before it answers");
  } else {
    co_await callbacks.wait_for_end(copier.stateid(kCopy), copier.client.options().timeout);
    verdict = co_await use(copier);
  }
  co_await callbacks.release();
  co_return verdict;
}

Task<Verdict> with_copy(Scene& scene, Use use) {
  const Handles none;
  Client client(scene.client.channel(), scene.other_client("copier", true));
  Scene copier(client, none, scene.label + " copier");
  copier.handles["own"] = scene.handle("own");
  Verdict verdict = co_await copy_and(copier, use);
  co_await tidy(copier);
  co_await client.leave();
  co_return verdict;
}

Task<Verdict> has_a_status(Scene& copier) {
  const Reply reply = co_await to_target(copier, status_of_copy());
  if (!reply.ok()) co_return expect(reply, {NFS4_OK}, "OFFLOAD_STATUS before CB_OFFLOAD's answer");
  const OFFLOAD_STATUS4resok& ok = reply.results.resarray.back().opoffload_status().osr_resok4();
  const bool complete = !ok.osr_complete.empty();
  if (complete && ok.osr_complete.front() != NFS4_OK)
    co_return Verdict::fail("the copy ended with " + name_of(ok.osr_complete.front()));
  const bool plausible = complete ? ok.osr_count == kCopied : ok.osr_count <= kCopied;
  co_return plausible ? Verdict::pass() : Verdict::fail("osr_count is not what was copied");
}

Task<Verdict> is_cancelled(Scene& copier) {
  const Reply reply = co_await to_target(copier, cancel_of_copy());
  if (!reply.ok())
    co_return expect(reply, {NFS4_OK, NFS4ERR_COMPLETE_ALREADY},
                     "OFFLOAD_CANCEL before CB_OFFLOAD's answer");
  const Reply later = co_await to_target(copier, status_of_copy());
  co_return expect(later, {NFS4ERR_BAD_STATEID}, "OFFLOAD_STATUS of what was cancelled");
}

Script of_copy(nfs_opnum4 operation, std::string note, Use use) {
  Script script = asked(operation, NFS4_OK, std::move(note), k42,
                        [use](Scene& scene) { return with_copy(scene, use); });
  if (operation == OP_OFFLOAD_CANCEL) script.expect.push_back(NFS4ERR_COMPLETE_ALREADY);
  return script;
}

}  // namespace

Scripts offload_cases() {
  return {
      of_copy(OP_OFFLOAD_STATUS, "of a copy whose end is not acknowledged", has_a_status),
      of_copy(OP_OFFLOAD_CANCEL, "of a copy whose end is not acknowledged", is_cancelled),
  };
}

}  // namespace stag::conform::nfs4
