// Delegations: what their holder does with them (RFC 8881 10.4, 18.6). A server gives one when it
// chooses to; where it does not, these cases are skipped.
#include "base/pause.h"
#include "conform/nfs4/cases.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

// A server may look first whether the client can be called, and give nothing meanwhile.
constexpr int kPatience = 50;
constexpr auto kPause = std::chrono::milliseconds(50);

constexpr const char* kDelegation = "delegation of f";

// A client that can be called, and what it does with "f".
struct DelegationHolder {
  explicit DelegationHolder(Scene& of)
      : client(of.client.channel(), of.other_client("holder", true)),
        scene(client, none, of.label + " holder") {}

  const Handles none{};
  Client client;
  Scene scene;
};

// Nobody writes "f".
Task<std::string> make_closed_file(Scene& scene) {
  std::string trouble = co_await prepare(scene, a_file("f"));
  Steps closing;
  closing.push_back(at("f"));
  closing.push_back(close("f"));
  if (trouble.empty()) trouble = co_await prepare(scene, std::move(closing));
  co_return trouble;
}

// Opens "f" until a delegation comes with it. A sentence about what failed, or nothing.
Task<std::string> open_delegated(DelegationHolder& holder) {
  std::string trouble;
  for (int i = 0; i < kPatience && trouble.empty(); ++i) {
    Steps opening;
    opening.push_back(own());
    opening.push_back(open({.name = "f", .access = kRead, .delegated = true}));
    trouble = co_await prepare(holder.scene, std::move(opening));
    if (!trouble.empty() || holder.scene.states.contains(kDelegation)) break;
    Steps closing;
    closing.push_back(at("f"));
    closing.push_back(close("f"));
    trouble = co_await prepare(holder.scene, std::move(closing));
    co_await pause(holder.client.channel().loop(), kPause, holder.client.options().cancel);
  }
  co_return trouble;
}

using Use = Task<Verdict> (*)(Scene& holder);

Task<Verdict> use_delegation(DelegationHolder& holder, Use use) {
  std::string trouble = co_await holder.client.establish();
  if (trouble.empty()) trouble = co_await open_delegated(holder);
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  if (!holder.scene.states.contains(kDelegation))
    co_return Verdict::skip("the server gave no delegation");
  co_return co_await use(holder.scene);
}

Task<Verdict> with_delegation(Scene& scene, Use use) {
  const std::string trouble = co_await make_closed_file(scene);
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  DelegationHolder holder(scene);
  for (const char* name : {"own", "f"}) holder.scene.handles[name] = scene.handle(name);
  Verdict verdict = co_await use_delegation(holder, use);
  co_await tidy(holder.scene);
  co_await holder.client.leave();
  co_return verdict;
}

Task<Reply> give_back(Scene& holder) {
  Steps steps;
  steps.push_back(at("f"));
  steps.push_back(delegreturn(kDelegation));
  co_return co_await send(holder, steps);
}

Task<Verdict> gives_back(Scene& holder) {
  const Reply reply = co_await give_back(holder);
  co_return expect(reply, {NFS4_OK}, "DELEGRETURN");
}

Task<Verdict> gives_back_twice(Scene& holder) {
  const Reply first = co_await give_back(holder);
  if (!first.ok()) co_return expect(first, {NFS4_OK}, "DELEGRETURN");
  const Reply second = co_await give_back(holder);
  co_return expect(second, {NFS4ERR_BAD_STATEID}, "a delegation that was given back");
}

Task<Verdict> opens_under_it(Scene& holder) {
  Steps steps;
  steps.push_back(own());
  steps.push_back(open({.name = "f",
                        .access = kRead,
                        .owner = "second",
                        .as = "g",
                        .claim = CLAIM_DELEGATE_CUR,
                        .delegation = kDelegation}));
  const std::string trouble = co_await prepare(holder, std::move(steps));
  const Reply back = co_await give_back(holder);
  if (!trouble.empty()) co_return Verdict::fail(trouble);
  co_return expect(back, {NFS4_OK}, "DELEGRETURN");
}

Script held(nfs_opnum4 operation, nfsstat4 status, std::string note, Use use) {
  return asked(operation, status, std::move(note), kSessions,
               [use](Scene& scene) { return with_delegation(scene, use); });
}

}  // namespace

Scripts delegation_cases() {
  return {
      held(OP_DELEGRETURN, NFS4_OK, "a delegation to read", gives_back),
      held(OP_DELEGRETURN, NFS4ERR_BAD_STATEID, "for the second time", gives_back_twice),
      held(OP_OPEN, NFS4_OK, "of a file that is delegated to this client", opens_under_it),
  };
}

}  // namespace stag::conform::nfs4
