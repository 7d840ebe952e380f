#include "conform/nfs4/delegation_holder.h"

#include "base/pause.h"

namespace stag::conform::nfs4 {
namespace {

// A server may look first whether the client can be called, and give nothing meanwhile.
constexpr int kAttempts = 50;
constexpr auto kBetweenAttempts = std::chrono::milliseconds(50);

struct DelegationHolder {
  DelegationHolder(Scene& of, ClientOptions options)
      : client(of.client.channel(), std::move(options)),
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
  for (int i = 0; i < kAttempts && trouble.empty(); ++i) {
    Steps opening;
    opening.push_back(own());
    opening.push_back(open({.name = "f", .access = kRead, .delegated = true}));
    trouble = co_await prepare(holder.scene, std::move(opening));
    if (!trouble.empty() || holder.scene.states.contains(kDelegation)) break;
    Steps closing;
    closing.push_back(at("f"));
    closing.push_back(close("f"));
    trouble = co_await prepare(holder.scene, std::move(closing));
    co_await pause(holder.client.channel().loop(), kBetweenAttempts,
                   holder.client.options().cancel);
  }
  co_return trouble;
}

Task<Verdict> use_delegation(Scene& scene, DelegationHolder& holder, const DelegationUse& use) {
  std::string trouble = co_await holder.client.establish();
  if (trouble.empty()) trouble = co_await open_delegated(holder);
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  if (!holder.scene.states.contains(kDelegation))
    co_return Verdict::skip("the server gave no delegation");
  Verdict verdict = co_await use(scene, holder.scene);
  co_return verdict;
}

Task<Verdict> hold_delegation(Scene& scene, ClientOptions options, DelegationUse use) {
  const std::string trouble = co_await make_closed_file(scene);
  if (!trouble.empty()) co_return Verdict::fail("could not be prepared: " + trouble);
  DelegationHolder holder(scene, std::move(options));
  for (const char* name : {"own", "f"}) holder.scene.handles[name] = scene.handle(name);
  Verdict verdict = co_await use_delegation(scene, holder, use);
  co_await tidy(holder.scene);
  co_await holder.client.leave();
  co_return verdict;
}

}  // namespace

Task<Verdict> with_delegation(Scene& scene, DelegationUse use) {
  ClientOptions options = scene.other_client("holder", true);
  if (options.callbacks == nullptr) co_return Verdict::skip("there is nobody who could be called");
  std::unique_ptr<CallbackPlace> place;
  if (scene.minor() == 0) {
    if (options.make_place) place = options.make_place();
    if (place == nullptr || !place->listen(options.callbacks->service()))
      co_return Verdict::skip(
          "this client has no address at which it could be called; "
          "callback=ADDRESS in the URL gives it one");
    options.place = place.get();
  }
  Verdict verdict = co_await hold_delegation(scene, std::move(options), std::move(use));
  if (place != nullptr) co_await place->close();
  co_return verdict;
}

Task<Reply> give_back(Scene& holder) {
  Steps steps;
  steps.push_back(at("f"));
  steps.push_back(delegreturn(kDelegation));
  co_return co_await send(holder, steps);
}

}  // namespace stag::conform::nfs4
